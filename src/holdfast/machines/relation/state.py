"""What a machine of relationships knows, and how that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ...model.instant import BEGINNING, Instant
from .roaming import Grid
from .rows import Row, Rows, joined, rows_of
from .ties import Bits, Ints, Members


@dataclass
class State:
    """``held`` and ``single`` are readings that time has not passed; ``passed`` is how far it has come, for
    those who wait, ``reached`` the latest time of any reading."""

    members: Members
    bits: Bits
    names: dict[tuple[int, str], int]
    """The numbers of members, by slot and source."""
    sources: list[str]
    clock: Ints
    pairs: Ints
    grid: Grid | None
    held: list[Rows]
    single: list[Row]
    passed: Instant = BEGINNING
    reached: Instant = BEGINNING


def kept(state: State) -> bytes:
    """The state, as bytes."""
    held = joined([*state.held, rows_of(state.single)])
    arrays = [*state.members.columns, *state.bits.columns, state.pairs, *held]
    packed = [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
    return msgspec.msgpack.encode((packed, list(state.names), state.passed, state.reached))


def resumed(state: State, raw: bytes, *, is_new: bool) -> State:
    """The initial state as it was kept; of a relationship that is new only how far time has come."""
    packed, names, state.passed, state.reached = msgspec.msgpack.decode(raw, type=_Kept)
    if is_new:
        return state
    arrays: list[Any] = [np.frombuffer(data, kind).reshape(shape).copy() for kind, shape, data in packed]
    state.members, state.bits, state.pairs = Members(*arrays[:4]), Bits(*arrays[4:14]), arrays[14]
    state.names = {(slot, source): number for number, (slot, source) in enumerate(names)}
    state.sources = [source for _, source in names]
    state.clock[0] = max(state.members.stamps.max(initial=0), state.bits.looked.max(initial=0))
    held = Rows(*arrays[15:])
    state.held = [held] if len(held.times) else []
    if state.grid is not None:
        state.grid.recover(state.members.latest, state.members.points)
    return state


_Kept = tuple[list[tuple[str, tuple[int, ...], bytes]], list[tuple[int, str]], Instant, Instant]
