"""The conditions of a scenario's definition as machines for nodes.

Only this module depends on the compilation of conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...definition.app import App
from ...definition.check import check
from ...definition.cover_text import in_writing
from ...definition.parse import load, parse
from ...definition.show import show
from ...engine.composite import operator_alone
from ...engine.gate import Gate
from ...engine.graph import advance_alone, push_alone
from ...engine.machine import Machine
from ...engine.operator import Operator
from ...errors import Unsupported
from ...kinds.state.condition import StateCondition
from ...kinds.state.cover import covering, gate
from ...kinds.state.plan_toggle import filter_machine
from ...kinds.state.syntax import DefineState
from ...lang.condition import Checked
from ...lang.expressions import event as scalar
from ...lang.expressions.key_text import readable_key
from ...lang.ops import DeclareRegion, DeclareTopic, Let, UseGazetteer
from ...model.event import Event, Notification, Transition
from ...model.instant import Instant
from ...model.topic import Topic
from ...plan.compile import builds_on, operators
from ..conditions import replicated_condition
from ..protocols.cbps import condition as cbps


@dataclass(frozen=True)
class ScenarioDefinition:
    """The topics and subscriptions of a scenario."""

    app: App
    checked: Checked

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics of the definition, by name."""
        return {topic.name: topic for topic in self.checked.topics}

    @property
    def filters(self) -> dict[str, StateCondition]:
        """The conditions that evaluate one event at a time, by name."""
        return {condition.name: condition for condition in self.checked.of(StateCondition)}

    def operators(self) -> dict[str, Operator]:
        """Return the operator that serves each subscription, by the name of the subscription."""
        made = operators(self.checked)
        return {name: operator_alone(made, name) for operator in made for name in operator.subscriptions}

    def topics_by_subscription(self) -> dict[str, tuple[str, ...]]:
        """Return the topics whose readings each subscription needs. They include the topics of all conditions
        on which it builds.
        """
        own = {name: set(operator.topics_by_name()[name]) for name, operator in self.operators().items()}
        above = {name: [other for other in builds_on(self.checked, name) if other in own] for name in own}
        changes = True
        while changes:
            changes = False
            for name, others in above.items():
                for other in others:
                    changes |= not own[name] <= own[other]
                    own[other] |= own[name]
        return {name: tuple(topic for topic in self.topics if topic in found) for name, found in own.items()}


def load_definition(text: str, folder: Path, lets: Mapping[str, Any] | None = None) -> ScenarioDefinition:
    """Load a definition from a ``.hf`` file in ``folder``, or from its text. ``lets`` replaces parameters."""
    app = App() if not text else load(folder / text) if text.endswith(".hf") else parse(text)
    return ScenarioDefinition(app, check(app, folder, lets))


class Evaluator:
    """Evaluates one subscription and returns its notifications."""

    def __init__(self, operator: Operator, name: str) -> None:
        self._operator, self._name = operator, name
        self._state = operator.machine.initial()

    def react(self, event: Event) -> list[Notification]:
        """Process an event; return the notifications of the subscription."""
        self._state, transitions = push_alone(self._operator.machine, self._state, event)
        return self._address(transitions)

    def advance(self, until: Instant) -> list[Notification]:
        """Advance the watermark to ``until``; return the notifications that time alone causes."""
        if not self._operator.machine.traits.uses_watermark:
            return []
        self._state, transitions = advance_alone(self._operator.machine, self._state, until)
        return self._address(transitions)

    @property
    def due(self) -> Instant | None:
        """The time that the watermark must pass for the next timer to fire; ``None`` without a timer."""
        return self._operator.machine.due(self._state)

    def _address(self, transitions: list[Transition]) -> list[Notification]:
        notifications = self._operator.address(transitions)
        return [n for n in notifications if n.subscription == self._name and n.status != "late"]


# On publishers' nodes.


def mote_machines(definition: Checked) -> dict[str, Machine[Any] | Gate]:
    """Return the machine of each condition by name. Each publisher runs it on its own samples.

    A condition with a table gets a gate that passes samples relevant to any row of the table.

    >>> from holdfast.definition.parse import parse
    >>> text = "topic T (value float)  state Warm on T [value > 25; value < 22] per source"
    >>> list(mote_machines(parse(text).check()))
    ['Warm']
    """
    found: dict[str, Machine[Any] | Gate] = {}
    for condition in definition.of(StateCondition):
        if (why := why_not_alone(condition)) is not None:
            raise Unsupported(f"'{condition.name}' {why}")
        found[condition.name] = gate(covering(condition)) if condition.tables else filter_machine([condition])
    for operator in operators(definition):
        for name in set(operator.subscriptions) - found.keys():
            raise Unsupported(f"'{name}' looks at several sensors; a mote sees only its own samples")
    return found


def why_not_alone(condition: StateCondition) -> str | None:
    """Return the reason why a sensor cannot evaluate a condition from its own samples; ``None`` if it can."""
    alone = condition.keys and "source" in condition.keys[-1]
    if condition.forest is not None or not (alone or condition.momentary):
        return "has one state for several sensors; on motes each sensor has its own: write 'per source'"
    if condition.delivery.wait is not None:
        return "puts samples in order; a mote's own samples are: leave it out"
    return None


def scope(condition: StateCondition, event: Event) -> str | None:
    """Return the outermost scope of a condition that contains an event; ``None`` if no scope does."""
    keys = [key for key in scalar.chain(condition.keys, condition.forest)(event) or () if key is not None]
    return readable_key(keys[-1]) if keys and condition.keys else None


# On brokers.


def broker_form(
    definition: ScenarioDefinition, condition: StateCondition
) -> tuple[str, cbps.ReplicatedCondition] | None:
    """Return a condition in the form for brokers: its text, and the machine that brokers compile from it.

    ``None`` if the condition has no such form. A condition with a table is sent as a gate that covers all of
    its rows.
    """
    statements = definition.app.statements
    if condition.delivery.wait is not None or any(isinstance(s, UseGazetteer) for s in statements):
        return None
    if condition.tables:
        cover = covering(condition)
        ends = None if condition.momentary else scalar.predicate(cover.ends, condition.topic)
        return in_writing(statements, condition), replace(for_brokers(cover.condition), ends=ends)
    about = [s for s in statements if isinstance(s, Let | DeclareRegion)]
    (statement,) = [s for s in statements if isinstance(s, DefineState) and s.name == condition.name]
    text = show(App([DeclareTopic(condition.topic), *about, replace(statement, topic=condition.topic.name)]))
    return text, for_brokers(condition)


def for_brokers(condition: StateCondition) -> cbps.ReplicatedCondition:
    """Compile a state filter to the form of which every broker on the path runs a replica."""
    replicated = replicated_condition(condition)
    assert replicated is not None
    return replicated
