"""What a definition says, as machines that run on nodes: the only place that knows how they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...compilers import scalar
from ...compilers.chain import alone
from ...compilers.envelope import covering, gate, in_writing
from ...compilers.families import builds_on, operators
from ...compilers.filters.machine import filters, state_filter
from ...compilers.keys import shown
from ...compilers.operator import Operator
from ...errors import Unsupported
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked, Condition
from ...lang.ops import DeclareRegion, DeclareTopic, Let, Subscribe, UseGazetteer
from ...lang.parse import load, parse
from ...lang.show import show
from ...machines.doubt import Doubting
from ...machines.gate import Gate
from ...machines.machine import Machine
from ...model.event import Event, Notification, Transition, notify
from ...model.instant import Instant
from ...model.topic import Topic
from ...protocols.cbps import condition as cbps
from ...protocols.cbps.content import Constraint, Filter
from ...protocols.cbps.event import to_event
from ...protocols.cbps.parts import pins
from ...protocols.cbps.scopes import NOWHERE, Scopes, contains


@dataclass(frozen=True)
class Definition:
    """Topics and subscriptions of a scenario."""

    app: App
    checked: Checked

    @property
    def topics(self) -> dict[str, Topic]:
        """By name."""
        return {topic.name: topic for topic in self.checked.topics}

    @property
    def filters(self) -> dict[str, Condition]:
        """The subscriptions that look at one event at a time, by name."""
        return {condition.name: condition for condition in self.checked.conditions}

    def operators(self) -> dict[str, Operator]:
        """For each subscription the operator that serves it."""
        made = operators(self.checked)
        return {name: alone(made, name) for each in made for name in each.subscriptions}

    def readings(self) -> dict[str, tuple[str, ...]]:
        """For each subscription the topics whose readings it needs: its own, and those of all conditions that
        it builds on."""
        own = {name: set(each.listening()[name]) for name, each in self.operators().items()}
        above = {name: [other for other in builds_on(self.checked, name) if other in own] for name in own}
        changes = True
        while changes:
            changes = False
            for name, others in above.items():
                for other in others:
                    changes |= not own[name] <= own[other]
                    own[other] |= own[name]
        return {name: tuple(topic for topic in self.topics if topic in found) for name, found in own.items()}


def defined(text: str, folder: Path, lets: Mapping[str, Any] | None = None) -> Definition:
    """The definition in a ``.hf`` file beside the scenario, or that was written out; with other values of its
    parameters."""
    app = App() if not text else load(folder / text) if text.endswith(".hf") else parse(text)
    return Definition(app, check(app, folder, lets))


class Watch:
    """A subscription at work: what is told as events come, and as time does."""

    def __init__(self, operator: Operator, name: str) -> None:
        self._operator, self._name = operator, name
        self._state = operator.machine.initial()

    def react(self, event: Event) -> list[Notification]:
        """Take an event."""
        self._state, said = self._operator.machine.react(self._state, event)
        return self._told(said)

    def advance(self, until: Instant) -> list[Notification]:
        """Let event time come so far."""
        if not self._operator.machine.is_timed:
            return []
        self._state, said = self._operator.machine.advance(self._state, until)
        return self._told(said)

    @property
    def due(self) -> Instant | None:
        """Beyond which instant time must come before it says something by itself."""
        return self._operator.machine.due(self._state)

    def _told(self, said: list[Transition]) -> list[Notification]:
        told = self._operator.addressed(said)
        return [each for each in told if each.subscription == self._name and each.status != "late"]


# On publishers' nodes.


def on_motes(definition: Checked) -> dict[str, Machine | Gate]:
    """The machine of each condition, by name; each publisher will run it for its own samples.  One with a
    table lets pass what may matter to some row.

    >>> from holdfast.lang.parse import parse
    >>> text = "topic T (value float)  state Warm on T [value > 25; value < 22] per source"
    >>> list(on_motes(parse(text).check()))
    ['Warm']
    """
    found: dict[str, Machine | Gate] = {}
    for condition in definition.conditions:
        if (why := why_not_alone(condition)) is not None:
            raise Unsupported(f"'{condition.name}' {why}")
        found[condition.name] = gate(covering(condition)) if condition.tables else filters([condition])
    for operator in operators(definition):
        for name in set(operator.subscriptions) - found.keys():
            raise Unsupported(f"'{name}' looks at several sensors; a mote sees only its own samples")
    return found


def why_not_alone(condition: Condition) -> str | None:
    """Why not every sensor can evaluate a condition for itself, if it cannot."""
    alone = condition.keys and "source" in condition.keys[-1]
    if condition.forest is not None or not (alone or condition.momentary):
        return "has one state for several sensors; on motes each sensor has its own: write 'per source'"
    if condition.delivery.wait is not None:
        return "puts samples in order; a mote's own samples are: leave it out"
    return None


def scope(condition: Condition, event: Event) -> str | None:
    """The outermost scope of a condition that contains an event."""
    keys = [key for key in scalar.chain(condition)(event) or () if key is not None]
    return shown(keys[-1]) if keys and condition.keys else None


# On brokers.


def travelling(definition: Definition, condition: Condition) -> tuple[str, cbps.Replicated] | None:
    """A subscription as the text that goes to brokers, and what they make of it; nothing if it cannot.
    Of one with a table that is a gate, which covers all of its rows."""
    statements = definition.app.statements
    if condition.delivery.wait is not None or any(isinstance(s, UseGazetteer) for s in statements):
        return None
    if condition.tables:
        cover = covering(condition)
        ends = None if condition.momentary else scalar.predicate(cover.ends, condition.topic)
        return in_writing(statements, condition), replace(for_brokers(cover.condition), ends=ends)
    about = [s for s in statements if isinstance(s, Let | DeclareRegion)]
    (named,) = [s for s in statements if isinstance(s, Subscribe) and s.name == condition.name]
    text = show(App([DeclareTopic(condition.topic), *about, replace(named, topic=condition.topic.name)]))
    return text, for_brokers(condition)


def for_brokers(condition: Condition) -> cbps.Replicated:
    """A state filter as brokers, and who subscribes to it, run it."""
    predicates, chain = state_filter(condition), scalar.chain(condition)
    run = Doubting(filters([condition]))

    def told(said: Iterable[Transition]) -> list[Notification]:
        return [notify(condition.name, *moved[:4]) for moved in said]

    return cbps.Replicated(
        name=condition.name,
        inputs=(Filter((Constraint("topic", "text", "=", condition.topic.name),)),),
        event=partial(to_event, condition.topic),
        machine=run,
        told=told,
        chain=chain,
        reach=partial(_reach, condition, chain),
        enter=predicates.enter,
        leave=predicates.leave,
        momentary=condition.momentary,
        filterable=True,
        bits=lambda state: list(state.bits()),
        doubted=lambda state: state.doubted,
        doubt=lambda state, scopes: (state, run.doubt(state, partial(contains, scopes))),
        outlook=lambda _: None,
    )


def _reach(condition: Condition, chain: Callable[[Event], cbps.Chain | None], filter_: Filter) -> Scopes:
    """The scopes of the events that a filter lets pass: known if it pins all that they depend on."""
    pinned, needed = pins(filter_), {name for level in condition.keys for name in level}
    if condition.forest is not None or not needed <= pinned.keys():
        return None
    whole = {"source": "", **pinned, "topic": condition.topic.name, "time": 0, "sequence": 0}
    event = to_event(condition.topic, whole)
    keys = chain(event) if event is not None else None
    return NOWHERE if keys is None else frozenset(key for key in keys if key is not None)
