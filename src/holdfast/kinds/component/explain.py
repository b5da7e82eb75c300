"""Explanations of components: the plan of a component, and the plan of its operator on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.operator import Operator
from ...lang.ops import MemberAttribute, Name, Truth
from ...lang.rewrite import of_the_event, within
from ...lang.show import show_expression
from ...model.instant import show_duration
from ...model.query import (
    MOST_TICKS,
    NOW,
    Aggregate,
    Closest,
    Index,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
    Whole,
)
from ...model.topic import Topic
from ..state.syntax import DefineState, show_state
from .condition import CheckedRule, ComponentCondition, Components
from .plan import sharded
from .plan_columns import LAST, plan_component
from .show import show_query


def explain(components: Components) -> Iterator[str]:
    """Yield the plan of each component as text."""
    return ("\n".join(_component(component, components)) for component in components)


def explain_on_spark(components: Components, topics: Sequence[Topic]) -> Iterator[Iterator[str]]:
    """Yield the plan of each component and of each operator on Spark, line by line."""
    yield from (_component(component, components) for component in components)
    operators = sharded(components, topics)
    stage_of = {name: operator.links.stage + 1 for operator in operators for name in operator.subscriptions}
    yield from (_operator(number, operator, stage_of) for number, operator in enumerate(operators, 1))


def _component(component: ComponentCondition, others: Components) -> Iterator[str]:
    """Yield the lines of the plan of a component. `others` are the components that it may consume."""
    topics = ", ".join(topic.name for topic in component.listens)
    yield f"component {component.name}, level {component.level}, from {topics}"
    for name, query in component.inputs:
        yield f"  {name or 'looks at':<9} {show_query(query)}"
    yield f"  starts    {_rule(component.enter)}"
    ends = "never" if component.exit.when == Truth(False) else _rule(component.exit)
    yield f"  ends      {'at once (momentary: every detection is notified)' if component.momentary else ends}"
    carried = f"one with each source of {component.here}" if isinstance(component.here, str) else ""
    apart = f"one for each {' and '.join(component.keys)}" if component.keys else ""
    yield f"  scopes    {', '.join(filter(None, (carried, apart))) or 'one for everything'}"
    yield f"  evaluated {'; '.join(_instants(component))}"
    yield f"  delivery  {_delivery(component)}"
    yield f"  drops     {_drops(component)}"
    yield f"  keeps     {'; '.join(_keeps(component))}"
    yield f"  plan      {_plan(component, others)}"
    if (brackets := to_brackets(component)) is not None:
        yield f"  same as   {show_state(brackets)}"
        yield "            which notifies at once and is evaluated at the publishers"


def to_brackets(component: ComponentCondition) -> DefineState | None:
    """Return the equivalent state in brackets, or `None` if there is none.

    A component has an equivalent state if it consumes only the latest reading of one topic. The two still
    differ: a component merges readings of one scope and time, other components can consume it, and it emits
    only when the watermark has passed.
    """
    (_, query), *others = component.inputs
    (topic, *_) = component.listens
    rules = (component.enter, component.exit)
    inside = [op for rule in rules for op in within(rule.when)]
    members = [op for op in inside if isinstance(op, MemberAttribute)]
    is_one = (
        not others
        and component.level == 1
        and component.here is None
        and component.tick is None
        and not any(rule.hold or rule.sets for rule in rules)
        and query == Query(Closest(Index(topic.name)), each=query.each)
        and all(key == "source" or key in topic.by_name for key in component.keys)
        and not any(isinstance(op, Name) for op in inside)
        and all(op.name in topic.by_name and not op.otherwise and op.owner != LAST for op in members)
    )
    enter, exit = (of_the_event(rule.when) for rule in rules)
    per = (component.keys,) if component.keys else ()
    bracketed = DefineState(component.name, topic.name, enter, exit, per, (), component.delivery)
    return bracketed if is_one else None


def _plan(component: ComponentCondition, others: Components) -> str:
    """Return the evaluation that this process chooses for a component: columns, or the reference machine and
    the reason."""
    made = plan_component(component, others)
    if isinstance(made, str):
        return f"reference machine, because {made}"
    columns = [f"{c.name.removeprefix('.')}, " for of in made.plan.columns.values() for c in of]
    then = f"; then, where they pass, {', '.join(map(show_expression, made.left))}" if made.left else ""
    if made.single and not made.left:
        then = f"; events are made one by one, because {made.single}"
    return f"columns: {''.join(columns)}many instants at once{then}"


def _rule(rule: CheckedRule) -> str:
    """Return a predicate and its minimum duration as text."""
    return show_expression(rule.when) + (f" for {show_duration(rule.hold)}" if rule.hold else "")


def _instants(component: ComponentCondition) -> Iterator[str]:
    """Yield the occasions at which a component is evaluated."""
    yield "at every time of an event that it looks at"
    windows = [f"{name or 'the window'}" for name, query in component.inputs if _width(query) is not None]
    if windows:
        yield f"when one leaves {' or '.join(windows)}"
    if component.enter.hold or component.exit.hold:
        yield "when a predicate has been true for long enough"
    if component.tick is not None:
        yield f"every {show_duration(component.tick)}, at most {MOST_TICKS:,} times after a reading"


def _width(query: Query) -> int | None:
    """Return the duration of a window that ends now; `None` for other queries."""
    match query.time:
        case Aggregate(_, QueryRange(Index(int(low), True))) | Multiple(_, QueryRange(Index(int(low), True))):
            return -low
    return None


def _delivery(component: ComponentCondition) -> str:
    """Return the delivery of a component as text."""
    wait, late = component.delivery.wait, component.delivery.late
    if wait is None:
        return (
            "timely: evaluated when the watermark has passed, by a later reading or by 'advance'; "
            "an earlier reading is taken into account from then on"
        )
    then = "goes to the late output" if late == "drop" else "is taken into account from then on"
    return f"ordered: {show_duration(wait)} behind the latest event; a later one {then}"


def _drops(component: ComponentCondition) -> str:
    """Return as text which events a component ignores."""
    everywhere = [
        name
        for name, query in component.inputs
        if isinstance(query.location, (Multiple, Aggregate, PooledDimension))
        and isinstance(query.location.group, Whole)
    ]
    missing = f"events without {' or '.join(component.keys)}" if component.keys else ""
    outside = "events outside the locations of its queries" if len(everywhere) < len(component.inputs) else ""
    return "; ".join(filter(None, (missing, outside))) or "nothing: it looks at every event of its topics"


def _keeps(component: ComponentCondition) -> Iterator[str]:
    """Yield the parts of a component's state as text."""
    for name, query in component.inputs:
        width = _width(query)
        of = f"of {name} " if name else ""
        if width is not None:
            yield f"{of}the last {show_duration(width)}"
        elif query.time == Closest(NOW):
            status = "" if query.status == PooledDimension() else " and status"
            yield f"{of}the latest of each place{status}"
        elif isinstance(query.time, Closest):
            yield f"{of}what is nearest in time"
        else:
            yield f"{of}everything"
    yield "the last event of each scope" if component.keys or component.here else "its last event"


def describe(component: ComponentCondition) -> dict[str, str]:
    """Return the parts of a component as text, by name, for the comparison of revisions."""
    wait, late = component.delivery.wait, component.delivery.late
    attributes = sorted({a for topic in component.listens for a in topic.attributes}, key=str)
    return {
        "topic": ", ".join(topic.name for topic in component.listens),
        "key": " and ".join(component.keys),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {late}",
        "list of attributes": ", ".join(f"{a.name} {a.kind} {a.unit or ''}".rstrip() for a in attributes),
        "list of queries": "; ".join(f"{name} = {show_query(query)}" for name, query in component.inputs),
        "start": _rule_in_words(component.enter),
        "end": _rule_in_words(component.exit),
        "place": str(component.here or ""),
        "tick": str(component.tick or ""),
        "way to make one of several readings": component.collide,
    }


def _rule_in_words(rule: CheckedRule) -> str:
    """Return a predicate, its minimum duration and its computations as text."""
    sets = (f"{name} = {show_expression(op)}" for name, op in rule.sets)
    return " ".join([show_expression(rule.when), *([f"for {rule.hold} µs"] if rule.hold else []), *sets])


# --- operators on Spark ------------------------------------------------------------------------------


def _operator(number: int, operator: Operator, stage_of: dict[str, int]) -> Iterator[str]:
    """Yield the lines of the plan of an operator. `stage_of` has the stage of each component, counted from
    1."""
    names = operator.subscriptions
    yield f"operator {number}, stage {operator.links.stage + 1}: {', '.join(names)}"
    if len(names) > 1:
        yield "  fused     one machine runs them all: they have the same key"
    for topic in sorted(operator.upstream_topics):
        name = topic.removeprefix("@")
        yield f"  receives  events of {name} from stage {stage_of[name]}"
    for topic in (name for name in operator.topics if name not in operator.upstream_topics):
        assert operator.needed_columns is not None
        own = [a.name for a in operator.topics[topic].attributes if a.name in operator.needed_columns[topic]]
        yield f"  reads     {topic}: {', '.join(['time', 'source', 'location', *own])}"
    if not operator.upstream_topics >= operator.topics.keys():
        missing = f"drop events without {' or '.join(operator.key)}, and" if operator.key else "drop"
        late = operator.machine.traits.lateness is not None
        remaining = "; live, events that may be late stay, to be reported" if late else ""
        yield f"  readers   {missing} what lies outside the locations of all queries{remaining}"
    why = "; ".join(f"{name}: {reason}" for name, reason in operator.presentation.reasons)
    shuffle = f"one shard, without help from other cores ({why})"
    if operator.key:
        shuffle = f"packed as Arrow by shard; a shard is a hash (crc32) of {' and '.join(operator.key)}"
    yield f"  shuffle   {shuffle}"
    after = "a state operator of its own after that of the stage before; " if operator.links.stage else ""
    behind = f"; the slowest stays {show_duration(operator.delay)} behind" if operator.delay else ""
    time = "the watermark advances in every shard in every batch, with or without events"
    yield f"  live      {after}{time}{behind}"
