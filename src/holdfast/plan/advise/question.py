"""Questions about the numbers of a state, and their answers from a history in memory or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...definition.tune import Tunable
from ...errors import InputError
from ...model.instant import BEGINNING, DAY, NEVER, Duration, Instant, show_duration
from .judge import FLAP, Labels, Trial, VariantGrid, as_it_stands, judge, labels_of, within
from .rows import Interval, MeasuredRows, Moments
from .variants import Judged, Variant, deviation, grid_of, refine, variants

WEEK = 7 * DAY
EVERYTHING = (BEGINNING, NEVER)


class MeasuredHistory(Protocol):
    """The protocol of measured histories: the readings of a state, in memory or on Spark."""

    def span(self, interval: Interval) -> Interval | None:
        """Return the times of the first and the last reading in an interval; ``None`` without readings."""

    def moments(self) -> Moments:
        """Return the count, sum and sum of squares of the compared values."""

    def judge(self, interval: Interval, grid: VariantGrid, labels: Labels | None, flap: Duration) -> Judged:
        """Return the counts of all variants over an interval, as if there were no other readings.

        Without labels, the reference is the state as it is defined.
        """


def too_short(found: Tunable, rows: int) -> InputError:
    """Return the error for a history without a reading of the state."""
    topic, name = found.condition.topic.name, found.condition.name
    return InputError(
        f"the history is too short: of {rows:,} rows not one is a reading of {topic} in a scope of '{name}'"
    )


@dataclass(frozen=True)
class MeasuredInMemory:
    """A measured history in the memory of this process."""

    rows: MeasuredRows
    found: Tunable

    def span(self, interval: Interval) -> Interval | None:
        rows = self.rows.slice(*interval)
        return rows.span() if len(rows) or len(rows.elsewhere) else None

    def moments(self) -> Moments:
        return self.rows.moments()

    def judge(self, interval: Interval, grid: VariantGrid, labels: Labels | None, flap: Duration) -> Judged:
        rows = self.rows.slice(*interval)
        return judge_within(rows, self.found, rows.span()[1])(grid, labels, flap)


def judge_within(
    rows: MeasuredRows, found: Tunable, until: Instant
) -> Callable[[VariantGrid, Labels | None, Duration], Judged]:
    """Return a function that counts variants over some scopes of a history that ends at ``until``."""

    def judge_grid(grid: VariantGrid, labels: Labels | None, flap: Duration) -> Judged:
        known = as_it_stands(rows, found, until) if labels is None else labels_of(rows, labels)
        return Judged(judge(Trial(rows, found, known, until, flap), grid), known.count, known.length)

    return judge_grid


@dataclass(frozen=True)
class AdviceQuestion:
    """The numbers of a state to try, and the reference to compare with.

    ``held_out`` is the number of weeks at the end that are not used for the choice. ``None`` for numbers
    stands for steps around the current ones.
    """

    found: Tunable
    enters: Sequence[float] | None = None
    exits: Sequence[float] | None = None
    guards: Sequence[Duration] | None = None
    labels: Labels | None = None
    rounds: int = 0
    flap: Duration = FLAP
    held_out: int = 0

    def ask(self, history: MeasuredHistory) -> AdviceAnswer:
        """Evaluate the variants over a history, and return the answer."""
        whole = history.span(EVERYTHING)
        assert whole is not None
        self._require_length(whole)
        cut = whole[1] + 1 - self.held_out * WEEK if self.held_out else NEVER
        used = (BEGINNING, cut)
        grid = grid_of(self.found, deviation(history.moments()), self.enters, self.exits, self.guards)
        found, known = self.judge(history, used, grid)
        for _ in range(self.rounds):
            grid = refine(grid, found)
            found, known = self.judge(history, used, grid)
        return AdviceAnswer(self, history, found, known, history.span(used) or whole, (cut, NEVER))

    def _require_length(self, whole: Interval) -> None:
        length = whole[1] - whole[0]
        if self.held_out and length < (self.held_out + 1) * WEEK:
            raise InputError(
                f"the history is too short: {length / DAY:.1f} days, of which {self.held_out} weeks are held "
                "out, leave less than a week to choose by.  Give more, or hold out less"
            )
        if self.guards and max(self.guards) > length:
            raise InputError(
                f"the history is too short: {length / DAY:.3g} days, and a guard of "
                f"{show_duration(max(self.guards))} would never pass in it"
            )

    def judge(
        self, history: MeasuredHistory, interval: Interval, grid: VariantGrid
    ) -> tuple[list[Variant], int]:
        """Return the variants over an interval, and the number of intervals of the reference."""
        labels, span = self.labels, history.span(interval)
        if labels is not None and span is not None:
            labels = within(labels, *span)
        found = history.judge(interval, grid, labels, self.flap)
        if labels is not None:  # labels of scopes without readings count, too
            every = [b - a for label in labels.values() for a, b in label]
            found = found._replace(known=len(every), length=sum(every))
        return variants(self.found, grid, found), found.known


@dataclass(frozen=True)
class AdviceAnswer:
    """The answer to a question: the effect of each variant, and the interval of the history that was used."""

    question: AdviceQuestion
    history: MeasuredHistory
    variants: list[Variant]
    known: int
    span: Interval
    rest: Interval

    @property
    def days(self) -> float:
        return max((self.span[1] - self.span[0]) / DAY, 1 / 24)

    def again(self, variant: Variant) -> Variant | None:
        """Return the effect of a variant's numbers over the weeks that were held out.

        Returns ``None`` if these weeks have no readings.
        """
        if self.history.span(self.rest) is None:
            return None
        enter, exit, guard = variant.numbers
        found, _ = self.question.judge(self.history, self.rest, VariantGrid((enter,), (exit,), (guard,)))
        return found[0]
