"""A shard of a live query: what its machines remember, and what they say of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from ...compilers.stages import Operator, progress, until
from ...errors import UsageError
from ...lang.condition import Checked
from ...machines.ordered import Ordered
from ...model.batch import concatenate, from_events, from_ipc, with_progress
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.topic import Topic
from .checkpoint import Query, Runner, operators_of, runners_of
from .notice import schema_of, table_of, to_table
from .pack import PROGRESS, topic_and_events


@dataclass(frozen=True)
class Machines:
    """What runs in every shard: filters, and operators by number."""

    runners: Sequence[Runner]
    operators: Mapping[int, Operator]

    @cached_property
    def progress(self) -> frozenset[str]:
        """The topics that say how far time has come for components."""
        return progress(self.operators.values())

    @cached_property
    def waiting(self) -> frozenset[str]:
        """The topics of which every shard must know how far time has come."""
        ordered = {runner.group.topic.name for runner in self.runners if runner.group.wait is not None}
        return self.progress | ordered


def machines_of(query: Query, checked: Checked) -> Machines:
    """The machines of a plan, where they run."""
    return Machines(runners_of(query, checked.conditions), operators_of(query, checked))


class Kept(msgspec.Struct):
    """The state of a machine, and what its conditions meant."""

    prints: tuple[str, ...]
    state: bytes


class Shard(msgspec.Struct):
    """What a shard remembers: the machines' states by number, and how far time has come."""

    machines: dict[int, Kept] = {}
    reached: dict[str, Instant] = {}


class Packet(msgspec.Struct):
    """A packed row that has arrived."""

    machine: int
    part: int
    events: bytes


class Said(NamedTuple):
    """What a shard says of a batch: notifications, and what components of later stages hear."""

    told: pa.Table
    heard: dict[str, list[Event]]


Arranging = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The order in which a shard takes the events of a batch, given as they arrived."""


def as_arrived(events: pa.RecordBatch) -> pa.RecordBatch:
    return events


def stepped(
    machines: Machines,
    topics: Sequence[Topic],
    shard: Shard,
    packets: Iterable[Packet],
    arranged: Arranging = as_arrived,
    *,
    stage: int = 0,
    is_first: bool = True,
) -> tuple[Shard, Said]:
    """Take a batch's packets: the shard afterwards, and what the machines of a stage say.

    Filters are of the first stage; operators without a key run in the first shard only.
    """
    before, arrived = shard.reached, dict[int, list[bytes]]()
    for packet in sorted(packets, key=lambda packet: packet.part):
        arrived.setdefault(packet.machine, []).append(packet.events)
    after = Shard({}, _advanced(before, arrived.get(PROGRESS, ())))
    tables, heard = list[pa.Table](), dict[str, list[Event]]()
    for runner in machines.runners if stage == 0 else ():
        known = shard.machines.get(runner.number)
        kept, passed = _filtered(
            runner, known, arrived.get(runner.number, ()), before, after.reached, arranged
        )
        if kept is not None:
            after.machines[runner.number] = kept
        if passed is not None and len(passed):
            tables.append(table_of(runner.group, topics, passed))
    was, now = (until(reached, machines.progress, BEGINNING) for reached in (before, after.reached))
    for number, operator in machines.operators.items():
        if operator.stage == stage and (operator.key or is_first):
            kept, said = _detected(operator, shard.machines.get(number), arrived.get(number, ()), was, now)
            if kept is not None:
                after.machines[number] = kept
            if said:
                tables.append(to_table(topics, list(operator.addressed(said))))
                heard |= operator.retold(said)
    return after, Said(pa.concat_tables([schema_of(topics).empty_table(), *tables]), heard)


def _advanced(reached: Mapping[str, Instant], told: Iterable[bytes]) -> dict[str, Instant]:
    latest = dict(reached)
    for raw in told:
        found = msgspec.msgpack.decode(raw, type=dict[str, int])
        latest |= {topic: max(at, latest.get(topic, BEGINNING)) for topic, at in found.items()}
    return latest


# --- filters -----------------------------------------------------------------------------------------


def _filtered(
    runner: Runner,
    known: Kept | None,
    raw: Sequence[bytes],
    before: Mapping[str, Instant],
    after: Mapping[str, Instant],
    arranged: Arranging,
) -> tuple[Kept | None, pa.RecordBatch | None]:
    """What filters remember and let pass; nothing new where nothing has come."""
    topic, machine, wait = runner.group.topic, runner.group.machine, runner.group.wait
    if not raw and not (wait is not None and before != after):
        return known, None
    state = _filters_state(runner, known, before.get(topic.name, BEGINNING))
    batch = arranged(concatenate(map(from_ipc, raw))) if raw else from_events(topic, [])
    state, passed = machine.step(state, batch, _behind(after.get(topic.name, BEGINNING), wait))
    return Kept(runner.prints, machine.to_bytes(state)), passed


def _filters_state(runner: Runner, known: Kept | None, reached: Instant) -> Any:
    """The machine's state; one that starts late starts where time has come to for all."""
    machine = runner.group.machine
    if known is not None:
        if not set(runner.prints) <= set(known.prints):
            raise _changed(chain.from_iterable(runner.group.conditions))
        return machine.from_bytes(known.state, [known.prints.index(print) for print in runner.prints])
    state = machine.initial()
    reached = max(reached, runner.reached)
    if isinstance(machine, Ordered) and reached > BEGINNING:
        state, _ = machine.advance(state, _behind(reached, runner.group.wait))
    return state


def _behind(reached: Instant, wait: int | None) -> Instant:
    return reached if reached in (BEGINNING, NEVER) else reached - (wait or 0)


def _changed(names: Iterable[str]) -> UsageError:
    return UsageError(f"the definition has changed ({', '.join(names)}): start it with a new checkpoint")


# --- operators ---------------------------------------------------------------------------------------


def _detected(
    operator: Operator, known: Kept | None, raw: Sequence[bytes], was: Instant, now: Instant
) -> tuple[Kept | None, list[Transition]]:
    """What components remember and say; time goes on in every shard, whether events come or not."""
    if not raw and now == was:
        return known, []
    batches = _by_topic(raw)
    latest = was if now == NEVER else now
    if latest > BEGINNING:  # whoever has heard nothing must know it as well
        first = next(iter(operator.topics.values()))
        batch = batches.get(first.name, from_events(first, []))
        batches[first.name] = with_progress(batch, len(batch), latest)
    state, said = operator.machine.step(_operators_state(operator, known, was), batches, now)
    return Kept(operator.prints, operator.machine.to_bytes(state)), said


def _by_topic(raw: Iterable[bytes]) -> dict[str, pa.RecordBatch]:
    arrived: dict[str, list[pa.RecordBatch]] = {}
    for topic, events in map(topic_and_events, raw):
        assert topic is not None
        arrived.setdefault(topic, []).append(events)
    return {topic: concatenate(some) for topic, some in arrived.items()}


def _operators_state(operator: Operator, known: Kept | None, was: Instant) -> Any:
    """The state of the components; one that is new starts where time has come to for all."""
    machine = operator.machine
    if known is None:
        return machine.advance(machine.initial(), was)[0] if was > BEGINNING else machine.initial()
    state = machine.from_bytes(known.state)
    if known.prints == operator.prints:
        return state
    numbers = {print: i for i, print in enumerate(known.prints)}
    old = {print.rpartition(" ")[0] for print in known.prints}
    changed = [name for p in operator.prints if p not in numbers and (name := p.rpartition(" ")[0]) in old]
    if changed:
        raise _changed(changed)
    return machine.adopted(state, [numbers.get(print) for print in operator.prints])
