"""What a shard remembers: of each operator its state, whole or as it was with what it has taken since.

A state is decoded when it is first looked at, and stays so as long as the process has the shard.  A batch is
kept as what operators have taken of it, thinned to what changed something, and taken again where the process
is another: a state that goes on from there is the same [laws 1 and 2].  An operator that others may join is
kept as the bytes that have changed, since who joins must not hear what came before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from ....compilers.operator import Kept, Operator
from ....errors import UsageError
from ....machines.machine import Batches, Machine, Told
from ....model.batch import from_ipc, to_ipc, trimmed
from ....model.instant import BEGINNING, Instant
from .patch import EARLIER, patch, patched


class Step(msgspec.Struct, array_like=True, frozen=True):
    """What an operator has taken of a batch: how far it had looked before, the events of each topic, how far
    time came then; and when it wants to be woken after that."""

    looked: Instant
    batches: dict[str, bytes]
    until: Instant
    due: Instant | None


class Rewritten(msgspec.Struct, array_like=True, frozen=True):
    """What has changed in the bytes of an operator's state, and when it wants to be woken."""

    patch: bytes
    due: Instant | None


class Change(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a batch has changed in a shard.  ``token`` is that of what was written, ``follows`` of what it
    follows."""

    follows: bytes
    token: bytes
    reached: dict[str, Instant]
    steps: dict[int, Step]
    rewritten: dict[int, Rewritten]

    @property
    def is_something(self) -> bool:
        return bool(self.reached or self.steps or self.rewritten)


@dataclass(slots=True)
class Memory:
    """What is remembered of an operator: ``state``, or before it was decoded its bytes ``raw``, with what was
    taken ``since``; whom that serves, and when it wants to be woken."""

    kept: Kept
    raw: bytes
    due: Instant | None = None
    since: list[Step] = field(default_factory=list)
    machine: Machine | None = None
    """Whose the decoded state is."""
    state: Any = None

    def stored(self) -> bytes:
        """The bytes of the state, without what was taken since."""
        return self.raw if self.machine is None else self.machine.to_bytes(self.state)

    def copied(self) -> Memory:
        """The same, with a state of its own."""
        return Memory(self.kept, self.stored(), self.due, self.since)


def of(operator: Operator, state: Any) -> Memory:
    """What is remembered of an operator in that state."""
    return Memory(operator.kept, b"", operator.machine.due(state), [], operator.machine, state)


def awake(operator: Operator, memory: Memory | None, reached: Instant) -> Memory:
    """The memory with the state of an operator, for which time had come so far: it was not due, so it says
    nothing.  Whoever moves the state moves what is remembered, but not what an operator of another definition
    remembers, which others may take over."""
    machine = operator.machine
    if memory is None:
        it = of(operator, machine.initial())
    else:
        it = memory if memory.kept == operator.kept else memory.copied()
        settle(operator, it)
    if machine.is_timed and reached > BEGINNING:
        it.state, _ = machine.step(it.state, {}, reached)
    return it


def apart(operator: Operator, memory: Memory | None, reached: Instant) -> Any:
    """The state of an operator for others to use: what is remembered stays as it is."""
    return awake(operator, memory and memory.copied(), reached).state


def settle(operator: Operator, memory: Memory) -> None:
    """Let an operator take what it took since its state was as it is remembered."""
    if memory.machine is None or memory.kept != operator.kept:
        memory.state = operator.machine.from_bytes(memory.stored(), _numbers(memory.kept, operator))
    memory.machine, memory.kept = operator.machine, operator.kept
    since, memory.since = memory.since, []
    for step in since:
        memory.state = _taken(operator.machine, memory.state, step)


def _taken(machine: Machine, state: Any, step: Step) -> Any:
    if machine.is_timed and step.looked > BEGINNING:
        state, _ = machine.step(state, {}, step.looked)
    state, _ = machine.step(state, {topic: from_ipc(raw) for topic, raw in step.batches.items()}, step.until)
    return state


def step_of(
    operator: Operator, memory: Memory, looked: Instant, batches: Batches, until: Instant, told: Told
) -> Step | None:
    """What an operator has taken, as far as it changed something, of columns that decide; nothing if it did
    not."""
    some = batches
    if told.moved is not None:
        some = {topic: batches[topic].take(pa.array(rows)) for topic, rows in told.moved.items() if len(rows)}
        if not some:
            return None
        some = {topic: _deciding(operator, topic, batch) for topic, batch in some.items()}
    return Step(looked, {topic: to_ipc(batch) for topic, batch in some.items()}, until, memory.due)


def _deciding(operator: Operator, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = operator.looks_at[topic] | {"time", "source", "sequence"}
    return trimmed(batch.select([name for name in batch.schema.names if name in columns]))


def note(
    change: Change,
    number: int,
    operator: Operator,
    memory: Memory,
    taken: tuple[Instant, Batches, Instant],
    told: Told,
) -> None:
    """Note what has changed of an operator that has taken this: what it was, or the bytes of its state."""
    if operator.joins:
        before, memory.raw = memory.raw, memory.stored()
        if memory.raw != before:
            change.rewritten[number] = Rewritten(patch(before, memory.raw), memory.due)
    elif (step := step_of(operator, memory, *taken, told)) is not None:
        change.steps[number] = step


class _Memory(msgspec.Struct, forbid_unknown_fields=True):
    kept: Kept
    state: bytes
    due: Instant | None = None


class _Shard(msgspec.Struct, forbid_unknown_fields=True):
    operators: dict[int, _Memory] = {}
    reached: dict[str, Instant] = {}


@dataclass(slots=True)
class Shard:
    """What a shard remembers: of its operators by number, and how far time has come."""

    operators: dict[int, Memory] = field(default_factory=dict)
    reached: dict[str, Instant] = field(default_factory=dict)
    change: Change | None = None
    """What the last batch has changed; without it the shard is to be written whole."""

    @property
    def kept(self) -> dict[int, Kept]:
        """Whom its operators serve."""
        return {number: memory.kept for number, memory in self.operators.items()}

    def to_bytes(self) -> bytes:
        """What Spark keeps of it."""
        operators = {i: _Memory(one.kept, one.stored(), one.due) for i, one in self.operators.items()}
        return msgspec.msgpack.encode(_Shard(operators, self.reached))

    @staticmethod
    def from_bytes(raw: bytes) -> Shard:
        """The shard that Spark has kept."""
        try:
            it = msgspec.msgpack.decode(raw, type=_Shard)
        except msgspec.ValidationError:
            raise UsageError(EARLIER) from None
        return Shard({i: Memory(one.kept, one.state, one.due) for i, one in it.operators.items()}, it.reached)

    def whole(self, operators: Mapping[int, Operator]) -> bytes:
        """What Spark keeps of it when everything is written, which is noted of those who note their bytes."""
        for number, memory in self.operators.items():
            if memory.since:
                settle(operators[number], memory)
            if operators[number].joins:
                memory.raw = memory.stored()
        return self.to_bytes()

    def take(self, change: Change) -> None:
        """Note what a batch has changed."""
        self.reached |= change.reached
        for number, step in change.steps.items():
            memory = self.operators[number]
            memory.since.append(step)
            memory.due = step.due
        for number, one in change.rewritten.items():
            memory = self.operators[number]
            self.operators[number] = Memory(memory.kept, patched(memory.raw, one.patch), one.due)


def _numbers(kept: Kept, operator: Operator) -> tuple[int | None, ...] | None:
    """Which numbers its conditions had when a state was kept; ``None`` of those that have joined since, or
    at all if nothing has changed.  Whoever means something else is refused."""
    if kept.meanings == operator.meanings:
        return None
    numbers = {meaning: i for i, meaning in enumerate(kept.meanings)}
    found = tuple(map(numbers.get, operator.meanings))
    before = {name for names in kept.names for name in names}
    changed = [
        name
        for names, number in zip(operator.names, found, strict=True)
        for name in names
        if number is None and (name in before or not operator.joins)
    ]
    if changed:
        named = ", ".join(changed)
        raise UsageError(f"the definition has changed ({named}): start it with a new checkpoint")
    return found
