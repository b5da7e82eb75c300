"""How events reach a condition: in arrival order, or held back and put in order.  [S8, F12, F13]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .instant import Duration


@dataclass(frozen=True, slots=True)
class Correct:
    """What was told is corrected by events that come up to ``within`` too late."""

    within: Duration

    def __str__(self) -> str:
        return f"correct {self.within} µs"


Word = Literal["drop", "apply"]
Late = Word | Correct
LATE: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True, slots=True)
class Delivery:
    """``wait is None`` is *timely*: arrival order, never re-sorted.

    Otherwise *ordered*: an event is processed once event time has passed it by ``wait``, in the
    order of (time, source, sequence).  One that comes later still is late: ``drop`` sends it to
    the late output, ``apply`` processes it on arrival, and a ``Correct`` puts it in its place.
    """

    wait: Duration | None = None
    late: Late = "drop"


TIMELY = Delivery()
