"""Checks of components: topics exist and form no cycle, types agree, and relative locations have a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from ...errors import DefinitionError, did_you_mean
from ...lang.condition import Caution, Condition
from ...lang.context import Context
from ...lang.ops import (
    Arithmetic,
    Expression,
    MemberAttribute,
    Name,
    Not,
    Number,
    Statement,
    Text,
    Trigger,
    Truth,
    place_of,
)
from ...lang.rewrite import within
from ...lang.typed import (
    CALLED,
    Members,
    NameScope,
    Parameters,
    Position,
    Predicate,
    Typed,
    TypedQuantity,
    TypedTime,
    Words,
)
from ...lang.types import predicate, type_of
from ...model.instant import LATEST, SECOND, Duration, show_duration
from ...model.query import (
    MOST_TICKS,
    Aggregate,
    Closest,
    Function,
    Index,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from ...model.topic import RESERVED, Attribute, Kind, Topic
from ...model.unit import UNITS
from .condition import CheckedRule, ComponentCondition
from .members import UNSETTABLE, DifferenceAttribute, Unusable, attributes_of, members
from .show import show_query
from .syntax import Collide, DefineComponent

_SETTABLE = ("time", "location")
_STATUSES = ("atomic", "ingress", "egress")


@dataclass(frozen=True)
class _ComponentContext:
    """The names to which a component may refer.

    `topics` includes the topics of other components, and `below` has these components. `filters` are
    conditions that publish no topic, so that a component cannot consume them.
    """

    topics: dict[str, Topic]
    below: dict[str, ComponentCondition]
    parameters: Parameters
    filters: frozenset[str]
    collide: Function


def check(statements: Sequence[Statement], context: Context) -> list[ComponentCondition]:
    """Check statements and return their components in the order of the text.

    Raise a `DefinitionError` at the first mistake.
    """
    components = [statement for statement in statements if isinstance(statement, DefineComponent)]
    filters = frozenset(name for name, condition in context.conditions.items() if not condition.publishes)
    collisions = [statement for statement in statements if isinstance(statement, Collide)]
    if len(collisions) > 1:
        raise DefinitionError("'collide' is given twice", collisions[1].at)
    collide = collisions[0].function if collisions else "avg"
    topics = {topic.name: topic for topic in context.topics}
    known = _ComponentContext(topics, {}, context.parameters, filters, collide)
    for statement in _in_order_of_inputs(components):
        try:
            made = replace(_component(statement, known), collide=collide)
        except DefinitionError as error:
            if error.place is not None:
                raise
            raise DefinitionError(f"in '{statement.name}': {error.message}", hint=error.hint) from None
        known.below[made.name] = made
        known.topics[made.name] = made.topic
    return [known.below[statement.name] for statement in components]


def _in_order_of_inputs(statements: Sequence[DefineComponent]) -> list[DefineComponent]:
    """Sort statements so that each follows the components that it consumes. Raise a `DefinitionError` for a
    cycle. [F52]"""
    by_name = {statement.name: statement for statement in statements}
    topics = {name: [t for _, query in s.inputs for t in query.topics] for name, s in by_name.items()}
    below = {name: [topic for topic in own if topic in by_name] for name, own in topics.items()}
    try:
        return [by_name[name] for name in TopologicalSorter(below).static_order()]
    except CycleError as error:
        cycle = error.args[1]
        message = f"components build on one another in a circle: {' → '.join(cycle)}"
        hint = "What is derived from something cannot be what it is derived from."
        raise DefinitionError(message, by_name[cycle[0]].at, hint=hint) from None


def _component(statement: DefineComponent, known: _ComponentContext) -> ComponentCondition:
    """Check one statement. The components that it consumes must have been checked before."""
    _check_names(statement, known)
    queries = dict(statement.inputs)
    listening = {name: [_topic(t, known, statement) for t in query.topics] for name, query in queries.items()}
    shown = {name: attributes_of(query, listening[name], known.collide) for name, query in queries.items()}
    for name, query in queries.items():
        _check_query(name, query, listening[name], shown[name], statement)
    topic, scope = _output_topic(statement, shown, _scope(statement, shown, listening, known))
    followed = [_topic(statement.here, known, statement)] if isinstance(statement.here, str) else []
    listens = dict.fromkeys([t for some in listening.values() for t in some] + followed)
    return ComponentCondition(
        statement.name,
        topic,
        statement.inputs,
        tuple(listens),
        _rule(statement.enter, scope),
        _exit(statement, scope),
        _keys(statement, listening),
        statement.here,
        statement.tick,
        statement.delivery,
        1 + max((known.below[t.name].level for t in listens if t.name in known.below), default=0),
    )


def _check_names(statement: DefineComponent, known: _ComponentContext) -> None:
    """Check that a component has queries, that their names differ, and that its own name is not a topic."""
    if not statement.inputs:
        hint = "Add a query: A = avg T over 30 s"
        raise DefinitionError(f"'{statement.name}' looks at nothing", statement.at, hint=hint)
    if statement.name in known.topics:
        raise DefinitionError(
            f"'{statement.name}' is a topic already; a component publishes under its own name", statement.at
        )
    names = [name for name, _ in statement.inputs]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DefinitionError(f"two queries are named '{name}'", place_of(name, statement.at))


# --- queries -----------------------------------------------------------------------------------


def _topic(name: str, known: _ComponentContext, statement: DefineComponent) -> Topic:
    """Return the topic `name`, or raise a `DefinitionError` with a hint."""
    topics = known.topics
    if name in topics:
        return topics[name]
    at = place_of(name, statement.at)
    if name in known.filters:
        raise DefinitionError(
            f"'{name}' is a condition over single readings and publishes no topic",
            at,
            hint=f"Make it a component: state {name} on TOPIC … enter … exit …",
        )
    has = f"known: {', '.join(topics)}" if topics else "none is declared"
    hint = did_you_mean(name, topics) or f"Declare it: topic {name} (value float)"
    raise DefinitionError(f"unknown topic '{name}'; {has}", at, hint=hint)


def _check_query(
    name: str,
    query: Query,
    topics: Sequence[Topic],
    attributes: Mapping[str, Attribute],
    statement: DefineComponent,
) -> None:
    """Check a query: its functions have attributes, its range is not empty, and relative locations have a
    host."""
    at = place_of(name, None) or place_of(query.topics[0], statement.at)
    for _, parameter in query.parameters():
        functions = parameter.functions if isinstance(parameter, Aggregate) else ()
        for attribute, function in () if isinstance(functions, str) else functions:
            if attribute not in attributes:
                message = f"there is no '{attribute}' to take the {function} of"
                raise DefinitionError(f"{message}; it has {', '.join(attributes)}", at)
            if isinstance(found := attributes[attribute], Unusable):
                raise DefinitionError(found.reason, at)
        unusable = [isinstance(attribute, Unusable) for attribute in attributes.values()]
        if isinstance(functions, str) and unusable and all(unusable):
            raise DefinitionError(
                f"{functions} of text is not defined: {topics[0].name} has no number",
                at,
                hint=f"Count it: count {topics[0].name}",
            )
        if isinstance(group := getattr(parameter, "group", None), QueryRange) and _is_empty(group):
            raise DefinitionError("the range is empty: its low end is above its high end", at)
    ops = [op for m in (statement.enter, statement.exit) for op in (m.when, *(value for _, value in m.sets))]
    inside = (part for op in ops for part in within(op))
    if statement.here is None and (query.is_relative or Name("here") in inside):
        raise DefinitionError(
            f"'{statement.name}' is about what is near here, but nothing says where here is",
            at,
            hint="Add: here (3, 4); or, to have one with each source of a topic: here TOPIC",
        )


def _is_empty(group: QueryRange) -> bool:
    low, high = group.low, group.high
    if low.relative != high.relative or isinstance(low.value, str) or isinstance(high.value, str):
        return False
    if isinstance(low.value, tuple) and isinstance(high.value, tuple):
        return any(a > b for a, b in zip(low.value, high.value, strict=False))
    return isinstance(low.value, int) and isinstance(high.value, int) and low.value > high.value


def _keys(statement: DefineComponent, listening: Mapping[str, Sequence[Topic]]) -> tuple[str, ...]:
    """Return the keys of a component. All queries with keys must have the same keys."""
    found: dict[str, tuple[str, ...]] = {}
    for name, query in statement.inputs:
        for key in query.each:
            for topic in listening[name]:
                if key not in topic.by_name:
                    has = ", ".join(a.name for a in topic.attributes)
                    message = f"topic '{topic.name}' has no '{key}'; it has {has}"
                    hint = did_you_mean(key, ["location", *topic.by_name])
                    raise DefinitionError(message, place_of(key, place_of(name, statement.at)), hint=hint)
        if query.separate:
            found[name] = tuple(map(str, query.separate))
    if len(set(found.values())) > 1:
        each = "; ".join(f"{name} each {', '.join(keys)}" for name, keys in found.items())
        message = f"queries of '{statement.name}' disagree on what is kept apart: {each}"
        hint = "A component has one key: keep the same apart in every query, or 'any location' in one."
        raise DefinitionError(message, place_of(list(found)[-1], statement.at), hint=hint)
    return next(iter(found.values()), ())


# --- expressions -------------------------------------------------------------------------------


Attributes = Mapping[str, Attribute]
Shown = Mapping[str, Attributes]
"""The attributes that each query shows, by the name of the query."""


def _scope(
    statement: DefineComponent,
    shown: Shown,
    listening: Mapping[str, Sequence[Topic]],
    known: _ComponentContext,
) -> NameScope:
    """Return the names that predicates and computations may use."""
    own: dict[str, Members] = {
        name: members(name, attributes, derived=any(t.name in known.below for t in listening[name]))
        for name, attributes in shown.items()
    }
    names: dict[str, Typed] = {"now": TypedTime(Name("now")), "here": Position(Name("here"))}
    names |= {status: Words(Text(status)) for status in _STATUSES}
    if len(own) == 1:
        (only,) = own.values()
        names |= {name: found for name, found in only.items() if not isinstance(found, str)}
    for name in known.parameters:
        if name in names:
            message = f"'{name}' is a parameter, and means something else in a component"
            raise DefinitionError(message, statement.at, hint="Rename the parameter.")
    return NameScope(None, {**known.parameters, **names}, own)


def _output_topic(statement: DefineComponent, shown: Shown, scope: NameScope) -> tuple[Topic, NameScope]:
    """Return the topic of a component's events [F67], and the names in scope including `last`.

    The type of a computation over `last` is inferred: the first pass assumes a number, the second uses the
    result.
    """
    computed = {name: Attribute(str(name), "float") for name, _ in _sets(statement)}
    for _ in range(2):
        computed = _type_of_set(statement, _remembering(scope, _defaults(shown, computed)))
    known = _defaults(shown, _beside_defaults(statement, shown, computed))
    return Topic(statement.name, tuple(known.values())), _remembering(scope, known)


def _remembering(scope: NameScope, known: Attributes) -> NameScope:
    """Return the names in scope with `last`, the last event of the component."""
    return replace(scope, members={**scope.members, "last": members("last", known, derived=True)})


def _sets(statement: DefineComponent) -> list[tuple[str, Expression]]:
    """Return the computed attributes of both rules. Raise a `DefinitionError` for an attribute that cannot be
    set."""
    pairs = [*statement.enter.sets, *statement.exit.sets]
    for name, value in pairs:
        if name in UNSETTABLE or (name in RESERVED and name not in _SETTABLE):
            message = f"'{name}' of a component's event cannot be set"
            hint = "time and location can, and attributes of its own."
            raise DefinitionError(message, place_of(name, value.at), hint=hint)
    return [(name, value) for name, value in pairs if name not in _SETTABLE]


def _type_of_set(statement: DefineComponent, scope: NameScope) -> dict[str, Attribute]:
    """Return the types of the computed attributes. An attribute must have one type at the start and at the
    end."""
    found: dict[str, Attribute] = {}
    for name, value in _sets(statement):
        attribute = _attribute(name, type_of(value, scope), value)
        before = found.get(str(name), attribute)
        if (both := _agree(before, attribute)) is None:
            message = f"'{name}' is {_name_of(before)} in one place and {_name_of(attribute)} in the other"
            raise DefinitionError(message, place_of(name, value.at))
        found[str(name)] = both
    return found


def _agree(one: Attribute, other: Attribute) -> Attribute | None:
    """Return an attribute that has two definitions, or `None` if their types differ. `int` and `float` agree
    on `float`."""
    if {one.kind, other.kind} == {"int", "float"}:
        return replace(one, kind="float")
    return one if (one.kind, one.unit) == (other.kind, other.unit) else None


def _beside_defaults(statement: DefineComponent, shown: Shown, computed: Attributes) -> dict[str, Attribute]:
    """Return the computed attributes.

    If only one rule computes an attribute, the other takes it from a query, and both types must agree.
    """
    found = dict(computed)
    for name, value in _sets(statement):
        emits_at_exit = not isinstance(statement.exit.when, Truth)  # a constant exit emits no events
        triggers = [statement.enter, statement.exit] if emits_at_exit else [statement.enter]
        is_left_out = any(name not in dict(trigger.sets) for trigger in triggers)
        for attributes in shown.values() if is_left_out else ():
            if (default := attributes.get(name)) is not None:
                if (both := _agree(found[name], default)) is None:
                    raise DefinitionError(
                        f"'{name}' is {_name_of(found[name])} where it is set, and {_name_of(default)}, as a "
                        "query shows it, where it is not",
                        place_of(name, value.at),
                        hint="Set it at the start and at the end, or set another name.",
                    )
                found[str(name)] = both
    return found


def _name_of(attribute: Attribute) -> str:
    """Return the kind and unit of an attribute, for messages."""
    return " ".join(filter(None, (attribute.kind, attribute.unit)))


def _attribute(name: str, found: Typed, op: Expression) -> Attribute:
    """Return the attribute that has the type of an expression."""
    match found:
        case TypedQuantity():
            kind: Kind = "int" if found.whole else "float"
            unit = found.unit.name if found.unit is not None and found.unit.name in UNITS else None
            return (DifferenceAttribute if found.difference else Attribute)(str(name), kind, unit)
        case Words():
            return Attribute(str(name), "text")
        case Predicate():
            return Attribute(str(name), "bool")
    hint = "Only location and time can be set so."
    raise DefinitionError(f"'{name}' cannot be {CALLED[type(found)]}", op.at, hint=hint)


def _defaults(shown: Shown, computed: Attributes) -> dict[str, Attribute]:
    """Return the computed attributes, and the attributes of queries on whose type all queries agree."""
    found: dict[str, Attribute | None] = {}
    for attributes in shown.values():
        for name, one in attributes.items():
            before = found.setdefault(name, one)
            if before is not None and before != one:
                mixed = {before.kind, one.kind} == {"int", "float"} and before.unit == one.unit
                found[name] = replace(before, kind="float") if mixed else None
    hidden = {*computed, *UNSETTABLE}
    rest = {n: a for n, a in found.items() if a is not None and n not in hidden}
    plain = {n: Attribute(n, a.kind) if isinstance(a, Unusable) else a for n, a in rest.items()}
    return {**computed, **plain}


def _rule(trigger: Trigger, scope: NameScope) -> CheckedRule:
    """Check the predicate and the computations of a trigger."""
    sets = tuple((str(name), _value(name, value, scope)) for name, value in trigger.sets)
    return CheckedRule(predicate(trigger.when, scope), trigger.hold, sets)


def _value(name: str, op: Expression, scope: NameScope) -> Expression:
    """Check a computation. The time must be a time and the location a location."""
    found = type_of(op, scope)
    wanted = {"time": TypedTime, "location": Position}.get(name)
    is_place = wanted is Position and isinstance(found, Words)
    if wanted is not None and not isinstance(found, wanted) and not is_place:
        raise DefinitionError(f"'{name}' must be {CALLED[wanted]}, not {CALLED[type(found)]}", op.at)
    return found.core


def _exit(statement: DefineComponent, scope: NameScope) -> CheckedRule:
    """Check the exit of a component.

    If the text has no exit, it is the negation of the entrance. The predicate must then mention one value at
    a time.
    """
    several = [
        name
        for name, query in statement.inputs
        for dimension, parameter in query.parameters()
        if dimension != "status" and isinstance(parameter, Multiple) and parameter.how != "separate"
    ]
    if statement.exit == Trigger(Not(statement.enter.when)) and statement.exit.at is None and several:
        message = f"'{statement.name}' needs an exit: {several[0] or 'it'} looks at several values at once"
        hint = "Say when it ends: exit …; exit true tells of every detection; exit false never ends."
        raise DefinitionError(message, statement.at, hint=hint)
    return _rule(statement.exit, scope)


# --- warnings ------------------------------------------------------------------------------------


def cautions(statement: DefineComponent, _checked: Condition, context: Context) -> Iterator[Caution]:
    """Yield warnings about a component that is probably a mistake."""
    conditions = context.conditions.values()
    below = {c.name for c in conditions if isinstance(c, ComponentCondition) and not c.momentary}
    for name, query in statement.inputs:
        lasting = [topic for topic in query.topics if topic in below]
        if lasting and isinstance(query.location, Aggregate) and query.status == Multiple("any"):
            latest = replace(query, status=PooledDimension())
            starts = replace(query, status=Closest(Index("ingress")))
            yield Caution(
                f"'{statement.name}' takes a function over locations of '{lasting[0]}': of its "
                "starts and of its ends apart",
                place_of(name, None) or place_of(query.topics[0], statement.at),
                f"For the latest event of each place: {show_query(latest)}.  For starts alone: "
                f"{show_query(starts)}.",
            )
    apart = {str(name) for name, query in statement.inputs if "location" in query.separate}
    for trigger in (statement.enter, statement.exit):
        for op in within(trigger.when):
            match op:
                case Arithmetic(
                    "-", MemberAttribute(one, "location"), MemberAttribute(other, "location")
                ) if one != other and {one, other} <= apart:
                    yield Caution(
                        f"{one} and {other} are kept apart by location: both are of the same place, so their "
                        "distance is never more than nothing",
                        op.at or statement.at,
                        f"Say 'any location' in place of 'each location' of {one} or {other}.",
                    )
        if statement.tick is not None and Name("now") in within(trigger.when):
            yield from _overdue(statement, statement.tick, trigger)


def _overdue(statement: DefineComponent, tick: Duration, trigger: Trigger) -> Iterator[Caution]:
    """Yield warnings about comparisons with durations that are longer than ticks continue after a reading."""
    for op in within(trigger.when):
        unit = UNITS.get(op.unit or "") if isinstance(op, Number) else None
        if not isinstance(op, Number) or unit is None or unit.dimension != UNITS["s"].dimension:
            continue
        length = int(min(op.value * unit.factor * SECOND, LATEST))
        if length > MOST_TICKS * tick:
            yield Caution(
                f"'{statement.name}' has a tick of {show_duration(tick)}: there are {MOST_TICKS:,} after a "
                f"reading, which end before {show_duration(length)} are over",
                op.at or statement.at,
                f"Take a longer one: tick {show_duration(-(-length // (MOST_TICKS * SECOND)) * SECOND)}",
            )
