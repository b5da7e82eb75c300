"""The state of a relation machine, in memory and as bytes.

The order of arrays in `dump_state` is the format of snapshots: change `load_state` with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ...model.instant import BEGINNING, Instant
from .roaming import RoamingGrid
from .rows import RelationRows, Row, join_rows, rows_of
from .ties import Bits, Ints, TieMembers


@dataclass
class RelationState:
    """The state of a relation machine.

    ``held`` and ``single`` are readings that the watermark has not passed. ``passed`` is the watermark minus
    the delay of ``ordered``, ``latest`` the latest time of any reading. ``grid`` and ``pairs`` are used only
    if all sources take part.
    """

    members: TieMembers
    bits: Bits
    names: dict[tuple[int, str], int]
    """The numbers of members, by slot and source."""
    sources: list[str]
    clock: Ints
    pairs: Ints
    grid: RoamingGrid | None
    held: list[RelationRows]
    single: list[Row]
    passed: Instant = BEGINNING
    latest: Instant = BEGINNING


def dump_state(state: RelationState) -> bytes:
    """Return a state as bytes, for `load_state`."""
    held = join_rows([*state.held, rows_of(state.single)])
    arrays = [*state.members, *state.bits, state.pairs, *held]
    packed = [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
    return msgspec.msgpack.encode((packed, list(state.names), state.passed, state.latest))


def load_state(state: RelationState, raw: bytes, *, is_new: bool) -> RelationState:
    """Fill an initial ``state`` from bytes, and return it. A new relation takes only the times."""
    packed, names, state.passed, state.latest = msgspec.msgpack.decode(raw, type=_StoredRelation)
    if is_new:
        return state
    arrays: list[Any] = [np.frombuffer(data, kind).reshape(shape).copy() for kind, shape, data in packed]
    state.members, state.bits, state.pairs = TieMembers(*arrays[:4]), Bits(*arrays[4:14]), arrays[14]
    state.names = {(slot, source): number for number, (slot, source) in enumerate(names)}
    state.sources = [source for _, source in names]
    state.clock[0] = max(state.members.stamps.max(initial=0), state.bits.looked.max(initial=0))
    held = RelationRows(*arrays[15:])
    state.held = [held] if len(held.times) else []
    if state.grid is not None:
        state.grid.recover(state.members.latest, state.members.points)
    return state


_StoredRelation = tuple[list[tuple[str, tuple[int, ...], bytes]], list[tuple[int, str]], Instant, Instant]
