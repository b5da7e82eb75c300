"""The time to wait before the next attempt to reach a peer."""

from __future__ import annotations

from dataclasses import dataclass

from ....model.instant import MILLISECOND, SECOND, Duration


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in µs that double up to ``most``. Each is shortened at random so that peers do not return all at
    once.
    """

    first: Duration = 100 * MILLISECOND
    most: Duration = 5 * SECOND

    def wait(self, failures: int, chance: float) -> Duration:
        """Return the time in µs to wait after ``failures`` in a row.

        ``chance`` is a random number from [0, 1), which selects a time between half of the wait and the
        whole.

        >>> [Backoff().wait(n, 0.0) for n in (1, 2, 3, 99)]
        [50000, 100000, 200000, 2500000]
        """
        whole = min(self.most, self.first << min(failures - 1, 30))
        return int(whole * (0.5 + chance / 2))
