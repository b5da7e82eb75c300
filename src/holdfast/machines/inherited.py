"""What held under an earlier definition, for a condition that begins anew: a scope keeps its bit, and nobody
knows of it until the new definition decides.

The machine runs twice while something is open, over the same readings: ``now``, in which open scopes hold,
and ``beside``, in which they never did.  What ``now`` ends has ended; what ``beside`` starts still holds,
which is told as ``known``.  Whoever looks back over a window looks at no open scope before the window is full
of readings that it has heard: an end that they do not bear out is not told.  At that instant it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from ..model.batch import reached
from ..model.event import Event, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Topic
from .machine import Batches, Machine, Mask, Survey, Told, transitions

_MARK = b"\xc1"
"""With this nothing begins that was packed: a state in which nothing is open is kept as it is inside."""

Scoped = tuple[int, str | None]
"""A condition and a scope of it."""


class Bit(msgspec.Struct, frozen=True):
    """That a scope holds: since when, and what a machine of its kind must know to go on with it."""

    since: Instant
    seed: bytes


class Lasting(Machine, Protocol):
    """A machine that can be given bits."""

    def bits(self, state: Any, condition: int) -> dict[str | None, Bit]:
        """The scopes of a condition that hold."""

    def with_bits(self, state: Any, condition: int, bits: Iterable[Bit]) -> Any:
        """A state in which these hold, too, as far as there are such scopes."""

    def roused(self, state: Any, condition: int, bits: Iterable[Bit]) -> Any:
        """A state in which these are looked at at the next instant, whether anything happens or not."""

    def without(self, bit: Bit, attributes: Collection[str]) -> Bit:
        """The same without some attributes that its events have no more as they had them."""


class Open(msgspec.Struct):
    """An open scope: its bit, and from when on it is looked at; ``None`` if it is already."""

    bit: Bit
    knows: Instant | None


class Inherited(msgspec.Struct):
    """A state with open scopes, and those that were confirmed and have held for longer than ``now`` knows."""

    now: Any
    beside: Any
    open: dict[Scoped, Open]
    since: dict[Scoped, Instant]
    reached: Instant = BEGINNING


Take = Callable[[Any], tuple[Any, list[Transition]]]
Coming = Callable[[Any, Instant], tuple[Any, list[Transition]]]
"""Let a state of the inner machine take something, or come to an instant; what it says of it."""


class _Kept(NamedTuple):
    now: bytes
    beside: bytes
    open: list[tuple[int, str | None, Open]]
    since: list[tuple[int, str | None, Instant]]
    reached: Instant


@dataclass(frozen=True)
class Inheriting:
    """The machine ``inner``, whose conditions may begin with open scopes; ``looks_back`` is how far each of
    them does, and ``waits`` how far it is behind time."""

    inner: Lasting
    looks_back: tuple[Duration, ...]
    waits: tuple[Duration, ...]

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inner.topics

    @property
    def strictest(self) -> Duration | None:
        return self.inner.strictest

    @property
    def is_timed(self) -> bool:
        return self.inner.is_timed

    @property
    def margin(self) -> Duration | None:
        return self.inner.margin

    @property
    def compacts(self) -> bool:
        return self.inner.compacts

    def initial(self) -> Any:
        return self.inner.initial()

    # --- what held ---

    def bits(self, state: Any, condition: int) -> dict[str | None, Bit]:
        """The scopes of a condition that hold, or may."""
        if not isinstance(state, Inherited):
            return self.inner.bits(state, condition)
        found = self.inner.bits(state.now, condition)
        found |= {scope: one.bit for (number, scope), one in state.open.items() if number == condition}
        earlier = {scope: at for (number, scope), at in state.since.items() if number == condition}
        return {
            scope: msgspec.structs.replace(bit, since=earlier.get(scope, bit.since))
            for scope, bit in found.items()
        }

    def without(self, bit: Bit, attributes: Collection[str]) -> Bit:
        return self.inner.without(bit, attributes)

    def begun(self, state: Any, condition: int, bits: Collection[Bit], at: Instant) -> Any:
        """A state in which a condition that knows nothing yet begins at an instant, with open scopes that
        held so far; those that it cannot have are none."""
        if not bits:
            return state
        whole = state if isinstance(state, Inherited) else Inherited(state, self._copied(state), {}, {}, at)
        tried = self.inner.with_bits(self._copied(whole.now), condition, bits)
        held = self.inner.bits(tried, condition)
        if not held:
            return state
        back = self.looks_back[condition]
        knows = at + back + self.waits[condition] + 1 if back else BEGINNING
        whole.open |= {(condition, scope): Open(bit, knows) for scope, bit in held.items()}
        whole.reached = max(whole.reached, at)
        if not back:
            self._look(whole, BEGINNING)
        return whole

    def _copied(self, inner: Any) -> Any:
        return self.inner.from_bytes(self.inner.to_bytes(inner))

    def _look(self, state: Inherited, at: Instant) -> None:
        """Look at open scopes from now on whose time has come."""
        ready = {key: one for key, one in state.open.items() if one.knows is not None and one.knows <= at}
        for condition in dict.fromkeys(number for number, _ in ready):
            mine = [one.bit for (number, _), one in ready.items() if number == condition]
            state.now = self.inner.with_bits(state.now, condition, mine)
            if at > BEGINNING:  # of what happened meanwhile nothing was looked at
                state.now = self.inner.roused(state.now, condition, mine)
        state.open |= {key: Open(one.bit, None) for key, one in ready.items()}

    # --- events ---

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        if not isinstance(state, Inherited):
            return self.inner.react(state, event)
        state.reached = max(state.reached, event.time)
        return self._settled(state, self._told(state, lambda one: self.inner.react(one, event)))

    def advance(self, state: Any, until: Instant) -> tuple[Any, list[Transition]]:
        if not isinstance(state, Inherited):
            return self.inner.advance(state, until)
        return self._settled(state, self._come(state, self.inner.advance, until))

    def step(self, state: Any, batches: Batches, until: Instant) -> tuple[Any, Told]:
        if not isinstance(state, Inherited):
            return self.inner.step(state, batches, until)
        state.reached = max([state.reached, *(at for batch in batches.values() if (at := reached(batch)))])

        def take(inner: Any, come: Instant) -> tuple[Any, list[Transition]]:
            inner, told = self.inner.step(inner, batches, come)
            return inner, transitions(self.topics, told)

        after, said = self._settled(state, self._come(state, take, until))
        return after, Told({}, said)

    def _come(self, state: Inherited, take: Coming, until: Instant) -> list[Transition]:
        """Let time come to an instant: first to those at which open scopes begin to be looked at."""
        said: list[Transition] = []
        last = state.reached + 1 if until == NEVER else until
        for at in sorted({one.knows for one in state.open.values() if one.knows is not None}):
            if at < last:
                said += self._told(state, _coming(take, at))
                self._look(state, at)
                take = self.inner.advance
        return said + self._told(state, _coming(take, until))

    def _told(self, state: Inherited, take: Take) -> list[Transition]:
        """What is to be said of what both say."""
        state.now, said = take(state.now)
        state.beside, seen = take(state.beside)
        found, confirmed = list[Transition](), [one for one in seen if self._confirms(state, one)]
        for one in said:
            while confirmed and confirmed[0].event.time <= one.event.time and one.status != "late":
                found += self._known(state, confirmed.pop(0))
            found += self._of_now(state, one)
        for one in confirmed:
            found += self._known(state, one)
        return found

    def _confirms(self, state: Inherited, told: Transition) -> bool:
        return told.status == "ingress" and (told.condition, told.scope) in state.open

    def _known(self, state: Inherited, told: Transition) -> Iterator[Transition]:
        """What started where it never had held holds, if it is still open."""
        key = told.condition, told.scope
        if (one := state.open.pop(key, None)) is not None:
            if one.knows is not None:
                state.since[key] = one.bit.since
            yield told._replace(status="known", since=one.bit.since)

    def _of_now(self, state: Inherited, told: Transition) -> Iterator[Transition]:
        key = told.condition, told.scope
        match told.status:
            case "ingress" if key in state.since or key in state.open:
                yield from self._known(state, told)  # unless that was told
            case "egress":
                state.open.pop(key, None)
                yield told._replace(since=state.since.pop(key, told.since))
            case _:
                yield told

    def _settled(self, state: Inherited, said: list[Transition]) -> tuple[Any, list[Transition]]:
        """The state, which is that of the inner machine when nothing is inherited any more."""
        return (state if state.open or state.since else state.now), said

    # --- what can matter, what holds, and keeping it ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        return self.inner.reduce(batches, closed=closed, latest=latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return self.inner.matters(topic, batch)

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        return self.inner.survey(topic, batch, closed=closed)

    def due(self, state: Any) -> Instant | None:
        if not isinstance(state, Inherited):
            return self.inner.due(state)
        both = (self.inner.due(one) for one in (state.now, state.beside))
        looks = (one.knows for one in state.open.values())
        return min((at for at in (*both, *looks) if at is not None), default=None)

    def holding(self, state: Any) -> list[tuple[int, str | None, Instant]]:
        if not isinstance(state, Inherited):
            return self.inner.holding(state)
        found = {(number, scope): since for number, scope, since in self.inner.holding(state.now)}
        found |= {key: one.bit.since for key, one in state.open.items()} | state.since
        return [(*key, since) for key, since in found.items()]

    def unknown(self, state: Any) -> list[tuple[int, str | None, Instant | None]]:
        if not isinstance(state, Inherited):
            return self.inner.unknown(state)
        open = [(*key, one.bit.since) for key, one in state.open.items()]
        return [*self.inner.unknown(state.now), *open]

    def last(self, state: Any, condition: int) -> list[Transition]:
        return self.inner.last(state.now if isinstance(state, Inherited) else state, condition)

    def inform(self, state: Any, condition: int, latest: Sequence[Event]) -> Any:
        if not isinstance(state, Inherited):
            return self.inner.inform(state, condition, latest)
        state.now = self.inner.inform(state.now, condition, latest)
        state.beside = self.inner.inform(state.beside, condition, latest)
        return state

    def is_fresh(self, state: Any, condition: int) -> bool:
        if not isinstance(state, Inherited):
            return self.inner.is_fresh(state, condition)
        known = any(number == condition for number, _ in (*state.open, *state.since))
        return not known and self.inner.is_fresh(state.now, condition)

    def to_bytes(self, state: Any) -> bytes:
        if not isinstance(state, Inherited):
            return self.inner.to_bytes(state)
        now, beside = (self.inner.to_bytes(one) for one in (state.now, state.beside))
        open = [(*key, one) for key, one in state.open.items()]
        since = [(*key, at) for key, at in state.since.items()]
        return _MARK + msgspec.msgpack.encode(_Kept(now, beside, open, since, state.reached))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> Any:
        if not raw.startswith(_MARK):
            return self.inner.from_bytes(raw, was)
        kept = msgspec.msgpack.decode(raw[len(_MARK) :], type=_Kept)
        numbers = {number for number, *_ in (*kept.open, *kept.since)}
        of = {n: n for n in numbers} if was is None else {n: was.index(n) for n in numbers if n in was}
        state = Inherited(
            self.inner.from_bytes(kept.now, was),
            self.inner.from_bytes(kept.beside, was),
            {(of[number], scope): one for number, scope, one in kept.open if number in of},
            {(of[number], scope): at for number, scope, at in kept.since if number in of},
            kept.reached,
        )
        return self._settled(state, [])[0]


def _coming(take: Coming, at: Instant) -> Take:
    return lambda inner: take(inner, at)
