"""Run machines, and reduce their output to what can be compared."""

from __future__ import annotations

from holdfast.definition.parse import parse
from holdfast.engine.machine import compact_part, transitions
from holdfast.kinds.state.plan_toggle import operators
from holdfast.model.event import Event


def machine_of(text):
    """The one machine that the filters of a definition make."""
    (operator,) = operators(parse(text).check().conditions)
    return operator.machine


def as_tuples(passed):
    """Transitions as plain tuples, condition by condition, each in order."""
    seen = [(t.condition, t.status, t.scope, t.since, t.event.order) for t in passed]
    return sorted(seen, key=lambda t: t[0])


def fold(machine, events, state=None):
    """The state after single events, and the output."""
    state = machine.initial() if state is None else state
    out = []
    for event in events:
        state, passed = machine.react(state, event)
        out += passed
    return state, as_tuples(out)


def step_batch(machine, batch, state=None, until=0):
    """The state after a batch, and the output."""
    state = machine.initial() if state is None else state
    state, emitted = machine.step(state, {machine.topic.name: batch}, until)
    return state, as_tuples(transitions(machine.topics, emitted))


def compact_batch(machine, batch, **how):
    """The result of compacting a batch of the only topic of the machine."""
    return compact_part(machine, {machine.topic.name: batch}, **how)[machine.topic.name]


def readings(*values, source="s", start=0, name="v", topic="T", place=None):
    """Readings, one at each instant from ``start``."""
    return [Event(topic, start + i, source, {name: value}, i, None, place) for i, value in enumerate(values)]


def dictionary_encoded(batch, *names):
    """The batch with those string columns as dictionaries."""
    for name in names:
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, batch.column(at).dictionary_encode())
    return batch
