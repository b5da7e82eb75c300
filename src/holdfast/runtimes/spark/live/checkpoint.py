"""What a live query must find again: a folder with its plan, its log of files, its ledger, its states.

CHECKPOINT/
  query.json      who this is: the plan of machines, the number of shards, how files are read
  lock            held while a query runs
  files.jsonl     the log of arrivals (``log``)
  waiting.json    files that are there and not in the log
  stop            while it exists, nothing new is read
  ledger.sqlite   what the last batches did, and the conditions that hold (``ledger``)
  spark/          Spark's own: offsets, commits, and the states of the shards
  spark-N/        the same of a later generation, which has more stages (``generation``)
  states-N/       what the shards of the generation before it kept, until its first batch is done
"""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from ....compilers.families import (
    builds_on,
    conditions,
    goes_on_in_place,
    going_on,
    hindrance_in_shards,
    in_words,
)
from ....compilers.operator import ended, until
from ....compilers.resume import differing, resumed
from ....errors import UsageError
from ....files.whole import WholeFile
from ....lang.condition import Checked
from ....lang.hearing import keys_of
from ....model.instant import BEGINNING, Instant
from ....model.scope import unlisted
from ..plan import Edition, Seat, Work

LOST = "put back a copy of the whole checkpoint, together with the sink, or start a new checkpoint"
"""What to do where something of a checkpoint is damaged or missing."""

_FORM = 6
_GOES_ON = (2, 4, 5, _FORM)
"""The forms that are gone on with.  The second has no head of states, which an earlier version would not move
when it changes them; the third, of a few days, kept the events that had moved a state; the fourth has a list
of what batches have changed, of which one must read all to read the last, and of counts whole scopes; the
fifth has one generation."""

_QUOTES = 3
"""The earliest form in which no two scopes of several values share a name."""

SHARDS = 16
"""Enough for some tens of cores; each costs a little in every batch."""


_GENERATIONS = re.compile(r"spark|(spark|states)-[0-9]+")


class Generation(msgspec.Struct, frozen=True):
    """One of Spark's own checkpoints, which follow one another: each has its number of stages for good."""

    number: int = 0
    batch: int = 0
    """Which batch its first one is; Spark counts from there."""
    offset: dict[str, int] = msgspec.field(default_factory=lambda: {"files": 0})
    """Where the source was then."""
    states: dict[str, int] = {}
    """The files with what the shards had kept, and their checksums."""


FIRST = Generation()


class Plan(msgspec.Struct, frozen=True):
    """Who a checkpoint belongs to."""

    id: str
    shards: int
    seats: tuple[Seat, ...] = ()
    stages: int = 1
    """How many states Spark keeps for each shard, one after the other: in a generation it never changes."""
    next_number: int = 0
    meanings: dict[str, dict[str, str]] = {}
    """For each subscription what it says, in words, to tell what has changed."""
    reading: dict[str, str] = {}
    """Where and how events are read; another way would be another stream."""
    form: int = _FORM
    definition: bytes = b""
    """The definition that it runs, pickled: what is known was decided by it."""
    editions: tuple[Edition, ...] = ()
    """Earlier ones, of which states are taken over."""
    generation: Generation = FIRST

    @property
    def quotes(self) -> bool:
        """Whether no two scopes of several values share a name."""
        return self.form >= _QUOTES

    def work(self, checked: Checked) -> Work:
        """What is to be computed."""
        return Work(checked, self.seats, editions=self.editions)


@dataclass(frozen=True)
class Checkpoint:
    """The folder, in a generation."""

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
        """While it exists, nothing new is read."""
        return self.folder / "stop"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def spark(self) -> Path:
        return self.folder / (f"spark-{self.generation}" if self.generation else "spark")

    @property
    def states(self) -> Path:
        """What the shards of the generation before this one kept."""
        return self.folder / f"states-{self.generation}"

    def has_generations_at(self, path: Path) -> bool:
        """Whether something lies where generations do, which are removed when they are over."""
        inside = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
        return any(_GENERATIONS.fullmatch(name) for name in inside[:1])

    def others(self) -> list[Path]:
        """What belongs to other generations."""
        found = (path for path in self.folder.iterdir() if _GENERATIONS.fullmatch(path.name))
        return [path for path in found if path not in (self.spark, self.states)]

    def load(self) -> Plan | None:
        """The plan of the query that the checkpoint belongs to, if there is one yet."""
        if not self.query_file.exists():
            if any(_GENERATIONS.fullmatch(path.name) for path in self.folder.glob("*")):
                raise UsageError(f"{self.folder}: query.json is missing; {LOST}")
            return None
        try:
            plan = msgspec.json.decode(self.query_file.read_bytes(), type=Plan)
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.query_file}: not what it should be ({error}); {LOST}") from None
        if plan.form < _FORM and plan.form not in _GOES_ON:
            raise UsageError(
                f"{self.folder}: made by an earlier version of Holdfast: end that query with the version "
                "that made it (--finish), then start a new checkpoint"
            )
        if plan.form > _FORM:
            raise UsageError(f"{self.folder}: made by another version of Holdfast (form {plan.form})")
        return plan

    def save(self, plan: Plan) -> None:
        with WholeFile(str(self.query_file)) as whole:
            whole.file.write(msgspec.json.format(msgspec.json.encode(plan)) + b"\n")
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
    old: Plan | None,
    checked: Checked,
    reading: dict[str, str],
    shards: int | None,
    reached: Mapping[str, Instant] = MappingProxyType({}),
    files: int = -1,
    *,
    stages: int | None = None,
) -> Plan:
    """The plan of a definition: as it was where it has not changed, and new seats for what is new; it has so
    many ``stages`` at least, and no fewer than it had.

    ``reached`` is how far time has come for each topic, where new operators start, and ``files`` how many
    have been read.
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
    revised = _revised(old, checked, meanings)
    before, editions = old, old.editions
    if revised:
        before = _with_revisions(old, checked, revised, reached, files)
        editions = (*editions, Edition(old.definition, old.seats))
    seats = tuple(_seated(before, checked, reached, files if old.meanings else -1))
    same = old.definition and meanings == old.meanings
    return msgspec.structs.replace(
        old,
        seats=seats,
        stages=max(old.stages, stages or 1, *(seat.kept.stage + 1 for seat in seats)),
        next_number=max([before.next_number, *(seat.number + 1 for seat in seats)]),
        meanings=meanings,
        definition=old.definition if same else pickle.dumps(checked),
        editions=editions if any(seat.revises is not None for seat in seats) else (),
        form=_FORM,
    )


def _seated(old: Plan, checked: Checked, reached: Mapping[str, Instant], files: int) -> Iterator[Seat]:
    """The old seats of operators that go on, and a new one for each that starts now; one that counts what
    others say is to know what they have said in so many files."""
    free = old.next_number
    for one in resumed([seat.kept for seat in old.seats], checked, sharded=True):
        if one.before is not None:
            yield msgspec.structs.replace(old.seats[one.before], kept=one.operator.kept)
        else:
            at = until(reached, one.operator.clock, BEGINNING)
            yield Seat(free, one.operator.kept, at, files=files if one.operator.recounts else -1)
            free += 1


def _with_revisions(
    old: Plan, checked: Checked, names: Sequence[str], reached: Mapping[str, Instant], files: int
) -> Plan:
    """The plan with seats for conditions that mean something else now, in the place of those they had; those
    that run with others stay where they are."""
    staying = [msgspec.structs.replace(seat, kept=ended(seat.kept, names)) for seat in old.seats]
    added, before = [], Edition(old.definition, old.seats).checked
    at = {name: seat.number for seat in old.seats for some in seat.kept.names for name in some}
    in_place = [name for name in names if goes_on_in_place(name, checked)]
    moved = [name for name in names if name not in in_place]
    for number, name in enumerate(moved, old.next_number):
        operator = going_on(name, before, checked)
        come = until(reached, operator.clock, BEGINNING)
        added.append(Seat(number, operator.kept, come, at[name], files))
    used = {at[name] for name in in_place}
    seats = (*(seat for seat in staying if any(seat.kept.names) or seat.number in used), *added)
    return msgspec.structs.replace(old, seats=seats, next_number=old.next_number + len(added))


def _revised(old: Plan, checked: Checked, new: dict[str, dict[str, str]]) -> list[str]:
    """What has changed under its old name; what cannot take over what is known is refused."""
    others = differing([seat.kept for seat in old.seats], checked)  # words do not say all
    known = [name for name in new if name in old.meanings]
    changed = [name for name in known if old.meanings[name] != new[name] or name in others]
    for name in changed:
        words, before = new[name], old.meanings[name]
        what = next((one for one in words | before if words.get(one, "") != before.get(one, "")), None)
        said = "it means something else"
        if what is not None:
            said = f"its {what} was '{before.get(what, '')}' and is '{words.get(what, '')}'"
        why = "this checkpoint was made by an earlier version"
        if old.definition:
            why = hindrance_in_shards(name, Edition(old.definition, old.seats).checked, checked) or ""
        if why:
            raise UsageError(f"'{name}' has changed: {said}. It cannot keep what is known: {why}. {_REMEDY}")
    return changed


_REMEDY = (
    "What holds now was decided by the old definition: give the new condition a name of its own "
    "(the old one may be removed), or start a new checkpoint."
)


def require_told_apart(checked: Checked, held: Iterable[tuple[str, str | None]]) -> None:
    """Refuse the checkpoint of an earlier version in which one that hears others knows a scope of theirs by a
    name that two may have had; ``held`` are those that hold, by subscription."""
    known = {name: len(keys_of(one)) for name, one in conditions(checked).items()}
    for name, scope in held:
        above = builds_on(checked, name) if name in known else ()
        if above and scope is not None and known[name] > 1 and unlisted(scope, known[name]) is None:
            raise UsageError(
                f"this checkpoint was made by an earlier version of Holdfast, and '{above[0]}' knows in it a "
                f"scope of '{name}' as {scope}, by which two may be meant: end that query with the version "
                "that made it (--finish), then start a new checkpoint"
            )


def _require_same_reading(old: dict[str, str], new: dict[str, str]) -> None:
    for what in old.keys() | new.keys():
        if old.get(what, "") != new.get(what, ""):
            raise UsageError(
                f"{what} was '{old.get(what, '')}' and is '{new.get(what, '')}': that is another stream. "
                "Use what it was, or start a new checkpoint."
            )
