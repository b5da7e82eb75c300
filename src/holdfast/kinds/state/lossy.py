"""A state filter for lossy links. It marks active scopes as uncertain if their events may be lost.

Subscribers are notified that an uncertain scope is ``unknown``. The scope stays uncertain until an event
decides. An event that satisfies the exit ends the scope. An event that satisfies only the entrance confirms
the scope, which is reported as ``known``.

An inner scope that is confirmed passes the event to the outer scope as if the inner scope had just started.
The reason is that its end may be among the lost events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...engine.machine import Machine
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from . import toggle as filter
from .toggle import Chain, Level, ScopeKeys, ToggleMachine

Lost = list[tuple[str | None, Instant]]
"""Labels of scopes, and the times of their starts."""


class LossyToggleState(NamedTuple):
    """The state of the filter, and the keys of uncertain scopes. The bits of uncertain scopes are set."""

    inner: filter.ToggleState
    uncertain: set[str]

    def bits(self) -> Iterator[str]:
        """Yield the keys of the scopes whose bit is set."""
        return (level.keys.key(code) for level in self.inner.levels for code in _set(level))


@dataclass(frozen=True)
class LossyToggleMachine(Machine[LossyToggleState]):
    """The machine of one state filter for lossy links. It processes single events."""

    filters: ToggleMachine

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.filters.topics

    def initial(self) -> LossyToggleState:
        return LossyToggleState(self.filters.initial(), set())

    def dump(self, state: LossyToggleState) -> bytes:
        """Encode the bits. A restored state has no uncertain scopes."""
        return self.filters.dump(state.inner)

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> LossyToggleState:
        return LossyToggleState(self.filters.load(raw), set())

    def react(self, state: LossyToggleState, event: Event) -> tuple[LossyToggleState, list[Transition]]:
        """Process one event. An event that satisfies only the entrance confirms the uncertain scopes that
        contain it."""
        keys = (self.filters.chain(event) or ()) if state.uncertain else ()
        if not state.uncertain.isdisjoint(keys):
            (spec,) = self.filters.filters
            if spec.enter(event) and not spec.leave(event):
                return self._confirm(state, keys, event)
        inner, emitted = self.filters.react(state.inner, event)
        ended = [key for at, key in enumerate(keys) if key in state.uncertain and not _holds(inner, at, key)]
        state.uncertain.difference_update(ended)
        return state._replace(inner=inner), emitted

    def _confirm(
        self, state: LossyToggleState, keys: Chain, event: Event
    ) -> tuple[LossyToggleState, list[Transition]]:
        """Apply an event that confirms uncertain scopes.

        Their bits are set again. An outermost scope stays active since its original start.
        """
        inner, outermost = state.inner, keys[-1]
        decided: dict[int, str] = {}
        for at, key in enumerate(keys):  # an event that satisfies the entrance stops at an active scope
            if key is not None and key in state.uncertain:
                decided[at] = key
            elif key is not None and _holds(inner, at, key):
                break
        since = [_clear(inner, at, key) for at, key in decided.items()]
        inner, emitted = self.filters.react(inner, event)
        state.uncertain.difference_update(decided.values())
        if outermost is not None and outermost in decided.values():
            inner.since[0, inner.levels[-1].keys.code(outermost)] = since[-1]
            emitted = [transition._replace(status="known", since=since[-1]) for transition in emitted]
        return state._replace(inner=inner), emitted

    def meets(self, events: Iterable[Event]) -> tuple[list[str], ...]:
        """Return the keys of the scopes of events, level by level."""
        return self.filters.meets(events)

    def replace_scopes(
        self, state: LossyToggleState, other: LossyToggleState, keys: ScopeKeys
    ) -> LossyToggleState:
        """Replace the scopes ``keys`` by those of another state, which is not changed."""
        replaced = set(chain.from_iterable(keys))
        uncertain = (state.uncertain - replaced) | (other.uncertain & replaced)
        return LossyToggleState(self.filters.replace_scopes(state.inner, other.inner, keys), uncertain)

    def copy(self, state: LossyToggleState) -> LossyToggleState:
        """Return a copy of the state, which shares nothing with the original."""
        return LossyToggleState(self.filters.load(self.filters.dump(state.inner)), set(state.uncertain))

    def mark_uncertain(self, state: LossyToggleState, may_lack: Callable[[str], bool]) -> Lost:
        """Mark active scopes of which events may be lost as uncertain.

        Return the outermost scopes that are newly uncertain, with the time of their start. ``may_lack``
        returns whether events of a key may be lost.
        """
        lost, outermost = Lost(), state.inner.levels[-1]
        for level in state.inner.levels:
            for code in _set(level):
                if may_lack(key := level.keys.key(code)) and key not in state.uncertain:
                    state.uncertain.add(key)
                    if level is outermost:
                        lost.append((self.filters.readable_scope(key), int(state.inner.since[0, code])))
        return lost


def _holds(state: filter.ToggleState, at: int, key: str) -> bool:
    """Whether the bit of a scope on a level is set."""
    keys, words = state.levels[at]
    return (code := keys.code(key)) < len(words) and bool(words[code])


def _clear(state: filter.ToggleState, at: int, key: str) -> Instant:
    """Reset the bit of a scope on a level. Return the time of its start if the level is outermost, otherwise
    `BEGINNING`."""
    keys, words = state.levels[at]
    words[code := keys.code(key)] = 0
    if at < len(state.levels) - 1:
        return BEGINNING
    since, state.since[0, code] = int(state.since[0, code]), BEGINNING
    return since


def _set(level: Level) -> list[int]:
    """Return the codes of the scopes of a level whose bit is set."""
    return [int(code) for code in np.flatnonzero(level.words)]
