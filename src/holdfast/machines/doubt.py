"""A state filter of which events may be lost: it keeps its bits, and says what holds when events come again.

A scope whose bit is set and of whose events some may be lost is *in doubt*: whoever is told its starts and
ends is told that it is ``unknown``.  It stays so until an event decides.  One that satisfies the exit ends
it; one that satisfies the entrance alone says that it still holds, which is told as ``known``.  An inner
scope that such an event confirms feeds the outer one, as if it had just begun: its end may be among what is
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from typing import NamedTuple

import numpy as np

from ..model.event import Event, Transition
from ..model.instant import BEGINNING, Instant
from ..model.topic import Topic
from . import filter
from .filter import Chain, Filters, Level

Lost = list[tuple[str | None, Instant]]
"""Scopes that held, as people read them, and since when."""


class State(NamedTuple):
    """What the filter remembers, and the keys of the scopes in doubt; the bit of each is set."""

    inner: filter.State
    doubted: set[str]

    def bits(self) -> Iterator[str]:
        """The keys of the scopes whose bit is set."""
        return (level.keys.key(code) for level in self.inner.levels for code in _set(level))


@dataclass(frozen=True)
class Doubting:
    """The machine of one state filter, one event at a time."""

    filters: Filters

    is_timed = False

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.filters.topics

    def initial(self) -> State:
        return State(self.filters.initial(), set())

    def due(self, state: State) -> Instant | None:
        return self.filters.due(state.inner)

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        return state, []

    def to_bytes(self, state: State) -> bytes:
        """The bits; whoever goes on with them elsewhere is in no doubt."""
        return self.filters.to_bytes(state.inner)

    def from_bytes(self, raw: bytes) -> State:
        return State(self.filters.from_bytes(raw), set())

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        keys = (self.filters.chain(event) or ()) if state.doubted else ()
        if not state.doubted.isdisjoint(keys):
            (spec,) = self.filters.filters
            if spec.enter(event) and not spec.leave(event):
                return self._confirm(state, keys, event)
        inner, said = self.filters.react(state.inner, event)
        ended = [key for at, key in enumerate(keys) if key in state.doubted and not _holds(inner, at, key)]
        state.doubted.difference_update(ended)
        return state._replace(inner=inner), said

    def _confirm(self, state: State, keys: Chain, event: Event) -> tuple[State, list[Transition]]:
        """Take an event that says that what is in doubt holds.  The bits of the scopes that it comes to are
        set anew; an outermost one holds since it did."""
        inner, outermost = state.inner, keys[-1]
        comes_to = takewhile(partial(_is_open, state), enumerate(keys))
        decided = {at: key for at, key in comes_to if key is not None and key in state.doubted}
        since = [_clear(inner, at, key) for at, key in decided.items()]
        inner, said = self.filters.react(inner, event)
        state.doubted.difference_update(decided.values())
        if outermost is not None and outermost in decided.values():
            inner.since[0, inner.levels[-1].keys.code(outermost)] = since[-1]
            said = [one._replace(status="known", since=since[-1]) for one in said]
        return state._replace(inner=inner), said

    def meets(self, events: Iterable[Event]) -> tuple[list[str], ...]:
        """The scopes that events come to, level by level."""
        return self.filters.meets(events)

    def taken_over(self, state: State, other: State, keys: tuple[Sequence[str], ...]) -> State:
        """A state that knows of some scopes what another knows, and doubts it; that one may still be used."""
        some = set(chain.from_iterable(keys))
        doubted = (state.doubted - some) | (other.doubted & some)
        return State(self.filters.taken_over(state.inner, other.inner, keys), doubted)

    def copied(self, state: State) -> State:
        """The same state, once more."""
        return State(self.filters.from_bytes(self.filters.to_bytes(state.inner)), set(state.doubted))

    def doubt(self, state: State, may_lack: Callable[[str], bool]) -> Lost:
        """Events of some scopes may be lost; the outermost that held, and were not in doubt before."""
        lost, outermost = Lost(), state.inner.levels[-1]
        for level in state.inner.levels:
            for code in _set(level):
                if may_lack(key := level.keys.key(code)) and key not in state.doubted:
                    state.doubted.add(key)
                    if level is outermost:
                        lost.append((self.filters.shown(key), int(state.inner.since[0, code])))
        return lost


def _is_open(state: State, place: tuple[int, str | None]) -> bool:
    """Whether an event that satisfies the entrance goes on outward from a scope."""
    at, key = place
    return key is None or key in state.doubted or not _holds(state.inner, at, key)


def _holds(state: filter.State, at: int, key: str) -> bool:
    """Whether the bit of a scope on a level is set."""
    keys, words = state.levels[at]
    return (code := keys.code(key)) < len(words) and bool(words[code])


def _clear(state: filter.State, at: int, key: str) -> Instant:
    """Reset the bit of a scope on a level; since when it held, if that is the outermost."""
    keys, words = state.levels[at]
    words[code := keys.code(key)] = 0
    if at < len(state.levels) - 1:
        return BEGINNING
    since, state.since[0, code] = int(state.since[0, code]), BEGINNING
    return since


def _set(level: Level) -> list[int]:
    """The scopes of a level whose bit is set, as codes."""
    return [int(code) for code in np.flatnonzero(level.words)]
