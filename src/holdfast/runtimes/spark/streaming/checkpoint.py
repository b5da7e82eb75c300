"""The checkpoint of a streaming query: a folder with its plan, its log of files, its ledger and its states.

CHECKPOINT/
  query.json      the plan: operators, number of shards, how files are read
  lock            locked while a query runs
  files.jsonl     the log of files that have arrived (`log`)
  waiting.json    files that have arrived and are not in the log yet
  stop            while it exists, no further files are read
  ledger.sqlite   the counts of the last batches, and the active conditions (`ledger`)
  spark/          Spark's own checkpoint: offsets, commits, states of the shards
  spark-N/        the same of a later generation, which has more stages (`generation`)
  states-N/       the states of the shards of the generation before, until the first batch is done
"""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from ....engine.operator import latest_time, without_names
from ....errors import UsageError
from ....files.whole import WholeFile
from ....lang.condition import Checked
from ....model.instant import BEGINNING, Instant
from ....plan.compile import in_words
from ....plan.resume import find_changed_meanings, resume
from ....plan.revise import keeps_its_machine, operator_for_revision_in_shards, refusal_in_shards
from ..job import FormerDefinition, Job, OperatorSlot

LOST = "put back a copy of the whole checkpoint, together with the sink, or start a new checkpoint"
"""The remedy if a part of a checkpoint is damaged or missing."""

_FORM = 8
"""The format of checkpoints.  There is no migration: a checkpoint of another format is refused."""

SHARDS = 16
"""The default number of shards: enough for some tens of cores; each shard costs a little in every batch."""


_GENERATIONS = re.compile(r"spark|(spark|states)-[0-9]+")


class Generation(msgspec.Struct, frozen=True):
    """One of the Spark checkpoints that a query has in succession. Each has a fixed number of stages."""

    number: int = 0
    batch: int = 0
    """The number of its first batch; Spark counts from zero in each generation."""
    offset: dict[str, int] = msgspec.field(default_factory=lambda: {"files": 0})
    """The offset of the source at its start."""
    states: dict[str, int] = {}
    """The files with the states of the generation before, and their checksums."""


FIRST = Generation()


class Plan(msgspec.Struct, frozen=True):
    """The content of `query.json`: the identity of a query, its operators, and how it reads files."""

    id: str
    shards: int
    slots: tuple[OperatorSlot, ...] = ()
    stages: int = 1
    """The number of stateful operators of Spark, one per stage; it never changes within a generation."""
    next_number: int = 0
    meanings: dict[str, dict[str, str]] = {}
    """The meaning of each subscription in words, to tell what a revision has changed."""
    reading: dict[str, str] = {}
    """How files are read, by command-line option; a change would make it another stream."""
    form: int = _FORM
    definition: bytes = b""
    """The definition that runs, pickled; a revision carries states over from it."""
    former_definitions: tuple[FormerDefinition, ...] = ()
    """Earlier definitions from which states are carried over."""
    generation: Generation = FIRST

    def job(self, checked: Checked) -> Job:
        """Return the job for a definition, which must be the definition of this plan."""
        return Job(checked, self.slots, former_definitions=self.former_definitions)


@dataclass(frozen=True)
class Checkpoint:
    """The paths of a checkpoint in one of its generations."""

    folder: Path
    generation: int = 0

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
        """While this file exists, no further files are read."""
        return self.folder / "stop"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def spark(self) -> Path:
        return self.folder / (f"spark-{self.generation}" if self.generation else "spark")

    @property
    def states(self) -> Path:
        """The folder with the states of the generation before this one."""
        return self.folder / f"states-{self.generation}"

    def has_generations_at(self, path: Path) -> bool:
        """Whether a path is inside a folder of a generation, which is removed when the generation ends."""
        inside = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
        return any(_GENERATIONS.fullmatch(name) for name in inside[:1])

    def other_generations(self) -> list[Path]:
        """Return the folders of generations other than this one."""
        found = (path for path in self.folder.iterdir() if _GENERATIONS.fullmatch(path.name))
        return [path for path in found if path not in (self.spark, self.states)]

    def load(self) -> Plan | None:
        """Read the plan. Returns `None` for a new checkpoint, and raises `UsageError` if the plan is lost."""
        if not self.query_file.exists():
            if any(_GENERATIONS.fullmatch(path.name) for path in self.folder.glob("*")):
                raise UsageError(f"{self.folder}: query.json is missing; {LOST}")
            return None
        try:
            plan = msgspec.json.decode(self.query_file.read_bytes(), type=Plan)
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.query_file}: not what it should be ({error}); {LOST}") from None
        if plan.form != _FORM:
            raise UsageError(
                f"{self.folder}: made by another version of Holdfast (format {plan.form}, not {_FORM}): end "
                "that query with the version that made it (--finish), then start a new checkpoint"
            )
        return plan

    def save(self, plan: Plan) -> None:
        """Write the plan, and wait until the disk has it."""
        with WholeFile(str(self.query_file)) as whole:
            whole.file.write(msgspec.json.format(msgspec.json.encode(plan)) + b"\n")
            whole.file.flush()
            os.fsync(whole.file.fileno())

    def save_waiting(self, incomplete: Sequence[str], unknown: Sequence[str]) -> None:
        """Write which files are incomplete and which have an unknown format."""
        raw = msgspec.json.encode({"incomplete": incomplete, "unknown": unknown})
        if not self.waiting.exists() or self.waiting.read_bytes() != raw:
            with WholeFile(str(self.waiting)) as whole:
                whole.file.write(raw)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """A context that holds the lock of the checkpoint. Raises an error if another process holds it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"--checkpoint {self.folder}: {error.strerror}; choose another place") from None
        try:
            if not _try_lock(file, attempts=10):
                raise UsageError(f"{self.folder}: another 'holdfast run' uses this checkpoint")
            yield
        finally:
            os.close(file)

    def is_locked(self) -> bool:
        """Whether a query runs on the checkpoint now."""
        try:
            file = os.open(self.folder / "lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(file, attempts=1)
        finally:
            os.close(file)


def _try_lock(file: int, attempts: int) -> bool:
    """Take a lock if it is free, and return whether it was.

    `is_locked` in another process may hold it briefly.
    """
    for attempt in range(attempts):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if attempt + 1 < attempts:
                time.sleep(0.05)
    return False


# --- the plan ----------------------------------------------------------------------------------------


def plan_query(
    old: Plan | None,
    checked: Checked,
    reading: dict[str, str],
    shards: int | None,
    watermarks: Mapping[str, Instant] = MappingProxyType({}),
    files: int = -1,
    *,
    stages: int | None = None,
) -> Plan:
    """Plan a query: unchanged operators retain their slots, new and revised ones get new slots.

    `watermarks` are those of the topics now, where new operators start. `files` is the number of files that
    the query has read. The plan has at least `stages` stages, and no fewer than the `old` one.
    """
    if old is None:
        old = Plan(uuid.uuid4().hex, shards or SHARDS, reading=reading, stages=stages or 1)
    elif shards is not None and shards != old.shards:
        raise UsageError(
            f"--shards {shards}: this checkpoint has {old.shards} shards, for good. "
            "Leave the option out, or start a new checkpoint."
        )
    _require_same_reading(old.reading, reading)
    meanings = in_words(checked)
    revised = _find_revised(old, checked, meanings)
    before, former_definitions = old, old.former_definitions
    if revised:
        before = _add_revised_slots(old, checked, revised, watermarks, files)
        former_definitions = (*former_definitions, FormerDefinition(old.definition, old.slots))
    slots = tuple(_assign_slots(before, checked, watermarks, files if old.meanings else -1))
    same = old.definition and meanings == old.meanings
    return msgspec.structs.replace(
        old,
        slots=slots,
        stages=max(old.stages, stages or 1, *(slot.record.stage + 1 for slot in slots)),
        next_number=max([before.next_number, *(slot.number + 1 for slot in slots)]),
        meanings=meanings,
        definition=old.definition if same else pickle.dumps(checked),
        former_definitions=former_definitions if any(slot.replaces is not None for slot in slots) else (),
        form=_FORM,
    )


def _assign_slots(
    old: Plan, checked: Checked, watermarks: Mapping[str, Instant], files: int
) -> Iterator[OperatorSlot]:
    """Yield the slots of operators that continue, and a new slot for each operator that starts now.

    Conditions on conditions that start later than the query are rebuilt from the files that were read.
    """
    free = old.next_number
    for resumed in resume([slot.record for slot in old.slots], checked, sharded=True):
        if resumed.before is not None:
            yield msgspec.structs.replace(old.slots[resumed.before], record=resumed.operator.record)
        else:
            at = latest_time(watermarks, resumed.operator.clock, BEGINNING)
            yield OperatorSlot(
                free,
                resumed.operator.record,
                at,
                files=files if resumed.operator.starts_from_standings else -1,
            )
            free += 1


def _add_revised_slots(
    old: Plan, checked: Checked, names: Sequence[str], watermarks: Mapping[str, Instant], files: int
) -> Plan:
    """Return the plan with a new slot for each revised condition, which replaces its former slot.

    A condition that shares a machine with others keeps its slot if the machine can restart it alone.
    """
    remaining = [
        msgspec.structs.replace(slot, record=without_names(slot.record, names)) for slot in old.slots
    ]
    added = []
    at = {name: slot.number for slot in old.slots for group in slot.record.names for name in group}
    in_place = [name for name in names if keeps_its_machine(name, checked)]
    moved = [name for name in names if name not in in_place]
    for number, name in enumerate(moved, old.next_number):
        operator = operator_for_revision_in_shards(name, checked)
        watermark = latest_time(watermarks, operator.clock, BEGINNING)
        added.append(OperatorSlot(number, operator.record, watermark, at[name], files))
    used = {at[name] for name in in_place}
    slots = (*(slot for slot in remaining if any(slot.record.names) or slot.number in used), *added)
    return msgspec.structs.replace(old, slots=slots, next_number=old.next_number + len(added))


def _find_revised(old: Plan, checked: Checked, new: dict[str, dict[str, str]]) -> list[str]:
    """Return the conditions whose meaning has changed. Refuse those that cannot carry over their state."""
    other_generations = find_changed_meanings(
        [slot.record for slot in old.slots], checked
    )  # words do not say all
    known = [name for name in new if name in old.meanings]
    changed = [name for name in known if old.meanings[name] != new[name] or name in other_generations]
    for name in changed:
        words, before = new[name], old.meanings[name]
        option = next(
            (resumed for resumed in words | before if words.get(resumed, "") != before.get(resumed, "")), None
        )
        difference = "it means something else"
        if option is not None:
            difference = f"its {option} was '{before.get(option, '')}' and is '{words.get(option, '')}'"
        if why := refusal_in_shards(name, FormerDefinition(old.definition, old.slots).checked, checked):
            raise UsageError(
                f"'{name}' has changed: {difference}. It cannot keep what is known: {why}. {_REMEDY}"
            )
    return changed


_REMEDY = (
    "What holds now was decided by the old definition: give the new condition a name of its own "
    "(the old one may be removed), or start a new checkpoint."
)


def _require_same_reading(old: dict[str, str], new: dict[str, str]) -> None:
    for option in old.keys() | new.keys():
        if old.get(option, "") != new.get(option, ""):
            raise UsageError(
                f"{option} was '{old.get(option, '')}' and is '{new.get(option, '')}': that is another "
                "stream. Use what it was, or start a new checkpoint."
            )
