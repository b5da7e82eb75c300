"""Carry-over: scopes that were active under an earlier definition stay active, as unknown, until the new one
decides.

While a carried-over scope is undecided, the machine runs twice over the same readings. In the state `now`
these scopes are active; in the state `beside` they never were. An end in `now` ends the scope. A start in
`beside` confirms it, which is emitted as `known`.

A machine with a window does not have the readings before its start. It therefore evaluates a carried-over
scope only when the window is full of readings that it has processed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ..model.batch import latest_time
from ..model.event import Event, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from .machine import Batches, Emission, Machine, Traits, Wrapper, transitions

_MARK = b"\xc1"
"""The first byte of a stored state with undecided scopes. No msgpack value begins with this byte.

A state without undecided scopes is stored like the inner state.
"""

Scoped = tuple[int, str | None]
"""The number of a condition, and one of its scopes."""


class CarryOver(msgspec.Struct, frozen=True):
    """An active scope: the time since which it is active, and the bytes that a machine of its kind needs to
    continue it."""

    since: Instant
    seed: bytes


class CarryOverMachine(Machine[Any]):
    """The base class of machines that can take over active scopes."""

    def carry_overs(self, state: Any, condition: int) -> dict[str | None, CarryOver]:
        """Return the active scopes of a condition."""
        raise NotImplementedError

    def with_carry_overs(self, state: Any, condition: int, bits: Iterable[CarryOver]) -> Any:
        """Return the state in which the scopes in `bits` are also active. Scopes that the condition does not
        have are ignored."""
        raise NotImplementedError

    def wake(self, state: Any, condition: int, bits: Iterable[CarryOver]) -> Any:
        """Return the state in which the scopes in `bits` are evaluated at the next time, even without a
        reading."""
        raise NotImplementedError

    def without(self, bit: CarryOver, attributes: Collection[str]) -> CarryOver:
        """Return the carry-over without attributes whose kind or unit has changed."""
        raise NotImplementedError


class OpenScope(msgspec.Struct):
    """An undecided scope.

    `knows` is the time from which the scope is evaluated; `None` if it is already evaluated.
    """

    bit: CarryOver
    knows: Instant | None


class CarriedState(msgspec.Struct):
    """The state of a machine with undecided scopes: the two inner states and the scopes.

    `since` has the original starts of confirmed scopes whose start in `now` is later.
    """

    now: Any
    beside: Any
    open: dict[Scoped, OpenScope]
    since: dict[Scoped, Instant]
    watermark: Instant = BEGINNING


Take = Callable[[Any], tuple[Any, list[Transition]]]
"""A function that processes input with a state of the inner machine."""
Coming = Callable[[Any, Instant], tuple[Any, list[Transition]]]
"""A function that processes input, or advances to a time, with a state of the inner machine."""


class _StoredState(NamedTuple):
    """The format of a state with undecided scopes in snapshots."""

    now: bytes
    beside: bytes
    open: list[tuple[int, str | None, OpenScope]]
    since: list[tuple[int, str | None, Instant]]
    reached: Instant


@dataclass(frozen=True)
class CarryingOver(Wrapper[Any]):
    """A machine whose conditions may start with undecided scopes.

    `looks_back` is the length of each condition's windows, and `waits` the duration by which it evaluates
    behind the watermark. Both are in microseconds.
    """

    inner: CarryOverMachine
    looks_back: tuple[Duration, ...]
    waits: tuple[Duration, ...]

    @cached_property
    def traits(self) -> Traits:
        return self.inner.traits

    def inner_state(self, state: Any) -> Any:
        return state.now if isinstance(state, CarriedState) else state

    def with_inner_state(self, state: Any, inner: Any) -> Any:
        if not isinstance(state, CarriedState):
            return inner
        state.now = inner
        return state

    def initial(self) -> Any:
        return self.inner.initial()

    # --- active scopes ---

    def carry_overs(self, state: Any, condition: int) -> dict[str | None, CarryOver]:
        """Return the scopes of a condition that are active or undecided."""
        if not isinstance(state, CarriedState):
            return self.inner.carry_overs(state, condition)
        found = self.inner.carry_overs(state.now, condition)
        found |= {scope: one.bit for (number, scope), one in state.open.items() if number == condition}
        earlier = {scope: at for (number, scope), at in state.since.items() if number == condition}
        return {
            scope: msgspec.structs.replace(bit, since=earlier.get(scope, bit.since))
            for scope, bit in found.items()
        }

    def without(self, bit: CarryOver, attributes: Collection[str]) -> CarryOver:
        return self.inner.without(bit, attributes)

    def start(self, state: Any, condition: int, bits: Collection[CarryOver], at: Instant) -> Any:
        """Start a condition at a time with active scopes as undecided.

        Scopes that the condition cannot have are dropped.
        """
        if not bits:
            return state
        whole = (
            state if isinstance(state, CarriedState) else CarriedState(state, self._copy(state), {}, {}, at)
        )
        tried = self.inner.with_carry_overs(self._copy(whole.now), condition, bits)
        held = self.inner.carry_overs(tried, condition)
        if not held:
            return state
        back = self.looks_back[condition]
        knows = at + back + self.waits[condition] + 1 if back else BEGINNING
        whole.open |= {(condition, scope): OpenScope(bit, knows) for scope, bit in held.items()}
        whole.watermark = max(whole.watermark, at)
        if not back:
            self._open_scopes(whole, BEGINNING)
        return whole

    def _copy(self, inner: Any) -> Any:
        """Return a copy of an inner state."""
        return self.inner.load(self.inner.dump(inner))

    def _open_scopes(self, state: CarriedState, at: Instant) -> None:
        """Start to evaluate the undecided scopes whose evaluation is due by `at`."""
        ready = {key: one for key, one in state.open.items() if one.knows is not None and one.knows <= at}
        for condition in dict.fromkeys(number for number, _ in ready):
            mine = [one.bit for (number, _), one in ready.items() if number == condition]
            state.now = self.inner.with_carry_overs(state.now, condition, mine)
            if at > BEGINNING:  # the readings meanwhile were not evaluated
                state.now = self.inner.wake(state.now, condition, mine)
        state.open |= {key: OpenScope(one.bit, None) for key, one in ready.items()}

    # --- events ---

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        if not isinstance(state, CarriedState):
            return self.inner.react(state, event)
        state.watermark = max(state.watermark, event.time)
        return self._simplify(state, self._transitions(state, lambda one: self.inner.react(one, event)))

    def advance(self, state: Any, watermark: Instant) -> tuple[Any, list[Transition]]:
        if not isinstance(state, CarriedState):
            return self.inner.advance(state, watermark)
        return self._simplify(state, self._advance(state, self.inner.advance, watermark))

    def step(self, state: Any, batches: Batches, watermark: Instant) -> tuple[Any, Emission]:
        """Process a batch of each topic, then advance to the watermark.

        While scopes are undecided, both inner states run over the batches.
        """
        if not isinstance(state, CarriedState):
            return self.inner.step(state, batches, watermark)
        state.watermark = max(
            [state.watermark, *(at for batch in batches.values() if (at := latest_time(batch)))]
        )

        def take(inner: Any, come: Instant) -> tuple[Any, list[Transition]]:
            inner, emission = self.inner.step(inner, batches, come)
            return inner, transitions(self.topics, emission)

        after, emitted = self._simplify(state, self._advance(state, take, watermark))
        return after, Emission({}, emitted)

    def _advance(self, state: CarriedState, take: Coming, until: Instant) -> list[Transition]:
        """Advance to a time. On the way, stop at each time at which the evaluation of undecided scopes
        starts."""
        emitted: list[Transition] = []
        last = state.watermark + 1 if until == NEVER else until
        for at in sorted({one.knows for one in state.open.values() if one.knows is not None}):
            if at < last:
                emitted += self._transitions(state, _coming(take, at))
                self._open_scopes(state, at)
                take = self.inner.advance
        return emitted + self._transitions(state, _coming(take, until))

    def _transitions(self, state: CarriedState, take: Take) -> list[Transition]:
        """Process input with both states, and return the transitions that follow from both."""
        state.now, emitted = take(state.now)
        state.beside, seen = take(state.beside)
        found, confirmed = list[Transition](), [one for one in seen if self._confirms(state, one)]
        for one in emitted:
            while confirmed and confirmed[0].event.time <= one.event.time and one.status != "late":
                found += self._confirm(state, confirmed.pop(0))
            found += self._judge(state, one)
        for one in confirmed:
            found += self._confirm(state, one)
        return found

    def _confirms(self, state: CarriedState, transition: Transition) -> bool:
        """Whether a transition in `beside` confirms an undecided scope."""
        return transition.status == "ingress" and (transition.condition, transition.scope) in state.open

    def _confirm(self, state: CarriedState, transition: Transition) -> Iterator[Transition]:
        """Confirm a scope that started in `beside`, if it is still undecided."""
        key = transition.condition, transition.scope
        if (one := state.open.pop(key, None)) is not None:
            if one.knows is not None:
                state.since[key] = one.bit.since
            yield transition._replace(status="known", since=one.bit.since)

    def _judge(self, state: CarriedState, transition: Transition) -> Iterator[Transition]:
        """Yield a transition of `now`, with the original start of a carried-over scope."""
        key = transition.condition, transition.scope
        match transition.status:
            case "ingress" if key in state.since or key in state.open:
                yield from self._confirm(state, transition)  # unless it was emitted
            case "egress":
                state.open.pop(key, None)
                yield transition._replace(since=state.since.pop(key, transition.since))
            case _:
                yield transition

    def _simplify(self, state: CarriedState, emitted: list[Transition]) -> tuple[Any, list[Transition]]:
        """Return the state of the inner machine alone if no scope is undecided any more."""
        return (state if state.open or state.since else state.now), emitted

    # --- relevance, active scopes, storage ---

    def due(self, state: Any) -> Instant | None:
        if not isinstance(state, CarriedState):
            return self.inner.due(state)
        both = (self.inner.due(one) for one in (state.now, state.beside))
        looks = (one.knows for one in state.open.values())
        return min((at for at in (*both, *looks) if at is not None), default=None)

    def active(self, state: Any) -> list[tuple[int, str | None, Instant]]:
        if not isinstance(state, CarriedState):
            return self.inner.active(state)
        found = {(number, scope): since for number, scope, since in self.inner.active(state.now)}
        found |= {key: one.bit.since for key, one in state.open.items()} | state.since
        return [(*key, since) for key, since in found.items()]

    def unknown(self, state: Any) -> list[tuple[int, str | None, Instant | None]]:
        if not isinstance(state, CarriedState):
            return self.inner.unknown(state)
        open = [(*key, one.bit.since) for key, one in state.open.items()]
        return [*self.inner.unknown(state.now), *open]

    def learn_latest(self, state: Any, condition: int, latest: Sequence[Event]) -> Any:
        if not isinstance(state, CarriedState):
            return self.inner.learn_latest(state, condition, latest)
        state.now = self.inner.learn_latest(state.now, condition, latest)
        state.beside = self.inner.learn_latest(state.beside, condition, latest)
        return state

    def is_initial(self, state: Any, condition: int) -> bool:
        if not isinstance(state, CarriedState):
            return self.inner.is_initial(state, condition)
        known = any(number == condition for number, _ in (*state.open, *state.since))
        return not known and self.inner.is_initial(state.now, condition)

    def dump(self, state: Any) -> bytes:
        if not isinstance(state, CarriedState):
            return self.inner.dump(state)
        now, beside = (self.inner.dump(one) for one in (state.now, state.beside))
        open = [(*key, one) for key, one in state.open.items()]
        since = [(*key, at) for key, at in state.since.items()]
        return _MARK + msgspec.msgpack.encode(_StoredState(now, beside, open, since, state.watermark))

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> Any:
        """Return the state from a snapshot, with undecided scopes only for conditions that still exist."""
        if not raw.startswith(_MARK):
            return self.inner.load(raw, was)
        stored = msgspec.msgpack.decode(raw[len(_MARK) :], type=_StoredState)
        numbers = {number for number, *_ in (*stored.open, *stored.since)}
        of = {n: n for n in numbers} if was is None else {n: was.index(n) for n in numbers if n in was}
        state = CarriedState(
            self.inner.load(stored.now, was),
            self.inner.load(stored.beside, was),
            {(of[number], scope): one for number, scope, one in stored.open if number in of},
            {(of[number], scope): at for number, scope, at in stored.since if number in of},
            stored.reached,
        )
        return self._simplify(state, [])[0]


def _coming(take: Coming, at: Instant) -> Take:
    """Return a function that advances a state to the time `at`."""
    return lambda inner: take(inner, at)
