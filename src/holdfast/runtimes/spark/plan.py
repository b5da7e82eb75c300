"""What runs: operators, numbered, wherever they are needed."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ...compilers.edit import with_ground
from ...compilers.families import conditions, on_history, operators
from ...compilers.operator import Kept, Operator
from ...compilers.resume import resumed
from ...errors import UsageError
from ...files.rest import Decisive
from ...lang.condition import Checked
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic


class Seat(msgspec.Struct, frozen=True):
    """An operator's place in a plan.  Its number is never used again, so that no old state can return."""

    number: int
    kept: Kept
    reached: Instant = BEGINNING
    """How far time had come for it when it was added."""
    revises: int | None = None
    """The operator of an earlier edition whose state it takes over under another definition."""
    files: int = -1
    """How many files had been read when it did, or when it began to count what others say: what they say
    settles what does not follow."""


class Edition(msgspec.Struct, frozen=True):
    """A definition as it was, and who served it."""

    definition: bytes
    seats: tuple[Seat, ...]

    @property
    def checked(self) -> Checked:
        """The definition; it was pickled by the owner of the checkpoint."""
        try:
            found = pickle.loads(self.definition)
        except Exception as error:  # whatever classes that no longer are lead to
            raise UsageError(
                "the definition that a checkpoint keeps was written by another version of Holdfast, and this "
                "one cannot read it: run the query once, unchanged, with the version that wrote it, until "
                f"'known' was told, or start a new checkpoint ({type(error).__name__}: {error})"
            ) from None
        assert isinstance(found, Checked)
        return found


class Revision(NamedTuple):
    """A condition that goes on under another definition: which operator knows what was known of it."""

    name: str
    before: int
    operator: Operator
    was: Checked


@dataclass(frozen=True)
class Work:
    """What is to be computed: plain values, which travel."""

    checked: Checked
    seats: tuple[Seat, ...] | None = None
    """The operators of a plan; without one they are numbered as they come."""
    whole: bool = False
    """Whether events go on with all their columns, whatever operators need."""
    editions: tuple[Edition, ...] = ()
    """What ran before, as far as somebody takes over its states; the latest last."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (self._packed,)

    @cached_property
    def _packed(self) -> bytes:
        return pickle.dumps([getattr(self, field.name) for field in fields(self)])

    @cached_property
    def mark(self) -> str:
        """Tells it from all others, in whatever process it is."""
        return blake2b(self._packed, digest_size=16).hexdigest()

    @classmethod
    def on_history(cls, checked: Checked, *, whole: bool = False) -> Work:
        """Of history, which is in order, nothing is late."""
        return cls(on_history(checked), whole=whole)

    @cached_property
    def operators(self) -> dict[int, Operator]:
        """The operators by number, those of an earlier stage before those that hear them."""
        if self.seats is None:
            found = dict(enumerate(operators(self.checked, sharded=True)))
        else:
            going_on = resumed([seat.kept for seat in self.seats], self.checked, sharded=True)
            found = {
                self.seats[one.before].number: one.operator for one in going_on if one.before is not None
            }
        return {i: replace(one, needs=None) for i, one in found.items()} if self.whole else found

    @cached_property
    def reached(self) -> dict[int, Instant]:
        """How far time had come for each operator of a plan when it was added."""
        return {seat.number: seat.reached for seat in self.seats or ()}

    @cached_property
    def revisions(self) -> dict[int, Revision]:
        """The operators that take over what others know."""
        found: dict[int, Revision] = {}
        seats = self.seats or ()
        for edition in reversed(self.editions):
            was = edition.checked
            before = Work(was, edition.seats).operators
            for seat in seats:
                if seat.revises in before and seat.number not in before:
                    ((name,),) = seat.kept.names
                    found[seat.number] = Revision(name, seat.revises, before[seat.revises], was)
            seats = edition.seats
        return found

    def edited(self, files: int) -> bool:
        """Whether somebody takes over what others know when so many files have been read."""
        return any(files <= seat.files for seat in self.seats or ())

    @property
    def edits(self) -> int:
        """Grows with every edit that files are to settle."""
        return max((seat.number for seat in self.seats or () if seat.files >= 0), default=-1)

    @cached_property
    def recounted(self) -> dict[int, str]:
        """The operators that count what others say, and begin to, or those others mean something else now: by
        number, with their names."""
        edited = {revision.name for i, revision in self.revisions.items() if i in self.operators}
        begun = {seat.number for seat in self.seats or () if seat.files >= 0}
        found = {}
        for number, one in self.operators.items():
            ground = with_ground(self.checked, one.subscriptions) if one.recounts else None
            if ground is not None and (number in begun or edited & conditions(ground).keys()):
                (found[number],) = one.subscriptions
        return found

    @property
    def published(self) -> tuple[Topic, ...]:
        """The topics that notifications can be of."""
        return self.checked.published

    @cached_property
    def listening(self) -> dict[str, list[tuple[int, Operator]]]:
        """Who listens to each topic."""
        found: dict[str, list[tuple[int, Operator]]] = {}
        for number, operator in self.operators.items():
            for topic in operator.topics:
                found.setdefault(topic, []).append((number, operator))
        return found

    @cached_property
    def looks_at(self) -> Decisive:
        """For each topic the columns that are read first; the rest only of events that are kept."""
        return {
            topic: frozenset().union(*(operator.looks_at[topic] for _, operator in some))
            for topic, some in self.listening.items()
        }

    @cached_property
    def timed(self) -> dict[int, Operator]:
        """The operators that mind how far time has come."""
        return {number: one for number, one in self.operators.items() if one.machine.is_timed}

    @cached_property
    def clocks(self) -> frozenset[str]:
        """The topics that tell them; who takes over what others know is to do so wherever they know it."""
        minding = self.timed.keys() | (self.revisions.keys() & self.operators.keys())
        return frozenset().union(*(self.operators[number].clock for number in minding))

    @property
    def is_heavy(self) -> bool:
        """Whether some operator needs nearly all readings, and those of a key in one place."""
        machines = (operator.machine for operator in self.operators.values())
        return any(not machine.compacts and machine.margin is None for machine in machines)

    def shards(self, cores: int) -> int:
        """How many shards so many cores should share: where there is much to do in each, some more let the
        cores end at about the same time."""
        return (8 if self.is_heavy else 2) * cores

    @property
    def stages(self) -> int:
        """How many stages follow one another."""
        return 1 + max((operator.stage for operator in self.operators.values()), default=0)


@lru_cache(maxsize=8)
def _unpacked(raw: bytes) -> Work:
    """The work as it travelled; a process has it once, whatever the number of its tasks."""
    work = Work(*pickle.loads(raw))
    work.__dict__["_packed"] = raw  # packed anew it need not be the same bytes
    return work
