"""The common part of conditions over conditions (count, fold, overlap, mute).

Its machines and operators consume derived events. A new kind of this sort subclasses `DerivedMachine` and
calls `operator_over`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import msgspec
import pyarrow as pa

from ..engine.graph import advance_alone, push_alone
from ..engine.machine import Emission, Machine
from ..engine.operator import SCOPE, SINCE, STATUS, Keys, Operator, digest
from ..engine.waiting import PendingEvents
from ..lang.expressions import event as scalar
from ..lang.ops import Levels
from ..model.event import Event, Transition, Value
from ..model.instant import NEVER, Instant
from ..model.space import Forest
from .revision import Renumbering


class DerivedState(Protocol):
    """The state of a machine that consumes derived events."""

    @property
    def waiting(self) -> PendingEvents:
        """The events whose time the watermark has not passed."""


D = TypeVar("D", bound=DerivedState)


class DerivedMachine(Machine[D]):
    """The base class of machines that consume derived events.

    Events wait until the watermark has passed their time. Then `process` receives all events of one
    timestamp, in order. With ``waits=False``, each event is processed on arrival; this requires an upstream
    that emits in order of time. A subclass defines `topics`, `initial`, `process`, `is_initial` and the
    attributes below.
    """

    columns: ClassVar[tuple[str, str, str]] = (STATUS, SCOPE, SINCE)
    """The attributes of a derived event that have its status, scope and start."""
    state_type: ClassVar[type]
    """The class of the state, from which `msgspec` decodes it."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """The topic of the machine's output."""

        @property
        def own(self) -> tuple[str, ...]:
            """The attributes that the output has in addition to those of the event."""

        @property
        def dropped(self) -> frozenset[str]:
            """The attributes of the event that the output does not have."""

        @property
        def waits(self) -> bool:
            """Whether events may be out of order and therefore wait for the watermark."""

    def process(self, state: D, events: Sequence[Event]) -> Iterable[Transition]:
        """Apply the events of one timestamp, which are sorted. Return the transitions."""
        raise NotImplementedError

    def enqueue(self, state: D, event: Event) -> bool:
        """Store an event until the watermark passes it; return `False` if the watermark has already passed
        it."""
        return state.waiting.add(event) is not None

    def react(self, state: D, event: Event) -> tuple[D, list[Transition]]:
        if self.waits and self.enqueue(state, event):
            return state, []
        return state, [*self.process_left(state), *self.process(state, [event])]

    def process_left(self, state: D) -> list[Transition]:
        """Process events that a former definition stored, if events no longer wait."""
        return self.advance(state, NEVER)[1] if not self.waits and state.waiting.held else []

    def advance(self, state: D, watermark: Instant) -> tuple[D, list[Transition]]:
        emitted: list[Transition] = []
        while state.waiting.first < watermark:
            emitted += self.process(state, state.waiting.take_first_time())
        state.waiting.drop_before(watermark)
        return state, emitted

    def due(self, state: D) -> Instant | None:
        return None if state.waiting.first == NEVER else state.waiting.first

    def in_order(
        self, left: Sequence[Transition], causes: Sequence[bytes], emitted: Sequence[Transition]
    ) -> Emission:
        """Return an emission with the sort keys of its transitions.

        The transitions in `left` are from a former definition and come first. `causes` has for each other
        transition the key of the event that caused it (`engine.operator.order_keys`).
        """
        keys = [*[b""] * len(left), *causes]
        order = [key + place.to_bytes(4) for place, key in enumerate(keys)]
        return Emission({}, [*left, *emitted], order=order)

    def read(self, event: Event) -> tuple[str, str, Value]:
        """Return the status, scope and start of a derived event. The scope is empty if its condition has only
        one scope."""
        status, scope, since = (event.attributes.get(name) for name in self.columns)
        return effective_status(str(status), since), scope_name(scope), since

    def derive(self, event: Event, topic: str, *own: Value) -> Event:
        """Return the event as it is emitted, with the values `own` of the machine's own attributes."""
        attributes = {name: value for name, value in event.attributes.items() if name not in self.dropped}
        added = dict(zip(self.own, own, strict=True)) if own else {}
        return replace(event, topic=topic, attributes=attributes | added)

    def dump(self, state: D) -> bytes:
        return msgspec.msgpack.encode(state)

    def load(self, raw: bytes, was: Renumbering | None = None) -> D:
        if was is not None and was[0] is None:
            return self.initial()
        state: D = msgspec.msgpack.decode(raw, type=self.state_type)
        return state


def effective_status(status: str, since: Value) -> str:
    """Return the status of a derived event; ``revised`` becomes a start or an end."""
    if status != "revised":
        return status
    return "egress" if since is None else "ingress"


def scope_name(scope: Value) -> str:
    """Return the scope of a derived event; empty if its condition has only one scope."""
    return "" if scope is None else str(scope)


def after_revision(machine: DerivedMachine[D], state: D, revised: Iterable[Event]) -> D:
    """Return a copy of a state after its waiting events and the events of a revision.

    `revised` are the events that its upstreams emitted by the revision.
    """
    state, _ = advance_alone(machine, machine.load(machine.dump(state)), NEVER)
    for event in revised:
        state, _ = push_alone(machine, state, event)
    return advance_alone(machine, state, NEVER)[0]


def group_of(keys: Levels, forest: Forest | None = None) -> Callable[[Event], str | None]:
    """Return a function that computes the key of an event's outermost scope; `None` if the event is in no
    scope."""
    chain = scalar.chain(keys, forest)

    def group(event: Event) -> str | None:
        found = chain(event)
        return None if found is None else found[-1]

    return group


def operator_over(
    kind: str,
    name: str,
    machine: DerivedMachine[D],
    meaning: str,
    *,
    keyed: Callable[[str, pa.RecordBatch], Keys] | None = None,
) -> Operator:
    """Return the operator of a condition over conditions. Without `keyed` all events go to one shard."""
    return Operator(
        kind=kind,
        machine=machine,
        names=((name,),),
        meanings=(meaning,),
        reading_topics=((),),
        decisive_columns=dict.fromkeys(machine.topics, frozenset()),
        keyed=keyed,
        key=(kind, digest(name)),
        upstream_topics=frozenset(machine.topics),
        starts_from_standings=True,
    )
