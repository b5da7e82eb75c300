"""What a part of the history says of the scopes of a state, whatever was before.

The state hears it twice: as if every scope had held when the part begins, and as if none had.  Where both
come to the same, what was before does not matter.  The whole of it is heard once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...kernels.guard import NONE, ON, SEEN, UNKNOWN
from ...lang.condition import Guarded
from ...machines.guard.state import RECORD
from ...model.batch import reached
from ...model.event import Event
from ...model.guard import Initially
from ...model.instant import BEGINNING, Instant
from ..operator import Operator
from .machine import operators

Ran = tuple[Operator, Any, str]
"""An operator, its state after a history, and the condition of it that is meant."""


class Settled(NamedTuple):
    """What a part of the history says of a scope: when it spoke last, and what is so, if that is so whether
    the scope held before or not; with the readings that may be told of it."""

    at: Instant
    record: tuple[Any, ...] | None = None
    waits: tuple[int, ...] = ()
    last: Event | None = None
    begun: Event | None = None
    told: Event | None = None
    """The event by which it came to that."""

    @property
    def on(self) -> bool:
        return self.record is not None and bool(self.record[_FLAGS] & ON)

    @property
    def known(self) -> bool:
        return self.record is not None and not self.record[_FLAGS] & UNKNOWN

    @property
    def since(self) -> Instant:
        return NONE if self.record is None else int(self.record[_SINCE])

    def put(self, state: Any, code: int, since: Instant) -> None:
        """Let a scope of a state be so."""
        assert self.record is not None
        state.scopes[code] = (*self.record[:_SINCE], since, *self.record[_SINCE + 1 :])
        if state.waits is not None:
            state.waits[2 * code : 2 * code + 2] = self.waits
        if self.last is not None:
            state.last.put_one(code, self.last)
        if self.begun is not None:
            state.begun.put_one(code, self.begun)


_SINCE, _FLAGS = ((RECORD.names or ()).index(name) for name in ("since", "flags"))
_AGREE = ("cand", "count", "level")


def from_both(guarded: Guarded) -> tuple[Guarded, Guarded]:
    """A state as it would begin on, and as it would begin off."""
    on, off = (_beginning(guarded, bit) for bit in _BITS)
    return on, off


_BITS: tuple[Initially, Initially] = ("on", "off")


def _beginning(guarded: Guarded, bit: Initially) -> Guarded:
    care = replace(guarded.care, initially=bit, quietly=False)
    return replace(guarded, name=f"{guarded.name}@{bit}", care=care)


def heard(
    states: Iterable[Guarded],
    history: Iterable[tuple[str, pa.RecordBatch]],
    until: Mapping[str, Instant],
    *,
    whole: bool,
) -> dict[str, dict[str, Settled]]:
    """What a history says of the scopes of states, by their names, when time has come as far as it has for
    each: all of the history, or its latest part."""
    meant = {one.name: (one, one) if whole else from_both(one) for one in states}
    running = [
        [one, one.machine.initial()]
        for one in operators(list({one.name: one for pair in meant.values() for one in pair}.values()))
    ]
    told: dict[tuple[str, str | None], Event] = {}
    latest: dict[str, Instant] = {}
    for topic, batch in history:
        latest[topic] = max(latest.get(topic, BEGINNING), reached(batch) or BEGINNING)
        for ran in running:
            if topic in ran[0].topics:
                ran[1], said = ran[0].machine.step(ran[1], {topic: batch}, latest[topic])
                told |= {(n.subscription, n.scope): n.event for n in ran[0].notifications(said)}
    come = {one.name: until.get(name, BEGINNING) for name, pair in meant.items() for one in pair}
    for ran in running:
        if (now := max(come[name] for name in ran[0].subscriptions)) > BEGINNING:
            ran[1], said = ran[0].machine.step(ran[1], {}, now)
            told |= {(n.subscription, n.scope): n.event for n in ran[0].notifications(said)}
    at = {name: (one, state) for one, state in running for name in one.subscriptions}
    found = {}
    for name, pair in meant.items():
        on, off = ((*at[one.name], one.name) for one in pair)
        found[name] = settled(on, off, told)
    return found


def settled(on: Ran, off: Ran, told: Mapping[tuple[str, str | None], Event]) -> dict[str, Settled]:
    """What both have come to, by keys: where they agree, what was before does not matter.  ``told`` has the
    last event that each told of a scope: of one that holds who began off, else who began on."""
    (held, f), (began, g) = _place(*on), _place(*off)
    machine: Any = off[0].machine
    found = {}
    for code in np.flatnonzero(began.there["flags"][:, g] & SEEN).tolist():
        key = began.keys.key(code)
        mine, other = began.there[code, g], held.there[held.keys.code(key), f]
        at = int(mine["last"])
        if (mine["flags"] ^ other["flags"]) & ON or any(mine[name] != other[name] for name in _AGREE):
            found[key] = Settled(at)
            continue
        cell = code * began.width + g
        waits = () if began.waits is None else tuple(began.waits[2 * cell : 2 * cell + 2].tolist())
        last = None if began.last.is_empty else began.last.event(code, at)
        waiting = mine["cand"] != NONE and not began.begun.is_empty
        begun = began.begun.event(cell, int(mine["cand"])) if waiting else None
        by = off[2] if mine["flags"] & ON else on[2]
        found[key] = Settled(at, mine.item(), waits, last, begun, told.get((by, machine.shown(key))))
    return found


def _place(operator: Operator, state: Any, name: str) -> tuple[Any, int]:
    """The state of a machine, and which condition of it is that of a name."""
    return state, next(i for i, names in enumerate(operator.names) if name in names)
