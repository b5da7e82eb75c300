"""Compilation of checked conditions for brokers and subscribers of the content-based family (cbps).

One broker can evaluate a condition of any kind. If a kind has a form for brokers (``Kind.on_broker``), every
broker on the path filters events for its conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from ..engine.composite import Composite, operator_alone
from ..engine.operator import Operator
from ..errors import Unsupported, UsageError
from ..kinds.kind import BrokerForm
from ..kinds.registry import kind
from ..lang.condition import Checked, Condition
from ..model.batch import from_events
from ..model.event import Event, Notification, Transition, notify
from ..model.instant import Instant
from ..model.qos import Correct
from ..model.space import Forest, dimensions
from ..model.topic import Topic
from ..plan.compile import builds_on, conditions, operators
from .protocols.cbps.condition import CorrectionProgress, HostedCondition, ReplicatedCondition
from .protocols.cbps.content import Constraint, Content, Filter
from .protocols.cbps.event import AXES, to_event
from .protocols.cbps.parts import pins
from .protocols.cbps.ranges import Value
from .protocols.cbps.scopes import NO_SCOPES, Scopes, contains


def compile_checked(checked: Checked) -> ReplicatedCondition | HostedCondition:
    """Compile a checked definition that has exactly one condition on which no other condition builds."""
    known = conditions(checked)
    found = [name for name in known if not builds_on(checked, name)]
    if len(found) != 1:
        raise UsageError(f"a subscription has one condition, not {len(found)}; send one for each")
    only = known[found[0]]
    if (replicated := replicated_condition(only)) is not None:
        return replicated
    if isinstance(only.delivery.late, Correct):
        raise Unsupported(
            f"'{only.name}' has minimum durations and corrects earlier notifications ('late correct'): "
            "it runs in one process, not on brokers"
        )
    made = operators(checked)
    (serving,) = (operator for operator in made if any(found[0] in names for names in operator.names))
    name = serving.presentation.aliases.get(found[0], found[0])
    return _hosted_condition(only, known[name], operator_alone(made, name))


def _hosted_condition(meant: Any, reported: Any, operator: Operator) -> HostedCondition:
    """Compile a condition to the form in which a single broker evaluates it."""

    name = reported.name

    def to_notifications(transitions: Iterable[Transition]) -> list[Notification]:
        return [n for n in operator.address(transitions) if n.subscription == name]

    return HostedCondition(
        name=name,
        inputs=tuple(_inputs(operator)),
        event=partial(_event, operator.topics),
        is_relevant=_relevance_of(meant, operator),
        may_start_silently=kind(reported).starts_silently(reported),
        machine=operator.machine,
        to_notifications=to_notifications,
        topics=tuple(operator.topics.values()),
        active_scopes=partial(_active_scopes, name, operator),
    )


def _active_scopes(name: str, operator: Operator, state: Any) -> list[tuple[str | None, Instant]]:
    """Return the active scopes of a condition in a state of its operator, each with its start."""
    machine, parts = operator.machine, [(operator, state)]
    if isinstance(machine, Composite):
        parts = list(zip(machine.operators, state.values(), strict=True))
    return [(scope, at) for part, own in parts for called, scope, at in part.active(own) if called == name]


def _inputs(operator: Operator) -> Iterator[Filter]:
    """Yield filters for an operator's inputs: its topics, or single sources of its topics."""
    for topic in operator.topics:
        of_topic = Constraint("topic", "text", "=", topic)
        for source in sorted(operator.sources.get(topic, ())):
            yield Filter((of_topic, Constraint("source", "text", "=", source)))
        if topic not in operator.sources:
            yield Filter((of_topic,))


def _event(topics: Mapping[str, Topic], content: Content) -> Event | None:
    topic = topics.get(str(content.get("topic")))
    return None if topic is None else to_event(topic, content)


def _relevance_of(meant: Any, operator: Operator) -> Callable[[Event], bool]:
    """Return a predicate for relevant events.

    Where time decides the output, every event is relevant, because it advances the watermark. Only a
    condition whose output depends on events that are close in time may ignore other events.
    """
    machine = operator.machine
    if machine.traits.lookaround is None or meant.delivery.wait is not None:
        return lambda _: True

    def is_relevant(event: Event) -> bool:
        batch = from_events(machine.topics[event.topic], [event])
        return bool(machine.relevance(event.topic, batch).satisfies[0])

    return is_relevant


def replicated_condition(condition: Condition) -> ReplicatedCondition | None:
    """Compile a condition of which every broker on the path runs a replica; ``None`` if its kind has no such
    form.
    """
    form = kind(condition).on_broker(condition)
    if form is None:
        return None

    def to_notifications(transitions: Iterable[Transition]) -> list[Notification]:
        return [notify(condition.name, *transition[:4]) for transition in transitions]

    def mark_uncertain(state: Any, scopes: Scopes) -> tuple[Any, list[tuple[str | None, Instant]]]:
        return form.mark_uncertain(state, partial(contains, scopes))

    def progress(state: Any) -> CorrectionProgress | None:
        found = form.progress(state)
        return None if found is None else CorrectionProgress(*found)

    topic = condition.topic
    return ReplicatedCondition(
        name=condition.name,
        inputs=(Filter((Constraint("topic", "text", "=", topic.name),)),),
        event=partial(to_event, topic),
        machine=form.machine,
        to_notifications=to_notifications,
        chain=form.chain,
        reach=lru_cache(maxsize=16_384)(partial(_reach, form, topic)),
        enter=form.enter,
        leave=form.leave,
        is_momentary=condition.momentary,
        is_filterable=condition.delivery.wait is None,
        bits=form.bits,
        uncertain_bits=form.uncertain_bits,
        mark_uncertain=mark_uncertain,
        progress=progress,
    )


def _reach(form: BrokerForm, topic: Topic, filter_: Filter) -> Scopes:
    """Return the scopes of the events that satisfy a filter; all scopes if the filter does not pin
    the scope.
    """
    pinned, forest = pins(filter_), form.forest
    fixes_region = forest is None or _fixes_region(forest, pinned)
    if not (fixes_region and form.scope_attributes <= pinned.keys()):
        return None
    whole = {"source": "", **pinned, "topic": topic.name, "time": 0, "sequence": 0}
    event = to_event(topic, whole)
    keys = form.chain(event) if event is not None else None
    return NO_SCOPES if keys is None else frozenset(key for key in keys if key is not None)


def _fixes_region(forest: Forest, pinned: Mapping[str, Value]) -> bool:
    """Whether pinned values determine the region of events. [F11]

    They do so with a known place, or with coordinates if neither a place nor a source can contradict these.
    """
    if pinned.get("place") in forest.by_place:
        return True
    needed = {dimensions(shape) for shape, _ in forest.innermost_first}
    axes = AXES[: max(needed, default=len(AXES))]
    return all(axis in pinned for axis in axes) and (not forest.by_source or "source" in pinned)
