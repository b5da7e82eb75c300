"""The state of a shard: for each operator its bytes, or its decoded state, and the changes since.

A state is decoded when it is first used and remains decoded while the process has the shard. After a batch
only its changes are written: the delta that the machine returns (`Machine.delta`) or, for a machine without
deltas, a patch of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ....engine.carry_over import CarryingOver
from ....engine.graph import Graph, advance_alone
from ....engine.key_codes import KeyCodes
from ....engine.machine import Machine
from ....engine.operator import Operator, OperatorRecord
from ....errors import UsageError
from ....model.event import Event, Transition
from ....model.instant import Instant
from .patch import apply_patch, patch


class StateDelta(msgspec.Struct, array_like=True, frozen=True):
    """The delta of one operator's state as its machine returns it, and the time of its next timer."""

    delta: bytes
    due: Instant | None


class BytesPatch(msgspec.Struct, array_like=True, frozen=True):
    """A patch of the bytes of one operator's state, and the time of its next timer."""

    patch: bytes
    due: Instant | None


class ShardChange(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The changes of one batch in a shard.

    `token` identifies the shard's state after the batch, and `follows` its state before the batch.
    """

    follows: bytes
    token: bytes
    watermarks: dict[str, Instant]
    deltas: dict[int, StateDelta]
    patches: dict[int, BytesPatch]

    @property
    def has_content(self) -> bool:
        """Whether the batch has changed a watermark or the state of an operator."""
        return bool(self.watermarks or self.deltas or self.patches)


@dataclass(slots=True)
class StoredOperator:
    """The stored state of one operator: encoded in `raw`, or decoded in `state` if `machine` is set.

    `deltas` came after the encoded state and are not applied yet. `record` names the conditions that the
    state was written for. `due` is the time of the operator's next timer.
    """

    record: OperatorRecord
    raw: bytes
    due: Instant | None = None
    deltas: list[bytes] = field(default_factory=list)
    machine: Machine[Any] | None = None
    state: Any = None

    def dump(self) -> bytes:
        """Return the bytes of the state. Deltas that are not applied are not included."""
        return self.raw if self.machine is None else self.machine.dump(self.state)

    def copy(self) -> StoredOperator:
        """Return a copy whose state can change independently."""
        return StoredOperator(self.record, self.dump(), self.due, self.deltas)

    def encode(self) -> None:
        """Replace the decoded state by its bytes, which omit scopes without information."""
        self.raw, self.machine, self.state = self.dump(), None, None

    @property
    def size(self) -> int:
        """The approximate memory of the state in bytes."""
        return len(self.raw) + sum(map(len, self.deltas)) + _size_of(self.state)


_ENTRY = 250
"""The approximate memory of an entry of a `dict` in bytes."""


def _size_of(state: Any) -> int:
    if isinstance(state, dict):
        return _ENTRY * len(state)
    if isinstance(state, (tuple, list)):
        return sum(map(_size_of, state))
    if isinstance(state, msgspec.Struct):
        return sum(map(_size_of, msgspec.structs.astuple(state)))
    return state.held if isinstance(state, KeyCodes) else getattr(state, "nbytes", 0)


def store_state(operator: Operator, state: Any) -> StoredOperator:
    """Return a decoded state in its stored form. From now on its changes are tracked."""
    machine = operator.machine
    return StoredOperator(operator.record, b"", machine.due(state), [], machine, machine.track_changes(state))


class StoredStates:
    """The state of one operator of a graph (`engine.graph.States`), decoded when the graph first uses it.

    An idle operator is advanced to its `watermark` when it is decoded; it was not due, so it emits nothing.
    The state of a former operator is copied, because several operators may carry it over.
    """

    def __init__(self, graph: Graph, number: int, stored: StoredOperator | None, watermark: Instant) -> None:
        self.graph, self.number, self.stored, self.watermark = graph, number, stored, watermark
        self.is_decoded = False

    def due(self, operator: int) -> Instant | None:
        """Return when the operator has its next timer, without decoding its state."""
        if operator != self.number:
            return None
        machine = self.graph.operators[operator].machine
        return machine.due(machine.initial()) if self.stored is None else self.stored.due

    def take(self, operator: int) -> Any:
        """Return the decoded state. The first call decodes it and applies its deltas."""
        assert operator == self.number
        if not self.is_decoded:
            current = self.graph.operators[operator]
            if self.stored is None:
                self.stored = store_state(current, current.machine.initial())
            else:
                self.stored = self.stored if self.stored.record == current.record else self.stored.copy()
                decode(current, self.stored)
            self.is_decoded = True
            self.graph.catch_up(operator, self, self.watermark)
        assert self.stored is not None
        return self.stored.state

    def put(self, operator: int, state: Any) -> None:
        """Store a state, and the time of its next timer."""
        assert operator == self.number
        current = self.graph.operators[operator]
        if self.stored is None or not self.is_decoded:
            self.stored, self.is_decoded = store_state(current, state), True
        self.stored.state, self.stored.due = state, current.machine.due(state)


def copy_state(operator: Operator, stored: StoredOperator | None, watermark: Instant) -> Any:
    """Return a decoded copy of an operator's state, advanced to a watermark."""
    return StoredStates(Graph({0: operator}), 0, stored and stored.copy(), watermark).take(0)


def decode(operator: Operator, stored: StoredOperator) -> None:
    """Decode a stored state in place and apply its deltas."""
    machine, former_numbers = operator.machine, _former_numbers(stored.record, operator)
    is_decoded = stored.machine is not None and stored.record == operator.record
    if not is_decoded:
        stored.state = machine.load(stored.dump(), former_numbers)
    stored.machine, stored.record = machine, operator.record
    deltas, stored.deltas = stored.deltas, []
    for delta in deltas:
        assert machine.has_deltas
        stored.state = machine.apply_delta(stored.state, delta, former_numbers)
    if deltas or not is_decoded:
        stored.state = machine.track_changes(stored.state)


def record_change(change: ShardChange, number: int, stored: StoredOperator) -> None:
    """Add the changes of an operator's state to the changes of a batch."""
    machine = stored.machine
    delta = None if machine is None else machine.delta(stored.state)
    if delta is not None:
        stored.raw = b""
        if delta:
            change.deltas[number] = StateDelta(delta, stored.due)
        return
    # A process that knows only deltas has no bytes to which a patch could be applied.
    before = b"" if machine is not None and machine.has_deltas else stored.raw
    stored.encode()
    if stored.raw != before:
        change.patches[number] = BytesPatch(patch(before, stored.raw), stored.due)


class _OperatorBytes(msgspec.Struct, forbid_unknown_fields=True):
    record: OperatorRecord
    state: bytes
    due: Instant | None = None


class _ShardBytes(msgspec.Struct, forbid_unknown_fields=True):
    operators: dict[int, _OperatorBytes] = {}
    watermarks: dict[str, Instant] = {}


@dataclass(slots=True)
class ShardState:
    """The state of a shard: its operators by number, and the watermark of each topic."""

    operators: dict[int, StoredOperator] = field(default_factory=dict)
    watermarks: dict[str, Instant] = field(default_factory=dict)
    change: ShardChange | None = None
    """The changes of the last batch; `None` if the shard must be written whole."""

    @property
    def records(self) -> dict[int, OperatorRecord]:
        """The conditions for which the operators were stored."""
        return {number: stored.record for number, stored in self.operators.items()}

    def to_bytes(self) -> bytes:
        """Encode the shard for Spark's state store."""
        operators = {
            number: _OperatorBytes(stored.record, stored.dump(), stored.due)
            for number, stored in self.operators.items()
        }
        return msgspec.msgpack.encode(_ShardBytes(operators, self.watermarks))

    @staticmethod
    def from_bytes(raw: bytes) -> ShardState:
        """Decode a shard from Spark's state store. The states of its operators remain encoded."""
        decoded = msgspec.msgpack.decode(raw, type=_ShardBytes)
        operators = {
            number: StoredOperator(stored.record, stored.state, stored.due)
            for number, stored in decoded.operators.items()
        }
        return ShardState(operators, decoded.watermarks)

    def encode_all(self, operators: Mapping[int, Operator]) -> bytes:
        """Apply all deltas, encode all operators in place, and return the bytes of the whole shard."""
        for number, stored in self.operators.items():
            if stored.deltas:
                decode(operators[number], stored)
            stored.encode()
        return self.to_bytes()

    @property
    def size(self) -> int:
        """The approximate memory of the shard in bytes."""
        return sum(stored.size for stored in self.operators.values())

    def apply(self, change: ShardChange) -> None:
        """Apply the changes of the next batch, which another process has written."""
        self.watermarks |= change.watermarks
        for number, delta in change.deltas.items():
            self.operators[number].deltas.append(delta.delta)
            self.operators[number].due = delta.due
        for number, patched in change.patches.items():
            before = self.operators[number]
            raw = apply_patch(before.raw, patched.patch)
            self.operators[number] = StoredOperator(before.record, raw, patched.due)


def restarted_conditions(record: OperatorRecord, operator: Operator) -> dict[int, int]:
    """Return the conditions of an operator whose meaning changed.

    The result maps their present numbers to the numbers that they had.
    """
    before = {
        name: (number, meaning)
        for number, (names, meaning) in enumerate(zip(record.names, record.meanings, strict=True))
        for name in names
    }
    pairs = zip(operator.names, operator.meanings, strict=True) if operator.joins else ()
    return {
        i: before[name][0]
        for i, (names, meaning) in enumerate(pairs)
        for name in names
        if name in before and before[name][1] != meaning
    }


def restart_conditions(
    operator: Operator, stored: StoredOperator, at: Instant
) -> tuple[Any, list[Transition]] | None:
    """Restart the conditions of an operator whose meaning has changed since its state was stored.

    Return the state, and a transition to `unknown` for each scope that was active or inactive. Return `None`
    if no meaning has changed.
    """
    if stored.record.meanings == operator.meanings:
        return None
    restarted = restarted_conditions(stored.record, operator)
    if not restarted:
        return None
    machine, raw = operator.machine, stored.dump()
    assert isinstance(machine, CarryingOver)
    before = machine.load(raw)
    numbers = {meaning: i for i, meaning in enumerate(stored.record.meanings)}
    state = machine.load(raw, tuple(map(numbers.get, operator.meanings)))
    state, _ = advance_alone(machine, state, at)
    transitions: list[Transition] = []
    for condition, number in restarted.items():
        unknown = {scope for i, scope, _ in machine.unknown(before) if i == number}
        bits = machine.carry_overs(before, number)
        state = machine.start(state, condition, bits.values(), at)
        topic = next(iter(operator.names[condition]))
        transitions += (
            Transition(
                Event(topic, at, operator.label_of(scope) or ""), "unknown", scope, bit.since, condition
            )
            for scope, bit in bits.items()
            if scope not in unknown
        )
    return state, transitions


def _former_numbers(record: OperatorRecord, operator: Operator) -> tuple[int | None, ...] | None:
    """Return the number that each condition of an operator had when its state was stored.

    The number is `None` for a condition that was added since. The result is `None` if all conditions are as
    before. A changed condition is refused.
    """
    if record.meanings == operator.meanings:
        return None
    numbers = {meaning: i for i, meaning in enumerate(record.meanings)}
    found = tuple(map(numbers.get, operator.meanings))
    before = {name for names in record.names for name in names}
    changed = [
        name
        for names, number in zip(operator.names, found, strict=True)
        for name in names
        if number is None and (name in before or not operator.joins)
    ]
    if changed:
        raise UsageError(f"the definition has changed ({', '.join(changed)}): start it with a new checkpoint")
    return found
