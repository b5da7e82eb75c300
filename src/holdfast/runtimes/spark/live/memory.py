"""What a shard remembers: of each operator its state, whole or as it was with what has changed since.

A state is decoded when it is first looked at, and stays so as long as the process has the shard.  What a
batch has changed in it the machine says that notes it (``Noting``); a process that has not seen the batch
takes that.  Of a machine that does not, the bytes that have changed are kept, and its state only as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ....compilers.operator import Kept, Operator
from ....errors import UsageError
from ....machines.inherited import Inheriting
from ....machines.keys import Keys
from ....machines.machine import Machine, Noting
from ....model.event import Event, Transition
from ....model.instant import BEGINNING, Instant
from .patch import EARLIER, patch, patched


class Noted(msgspec.Struct, array_like=True, frozen=True):
    """What a machine says has changed in its state, and when it wants to be woken."""

    changed: bytes
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
    noted: dict[int, Noted]
    rewritten: dict[int, Rewritten]

    @property
    def is_something(self) -> bool:
        return bool(self.reached or self.noted or self.rewritten)


@dataclass(slots=True)
class Memory:
    """What is remembered of an operator: its bytes ``raw``, or where it was decoded ``state``, with what has
    changed ``since``; whom that serves, and when it wants to be woken."""

    kept: Kept
    raw: bytes
    due: Instant | None = None
    since: list[bytes] = field(default_factory=list)
    machine: Machine | None = None
    """Whose the decoded state is."""
    state: Any = None

    def stored(self) -> bytes:
        """The bytes of the state, without what has changed since."""
        return self.raw if self.machine is None else self.machine.to_bytes(self.state)

    def copied(self) -> Memory:
        """The same, with a state of its own."""
        return Memory(self.kept, self.stored(), self.due, self.since)

    def shut(self) -> None:
        """Remember bytes alone; scopes in which nothing holds are not among them."""
        self.raw, self.machine, self.state = self.stored(), None, None

    @property
    def held(self) -> int:
        """How many bytes it takes in this process, about."""
        return len(self.raw) + sum(map(len, self.since)) + _held(self.state)


_ENTRY = 250
"""About what an entry of a ``dict`` takes."""


def _held(state: Any) -> int:
    if isinstance(state, dict):
        return _ENTRY * len(state)
    if isinstance(state, (tuple, list)):
        return sum(map(_held, state))
    if isinstance(state, msgspec.Struct):
        return sum(map(_held, msgspec.structs.astuple(state)))
    return state.held if isinstance(state, Keys) else getattr(state, "nbytes", 0)


def of(operator: Operator, state: Any) -> Memory:
    """What is remembered of an operator in that state."""
    it = Memory(operator.kept, b"", operator.machine.due(state), [], operator.machine, state)
    return _noting(it)


def _noting(memory: Memory) -> Memory:
    """The memory of a decoded state, which notes from now on what changes in it."""
    if isinstance(memory.machine, Noting):
        memory.state = memory.machine.noting(memory.state)
    return memory


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
    """Decode a state, and let it take what has changed since it was as it is remembered."""
    machine, was = operator.machine, _numbers(memory.kept, operator)
    is_known = memory.machine is not None and memory.kept == operator.kept
    if not is_known:
        memory.state = machine.from_bytes(memory.stored(), was)
    memory.machine, memory.kept = machine, operator.kept
    since, memory.since = memory.since, []
    for raw in since:
        assert isinstance(machine, Noting)
        memory.state = machine.renewed(memory.state, raw, was)
    if since or not is_known:
        _noting(memory)


def note(change: Change, number: int, memory: Memory) -> None:
    """Note what has changed of an operator: what its machine says, or the bytes of its state."""
    changed = memory.machine.noted(memory.state) if isinstance(memory.machine, Noting) else None
    if changed is not None:
        memory.raw = b""
        if changed:
            change.noted[number] = Noted(changed, memory.due)
        return
    # Whole if a machine notes: who has heard of changes alone has no bytes to put it together with.
    before = b"" if isinstance(memory.machine, Noting) else memory.raw
    memory.shut()
    if memory.raw != before:
        change.rewritten[number] = Rewritten(patch(before, memory.raw), memory.due)


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
        """What Spark keeps of it when everything is written, after which that is all that is remembered."""
        for number, memory in self.operators.items():
            if memory.since:
                settle(operators[number], memory)
            memory.shut()
        return self.to_bytes()

    @property
    def held(self) -> int:
        """How many bytes it takes in this process, about."""
        return sum(memory.held for memory in self.operators.values())

    def take(self, change: Change) -> None:
        """Note what a batch has changed."""
        self.reached |= change.reached
        for number, noted in change.noted.items():
            self.operators[number].since.append(noted.changed)
            self.operators[number].due = noted.due
        for number, one in change.rewritten.items():
            memory = self.operators[number]
            self.operators[number] = Memory(memory.kept, patched(memory.raw, one.patch), one.due)


def heirs(kept: Kept, operator: Operator) -> dict[int, int]:
    """The conditions that have begun anew beside others since a state was kept, and which numbers those had
    then whose places they take."""
    before = {
        name: (number, meaning)
        for number, (names, meaning) in enumerate(zip(kept.names, kept.meanings, strict=True))
        for name in names
    }
    pairs = zip(operator.names, operator.meanings, strict=True) if operator.joins else ()
    return {
        i: before[name][0]
        for i, (names, meaning) in enumerate(pairs)
        for name in names
        if name in before and before[name][1] != meaning
    }


def begun_anew(operator: Operator, memory: Memory, at: Instant) -> tuple[Any, list[Transition]] | None:
    """The state of an operator of which some conditions have begun anew since it was kept, and what is to be
    said of scopes that held; ``None`` if there are none."""
    if memory.kept.meanings == operator.meanings or not (some := heirs(memory.kept, operator)):
        return None
    machine, raw = operator.machine, memory.stored()
    assert isinstance(machine, Inheriting)
    before = machine.from_bytes(raw)
    numbers = {meaning: i for i, meaning in enumerate(memory.kept.meanings)}
    state = machine.from_bytes(raw, tuple(map(numbers.get, operator.meanings)))
    state, _ = machine.step(state, {}, at)
    said: list[Transition] = []
    for condition, number in some.items():
        lost = {scope for i, scope, _ in machine.unknown(before) if i == number}
        bits = machine.bits(before, number)
        state = machine.begun(state, condition, bits.values(), at)
        topic = next(iter(operator.names[condition]))
        said += (
            Transition(Event(topic, at, operator.shows(scope) or ""), "unknown", scope, bit.since, condition)
            for scope, bit in bits.items()
            if scope not in lost
        )
    return state, said


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
