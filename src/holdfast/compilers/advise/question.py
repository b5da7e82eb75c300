"""A question about the numbers of a state, and the answer that a history gives, wherever it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...errors import InputError
from ...lang.tune import Tunable
from ...model.instant import BEGINNING, DAY, NEVER, Duration, Instant, show_duration
from .judge import FLAP, Grid, Labels, Trial, as_it_stands, judged, labelled, within
from .rows import Moments, Rows, Stretch
from .variants import Judged, Variant, deviation, grid_of, refined, variants

WEEK = 7 * DAY
EVERYTHING = (BEGINNING, NEVER)


class History(Protocol):
    """Readings of a state, wherever they are."""

    def span(self, stretch: Stretch) -> Stretch | None:
        """When the first and the last reading of a stretch of time are, if it has any."""

    def moments(self) -> Moments:
        """How much readings differ."""

    def judged(self, stretch: Stretch, grid: Grid, labels: Labels | None, flap: Duration) -> Judged:
        """What variants do over a stretch of time, as if it were all; without labels, beside the state as it
        stands."""


def too_short(found: Tunable, rows: int) -> InputError:
    """What to say of a history without a reading of the state."""
    topic, name = found.condition.topic.name, found.condition.name
    return InputError(
        f"the history is too short: of {rows:,} rows not one is a reading of {topic} in a scope of '{name}'"
    )


@dataclass(frozen=True)
class Held:
    """A history in memory."""

    rows: Rows
    found: Tunable

    def span(self, stretch: Stretch) -> Stretch | None:
        some = self.rows.between(*stretch)
        return some.span() if len(some) or len(some.elsewhere) else None

    def moments(self) -> Moments:
        return self.rows.moments()

    def judged(self, stretch: Stretch, grid: Grid, labels: Labels | None, flap: Duration) -> Judged:
        rows = self.rows.between(*stretch)
        return judged_in(rows, self.found, rows.span()[1])(grid, labels, flap)


def judged_in(
    rows: Rows, found: Tunable, until: Instant
) -> Callable[[Grid, Labels | None, Duration], Judged]:
    """What variants do over some of the scopes of a history that ends at ``until``."""

    def judge(grid: Grid, labels: Labels | None, flap: Duration) -> Judged:
        known = as_it_stands(rows, found, until) if labels is None else labelled(rows, labels)
        return Judged(judged(Trial(rows, found, known, until, flap), grid), known.count, known.length)

    return judge


@dataclass(frozen=True)
class Question:
    """Which numbers of a state to try, and what with.  ``held_out`` are the weeks at the end that do not
    take part in the choice."""

    found: Tunable
    enters: Sequence[float] | None = None
    exits: Sequence[float] | None = None
    guards: Sequence[Duration] | None = None
    labels: Labels | None = None
    rounds: int = 0
    flap: Duration = FLAP
    held_out: int = 0

    def ask(self, history: History) -> Answer:
        """What the history says."""
        whole = history.span(EVERYTHING)
        assert whole is not None
        self._require_length(whole)
        cut = whole[1] + 1 - self.held_out * WEEK if self.held_out else NEVER
        used = (BEGINNING, cut)
        grid = grid_of(self.found, deviation(history.moments()), self.enters, self.exits, self.guards)
        some, known = self.judged(history, used, grid)
        for _ in range(self.rounds):
            grid = refined(grid, some)
            some, known = self.judged(history, used, grid)
        return Answer(self, history, some, known, history.span(used) or whole, (cut, NEVER))

    def _require_length(self, whole: Stretch) -> None:
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

    def judged(self, history: History, stretch: Stretch, grid: Grid) -> tuple[list[Variant], int]:
        """The variants over a stretch of the history, and how many stretches tell what is late."""
        labels, span = self.labels, history.span(stretch)
        if labels is not None and span is not None:
            labels = within(labels, *span)
        found = history.judged(stretch, grid, labels, self.flap)
        if labels is not None:  # also those of scopes that have no reading
            every = [b - a for some in labels.values() for a, b in some]
            found = found._replace(known=len(every), length=sum(every))
        return variants(self.found, grid, found), found.known


@dataclass(frozen=True)
class Answer:
    """What variants of a state did, and over which time."""

    question: Question
    history: History
    variants: list[Variant]
    known: int
    span: Stretch
    rest: Stretch

    @property
    def days(self) -> float:
        return max((self.span[1] - self.span[0]) / DAY, 1 / 24)

    def again(self, one: Variant) -> Variant | None:
        """The same numbers over the weeks that were held out."""
        if self.history.span(self.rest) is None:
            return None
        enter, exit, guard = one.numbers
        some, _ = self.question.judged(self.history, self.rest, Grid((enter,), (exit,), (guard,)))
        return some[0]
