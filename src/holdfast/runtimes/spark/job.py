"""The job that readers and shards run: a checked definition, and its operators by number.

A `Job` travels to every Spark task. Its operators, graph and pushdown are computed once in each process.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ...engine.graph import Graph
from ...engine.operator import Operator, OperatorRecord
from ...errors import UsageError
from ...lang.condition import Checked
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ...plan.compile import conditions, on_history, operators, with_upstreams
from ...plan.pushdown import Pushdown
from ...plan.resume import resume


class OperatorSlot(msgspec.Struct, frozen=True):
    """The number and record of an operator in a checkpoint.

    A number is never used again, so an operator cannot find the state of a removed one.
    """

    number: int
    record: OperatorRecord
    watermark: Instant = BEGINNING
    """The watermark of the operator when the slot was added."""
    replaces: int | None = None
    """The number of the operator of a former definition whose state this one carries over."""
    files: int = -1
    """How many files the query had read when a revision added the slot; -1 if none did. These files are read
    again to rebuild the state of the operator."""


class FormerDefinition(msgspec.Struct, frozen=True):
    """A definition that the query ran before a revision, and the slots of its operators."""

    definition: bytes
    slots: tuple[OperatorSlot, ...]

    @property
    def checked(self) -> Checked:
        """The unpickled definition.

        The checkpoint must come from a trusted owner, because unpickling can run code.
        """
        try:
            found = pickle.loads(self.definition)
        except Exception as error:  # unpickling may raise anything where a class has gone
            raise UsageError(
                "another version of Holdfast wrote the definition in this checkpoint, and this one cannot "
                "read it: run the unchanged query once with that version, until its conditions are no longer "
                f"unknown, or start a new checkpoint ({type(error).__name__}: {error})"
            ) from None
        assert isinstance(found, Checked)
        return found


class RevisedOperator(NamedTuple):
    """A condition that continues under a changed definition, with its former operator."""

    name: str
    former_number: int
    former_operator: Operator
    former_definition: Checked


@dataclass(frozen=True)
class Job:
    """A definition and its operators, as Spark computes them. It travels to readers and shards as bytes."""

    checked: Checked
    slots: tuple[OperatorSlot, ...] | None = None
    """The operators of a checkpoint; without slots operators are numbered in topological order."""
    all_columns: bool = False
    """Whether events keep all columns, even those that no operator needs."""
    former_definitions: tuple[FormerDefinition, ...] = ()
    """The definitions whose states are carried over, the latest last."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _decode, (self._bytes,)

    @cached_property
    def _bytes(self) -> bytes:
        return pickle.dumps([getattr(self, field.name) for field in fields(self)])

    @cached_property
    def digest(self) -> str:
        """A hash by which all processes recognize the job."""
        return blake2b(self._bytes, digest_size=16).hexdigest()

    @classmethod
    def on_history(cls, checked: Checked, *, all_columns: bool = False) -> Job:
        """Return the job for a complete history, which is processed in order, so that no event is late."""
        return cls(on_history(checked), all_columns=all_columns)

    @cached_property
    def operators(self) -> dict[int, Operator]:
        """The operators by number, in topological order."""
        if self.slots is None:
            found = dict(enumerate(operators(self.checked, sharded=True)))
        else:
            resumed = resume([slot.record for slot in self.slots], self.checked, sharded=True)
            found = {self.slots[it.before].number: it.operator for it in resumed if it.before is not None}
        if self.all_columns:
            return {number: replace(operator, needed_columns=None) for number, operator in found.items()}
        return found

    @cached_property
    def graph(self) -> Graph:
        """The graph of the operators, which shards run."""
        return Graph(self.operators)

    @cached_property
    def start_watermarks(self) -> dict[int, Instant]:
        """The watermark of each operator of a checkpoint when its slot was added."""
        return {slot.number: slot.watermark for slot in self.slots or ()}

    @cached_property
    def revisions(self) -> dict[int, RevisedOperator]:
        """The operators that carry over the state of a former one, by number, over all former definitions."""
        found: dict[int, RevisedOperator] = {}
        slots = self.slots or ()
        for former in reversed(self.former_definitions):
            definition = former.checked
            former_operators = Job(definition, former.slots).operators
            for slot in slots:
                if slot.replaces in former_operators and slot.number not in former_operators:
                    ((name,),) = slot.record.names
                    replaced = former_operators[slot.replaces]
                    found[slot.number] = RevisedOperator(name, slot.replaces, replaced, definition)
            slots = former.slots
        return found

    def is_revised_since(self, files: int) -> bool:
        """Whether a revision was made when the query had read at least `files` files."""
        return any(files <= slot.files for slot in self.slots or ())

    @property
    def revision_number(self) -> int:
        """The number of the latest revision that rebuilt states from files; -1 if there was none.

        It grows with each revision.
        """
        return max((slot.number for slot in self.slots or () if slot.files >= 0), default=-1)

    @cached_property
    def reruns(self) -> dict[int, str]:
        """The conditions on conditions that are new or whose inputs were revised: names by operator number.

        Their states start from the states of their inputs, so the history of these inputs is processed again.
        """
        revised = {revision.name for i, revision in self.revisions.items() if i in self.operators}
        started = {slot.number for slot in self.slots or () if slot.files >= 0}
        found = {}
        for number, operator in self.operators.items():
            if operator.starts_from_standings:
                inputs = conditions(with_upstreams(self.checked, operator.subscriptions)).keys()
                if number in started or revised & inputs:
                    (found[number],) = operator.subscriptions
        return found

    @property
    def published(self) -> tuple[Topic, ...]:
        """The topics of the events that notifications can contain."""
        return self.checked.output_topics

    @cached_property
    def pushdown(self) -> Pushdown:
        """The columns and rows of each topic that the operators need."""
        return Pushdown(self.operators)

    @cached_property
    def watermark_operators(self) -> dict[int, Operator]:
        """The operators that use watermarks."""
        return {
            i: operator for i, operator in self.operators.items() if operator.machine.traits.uses_watermark
        }

    @cached_property
    def watermark_topics(self) -> frozenset[str]:
        """The topics whose watermarks shards need. A revised operator needs them to carry over its state."""
        numbers = self.watermark_operators.keys() | (self.revisions.keys() & self.operators.keys())
        return frozenset().union(*(self.operators[number].clock for number in numbers))

    @property
    def is_heavy(self) -> bool:
        """Whether some operator needs nearly all readings of a key in one place."""
        machines = (operator.machine for operator in self.operators.values())
        return any(not machine.traits.compacts and machine.traits.lookaround is None for machine in machines)

    def shards(self, cores: int) -> int:
        """Return how many shards to use.

        Heavy jobs use more, so that all cores end at about the same time.
        """
        return (8 if self.is_heavy else 2) * cores

    @property
    def stages(self) -> int:
        """The number of stages; there is a shuffle before each of them."""
        return 1 + max((operator.links.stage for operator in self.operators.values()), default=0)


@lru_cache(maxsize=8)
def _decode(encoded: bytes) -> Job:
    """Decode a job that was sent to this process.

    The cache makes that happen once per process, not once per task.
    """
    job = Job(*pickle.loads(encoded))
    job.__dict__["_bytes"] = encoded  # encoded again it need not be the same bytes
    return job
