"""What a live query must find again: a folder with its plan, its log of files, its ledger, its states.

CHECKPOINT/
  query.json      who this is: the plan of machines, the number of shards, how files are read
  lock            held while a query runs
  files.jsonl     the log of arrivals (``log``)
  waiting.json    files that are there and not in the log
  stop            while it exists, nothing new is read
  ledger.sqlite   what the last batches did, and the conditions that hold (``ledger``)
  spark/          Spark's own: offsets, commits, and the states of the shards
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import msgspec

from ...compilers.explain_correlation import in_words
from ...compilers.gathering import gatherings
from ...compilers.machine import Group
from ...compilers.resume import Kept, kept, resumed, started
from ...compilers.stages import Operator, operators
from ...errors import UsageError
from ...files.whole import WholeFile
from ...lang.component.show import show_query
from ...lang.condition import Checked, Component, Condition, Rule
from ...lang.ops import DeclareRegion
from ...lang.rewrite import names
from ...lang.show import show
from ...model.instant import BEGINNING, Instant
from ...model.space import Region

_FORM = 1


class Machine(msgspec.Struct, frozen=True):
    """A machine of the plan.  Its number is never used again, so that no old state can return."""

    number: int
    kept: Kept
    reached: Instant = BEGINNING
    """How far time had come for its topic when it was added."""


class Seat(msgspec.Struct, frozen=True):
    """An operator of the plan, known by its stage and its key."""

    number: int
    stage: int
    key: tuple[str, ...]


class Query(msgspec.Struct, frozen=True):
    """Who a checkpoint belongs to."""

    id: str
    shards: int
    machines: tuple[Machine, ...] = ()
    operators: tuple[Seat, ...] = ()
    stages: int = 1
    """How many states Spark keeps for each shard, one after the other; it never changes."""
    next_number: int = 0
    meanings: dict[str, dict[str, str]] = {}
    """For each subscription what it says, in words, to tell what has changed."""
    reading: dict[str, str] = {}
    """Where and how events are read; another way would be another stream."""
    form: int = _FORM


@dataclass(frozen=True)
class Runner:
    """A machine of the plan that runs; ``prints[i]`` tells its condition ``i`` from all others."""

    number: int
    group: Group
    prints: tuple[str, ...]
    reached: Instant = BEGINNING


@dataclass(frozen=True)
class Checkpoint:
    """The folder."""

    folder: Path

    @property
    def query_file(self) -> Path:
        return self.folder / "query.json"

    @property
    def log(self) -> Path:
        return self.folder / "files.jsonl"

    @property
    def waiting(self) -> Path:
        return self.folder / "waiting.json"

    @property
    def stop(self) -> Path:
        """While it exists, nothing new is read."""
        return self.folder / "stop"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def spark(self) -> Path:
        return self.folder / "spark"

    def load(self) -> Query | None:
        """The query that the checkpoint belongs to, if there is one yet."""
        if not self.query_file.exists():
            if self.spark.exists():
                raise UsageError(f"{self.folder}: query.json is missing; this checkpoint cannot be used")
            return None
        try:
            query = msgspec.json.decode(self.query_file.read_bytes(), type=Query)
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.query_file}: not what it should be ({error})") from None
        if query.form != _FORM:
            raise UsageError(f"{self.folder}: made by another version of Holdfast (form {query.form})")
        return query

    def save(self, query: Query) -> None:
        with WholeFile(str(self.query_file)) as whole:
            whole.file.write(msgspec.json.format(msgspec.json.encode(query)) + b"\n")
            whole.file.flush()
            os.fsync(whole.file.fileno())

    def note_waiting(self, incomplete: Sequence[str], unknown: Sequence[str]) -> None:
        """Say which files are there and cannot be read yet, or at all."""
        raw = msgspec.json.encode({"incomplete": incomplete, "unknown": unknown})
        if not self.waiting.exists() or self.waiting.read_bytes() != raw:
            with WholeFile(str(self.waiting)) as whole:
                whole.file.write(raw)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else runs on this checkpoint meanwhile."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"--checkpoint {self.folder}: {error.strerror}; choose another place") from None
        try:
            if not _is_taken(file, attempts=10):
                raise UsageError(f"{self.folder}: another 'holdfast run' uses this checkpoint")
            yield
        finally:
            os.close(file)

    def is_locked(self) -> bool:
        """Whether a query runs on it now."""
        try:
            file = os.open(self.folder / "lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not _is_taken(file, attempts=1)
        finally:
            os.close(file)


def _is_taken(file: int, attempts: int) -> bool:
    """Take a lock, if it is free; somebody who only looks has it for a moment."""
    for attempt in range(attempts):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if attempt + 1 < attempts:
                time.sleep(0.05)
    return False


# --- the plan ----------------------------------------------------------------------------------------


def planned(
    old: Query | None,
    checked: Checked,
    reading: dict[str, str],
    shards: int | None,
    reached: Mapping[str, Instant] = MappingProxyType({}),
) -> tuple[Query, list[Runner]]:
    """The plan of a definition: as it was where it has not changed, and new machines for what is new.

    ``reached`` is how far time has come for each topic, where new machines start.
    """
    if old is None:
        old = Query(uuid.uuid4().hex, shards or SHARDS, reading=reading)
    elif shards is not None and shards != old.shards:
        raise UsageError(
            f"--shards {shards}: this checkpoint has {old.shards} shards, for good. "
            "Leave the option out, or start a new checkpoint."
        )
    _require_same_reading(old.reading, reading)
    meanings = {condition.name: meaning(condition) for condition in checked.conditions}
    meanings |= {component.name: meaning_of_component(component) for component in checked.components}
    meanings |= {one.name: in_words(one) for one in checked.correlations}
    _require_same_meaning(old.meanings, meanings)
    staying, new = resumed([machine.kept for machine in old.machines], checked.conditions)
    runners = [_runner(old.machines[part.was], part.group, part.conditions) for part in staying]
    for number, (group, conditions) in enumerate(started(new), old.next_number):
        at = reached.get(group.topic.name, BEGINNING)
        runners.append(_runner(Machine(number, kept(group, conditions), at), group, conditions))
    machines = tuple(Machine(r.number, Kept(r.prints, r.group.conditions), r.reached) for r in runners)
    free = max([old.next_number, *(m.number + 1 for m in machines)])
    seats = tuple(_seated(old.operators, operators_in(checked), free))
    query = msgspec.structs.replace(
        old,
        machines=machines,
        operators=seats,
        stages=_stages(old, seats),
        next_number=max([free, *(seat.number + 1 for seat in seats)]),
        meanings=meanings,
    )
    return query, runners


def _seated(old: Sequence[Seat], found: Sequence[Operator], free: int) -> Iterator[Seat]:
    """The seats of operators: the old one of that stage and key, or a new one."""
    known = {(seat.stage, seat.key): seat for seat in old}
    for operator in found:
        at = (operator.stage, operator.key)
        yield known[at] if at in known else Seat(free, *at)
        free += at not in known


def _stages(old: Query, seats: Sequence[Seat]) -> int:
    """How many stages a query has; those of an old one are fixed."""
    needed = 1 + max((seat.stage for seat in seats), default=0)
    if old.meanings and needed > old.stages:
        raise UsageError(
            f"the definition now needs {needed} stages, one after the other, and this checkpoint has "
            f"{old.stages}, for good ('holdfast explain --engine spark' shows them). Start a new checkpoint."
        )
    return max(needed, old.stages)


def operators_of(query: Query, checked: Checked) -> dict[int, Operator]:
    """The operators of a plan by number, where they run."""
    seats = {(seat.stage, seat.key): seat.number for seat in query.operators}
    return {seats[operator.stage, operator.key]: operator for operator in operators_in(checked)}


def operators_in(checked: Checked) -> list[Operator]:
    """The operators of components and of correlations."""
    return [*operators(checked.components, checked.topics), *gatherings(checked.correlations)]


SHARDS = 16
"""Enough for some tens of cores; each costs a little in every batch."""


def _runner(machine: Machine, group: Group, conditions: Sequence[Condition]) -> Runner:
    return Runner(machine.number, group, kept(group, conditions).fingerprints, machine.reached)


def runners_of(query: Query, conditions: Sequence[Condition]) -> list[Runner]:
    """The machines of a plan, where they run."""
    staying, new = resumed([machine.kept for machine in query.machines], conditions)
    assert not new
    return [_runner(query.machines[part.was], part.group, part.conditions) for part in staying]


def meaning(condition: Condition) -> dict[str, str]:
    """What a condition says, in words."""
    used = {*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)}
    attributes = (condition.topic.by_name[name] for name in sorted(used))
    wait = condition.delivery.wait
    return {
        "topic": condition.topic.name,
        "key": " within ".join(", ".join(level) for level in condition.keys),
        "scope": "" if condition.forest is None else ", ".join(map(_region, condition.forest.regions)),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {condition.delivery.late}",
        "list of attributes": ", ".join(f"{a.name} {a.kind} {a.unit or ''}".rstrip() for a in attributes),
        "start": show(condition.enter),
        "end": show(condition.exit),
    }


def meaning_of_component(component: Component) -> dict[str, str]:
    """What a component says, in words."""
    wait, late = component.delivery.wait, component.delivery.late
    attributes = sorted({a for topic in component.listens for a in topic.attributes}, key=str)
    return {
        "topic": ", ".join(topic.name for topic in component.listens),
        "key": " and ".join(component.keys),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {late}",
        "list of attributes": ", ".join(f"{a.name} {a.kind} {a.unit or ''}".rstrip() for a in attributes),
        "list of queries": "; ".join(f"{name} = {show_query(query)}" for name, query in component.inputs),
        "start": _rule(component.enter),
        "end": _rule(component.exit),
        "place": str(component.here or ""),
        "tick": str(component.tick or ""),
        "way to make one of several readings": component.collide,
    }


def _rule(rule: Rule) -> str:
    sets = (f"{name} = {show(op)}" for name, op in rule.sets)
    return " ".join([show(rule.when), *([f"for {rule.hold} µs"] if rule.hold else []), *sets])


def _region(region: Region) -> str:
    return show(DeclareRegion(region.name, region.shape)).removeprefix("region ")


def _require_same_meaning(old: dict[str, dict[str, str]], new: dict[str, dict[str, str]]) -> None:
    """Refuse what changed under its old name."""
    for name in old.keys() & new.keys():
        for what in new[name] | old[name]:
            was, now = old[name].get(what, ""), new[name].get(what, "")
            if was != now:
                raise UsageError(f"'{name}' has changed: its {what} was '{was}' and is '{now}'. {_REMEDY}")


_REMEDY = (
    "What holds now was decided by the old definition: give the new condition a name of its own "
    "(the old one may be removed), or start a new checkpoint."
)


def _require_same_reading(old: dict[str, str], new: dict[str, str]) -> None:
    for what in old.keys() | new.keys():
        if old.get(what, "") != new.get(what, ""):
            raise UsageError(
                f"{what} was '{old.get(what, '')}' and is '{new.get(what, '')}': that is another stream. "
                "Use what it was, or start a new checkpoint."
            )
