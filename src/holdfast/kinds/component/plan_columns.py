"""Columnar plans of checked components, or the reason why a component has none.

A screen is the predicate in which comparisons that columns cannot evaluate count as true. In checked
predicates `!` stands only before names, so a screen is true wherever the predicate is true.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...kernels.functions import AGGREGATES
from ...lang.expressions.batch import ARITHMETIC, floats, predicate
from ...lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    Expression,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ...lang.rewrite import both, either, parts, within
from ...model.event import Status
from ...model.query import (
    NOW,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Function,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
)
from ...model.topic import Attribute, Kind, Topic
from .condition import CheckedRule, ComponentCondition, Components
from .detector.columnar_plan import (
    STATUS,
    VALID,
    ColumnarPlan,
    EventColumns,
    PlanColumn,
    Screen,
    ScreenParts,
    Test,
)
from .detector.span import EVER, span
from .members import members_in

LAST = "last"
"""The name of a component's last event in expressions."""

Statuses = Mapping[str, tuple[Status, ...]]
"""The statuses that each query can select."""

_WHOLE = 2**53
"""The limit from which floats do not represent every integer."""


class PlannedComponent(NamedTuple):
    """The result of planning a component.

    `left` are the comparisons that are evaluated instant by instant. `single` is the reason why events are
    built one by one, or `None`.
    """

    plan: ColumnarPlan
    left: tuple[Expression, ...]
    single: str | None


def plan_component(component: ComponentCondition, others: Components = ()) -> PlannedComponent | str:
    """Return the columnar plan of a component, or the reason why it has none.

    `others` are the components that it may consume.
    """
    if component.here in {other.name for other in others}:
        return f"what {component.here} tells carries a replica"
    statuses = dict(_statuses(component, others))
    reason = next(_reasons(component, statuses), None)
    if reason is not None:
        return reason
    topics = {topic.name: topic for topic in component.listens}
    queries = dict(component.inputs).items()
    shows = {name: QueryColumns(q, [topics[t] for t in q.topics], component) for name, q in queries}
    rules = [component.enter] if component.momentary else [component.enter, component.exit]
    screens, left = zip(*(screen(rule.when, shows) for rule in rules), strict=True)
    columns = {name: tuple(shown.columns.values()) for name, shown in shows.items()}
    beyond = tuple(dict.fromkeys(chain.from_iterable(left)))
    events = [plan_event(rule, component, shows) for rule in rules]
    planned = [None if isinstance(event, str) else event for event in events]
    leave = None if component.momentary else screens[1]
    both_events = planned[0], planned[-1]
    plan = ColumnarPlan(columns, screens[0], leave, component.topic, topics, statuses, both_events)
    reasons = [event for event in events if isinstance(event, str)]
    if not all(screen.exact for screen in screens):
        reasons.append("columns do not tell all of a predicate")
    if any(rule.hold for rule in rules):
        reasons.append("a guard waits")
    reasons += [
        f"{name or 'it'} shows several places at other times than now"
        for name, shown in shows.items()
        if shown.several and shown.query.time != Closest(NOW)
    ]
    single = next(iter(reasons), None)
    costly = next(_endless_reasons(component, others, single), None)
    return PlannedComponent(plan, beyond, single) if costly is None else costly


def _statuses(
    component: ComponentCondition, others: Iterable[ComponentCondition]
) -> Iterator[tuple[str, tuple[Status, ...]]]:
    """Yield the statuses that each query can select."""
    lasting = {other.name for other in others if not other.momentary}
    for name, query in component.inputs:
        yield name, ("ingress", "egress") if lasting.intersection(query.topics) else ("atomic",)


# --- reasons -----------------------------------------------------------------------------------


def _reasons(component: ComponentCondition, statuses: Statuses) -> Iterator[str]:
    """Yield reasons to evaluate a component instant by instant."""
    if isinstance(component.here, str):
        yield from _roaming_reasons(component, statuses)
    for name, query in component.inputs:
        yield from (f"{name or 'it'} {reason}" for reason in _query_reasons(query, statuses[name]))
    if len({query.separate for _, query in component.inputs}) > 1:
        yield from _sharing_reasons(component)


def _sharing_reasons(component: ComponentCondition) -> Iterator[str]:
    """Yield reasons for a component in which an event of one query concerns every key."""
    apart = {name for name, query in component.inputs if query.separate}
    every = "an event of a query that keeps nothing apart concerns every key"
    if isinstance(component.here, str):
        yield f"{every} around each source of {component.here}"
    if component.tick is not None:
        yield f"{every}, and it ticks"
    if component.enter.hold or component.exit.hold:
        yield f"{every}, and a guard waits"
    if any((own := span(query)) is not None and own.low == EVER for _, query in component.inputs):
        yield f"{every}, and it looks at all time"
    named = members_in(component.enter.when)
    if named and not any(leaf.owner in apart and leaf.otherwise is None for leaf in named):
        yield f"{every} that is known, whatever is known of it"


def _roaming_reasons(component: ComponentCondition, statuses: Statuses) -> Iterator[str]:
    """Yield reasons for a component with moving hosts."""
    for name, query in component.inputs:
        who = name or "it"
        if len(query.topics) > 1:
            yield f"{who} looks at several topics around each source of {component.here}"
        if not query.is_relative:
            continue
        if query.time != Closest(NOW):
            yield f"{who} looks at more than the latest around each source of {component.here}"
        if len(statuses[name]) > 1:
            yield f"{who} looks at starts and ends around each source of {component.here}"
        match query.location:
            case Closest() | Multiple(_, Ball()) | PooledDimension(Ball()):
                pass
            case _:
                yield f"{who} looks at a range around each source of {component.here}"


def _query_reasons(query: Query, statuses: tuple[Status, ...]) -> Iterator[str]:
    """Yield reasons why columns cannot evaluate a query."""
    if len(query.topics) > 1 or not isinstance(query.topic, Closest):
        yield from _topic_reasons(query, statuses)
    whole = (Multiple("any"), PooledDimension(), *(Closest(Index(status)) for status in statuses))
    folds = [parameter for parameter in (query.location, query.status) if isinstance(parameter, Aggregate)]
    folds_all = isinstance(query.status, Aggregate) and query.status.group == WHOLE
    if query.status not in whole and not folds_all:
        yield "chooses by status"
    if span(query) is None:
        yield "looks at times that are neither a window up to now nor the nearest"
    if folds and isinstance(query.time, Closest) and query.time != Closest(NOW):
        yield "aggregates what was nearest some time ago"
    if len(folds) > 1:
        yield "aggregates both locations and statuses"
    elif isinstance(query.status, Aggregate) and (
        isinstance(query.location, Closest)
        or (isinstance(query.location, Multiple) and query.location.how != "separate")
    ):
        yield "aggregates statuses of several locations"


def _topic_reasons(query: Query, statuses: tuple[Status, ...]) -> Iterator[str]:
    """Yield reasons for a query over several topics."""
    if isinstance(query.topic, Multiple) and query.topic.how == "separate":
        yield "keeps topics apart"
    if statuses != ("atomic",):
        yield "looks at starts and ends of several topics"
    if isinstance(query.status, Aggregate) or not (
        isinstance(query.location, PooledDimension)
        or (isinstance(query.location, Multiple) and query.location.how == "separate")
    ):
        yield "looks at several topics, and chooses or makes one of locations or statuses"


def _endless_reasons(component: ComponentCondition, others: Components, single: str | None) -> Iterator[str]:
    """Yield reasons for a component with a query over all time.

    Evaluation instant by instant updates the result of such a query. Columns would read all events again for
    each event built one by one, each tick, and each batch of derived events.
    """
    names = {other.name for other in others}
    for name, query in component.inputs:
        if (own := span(query)) is None or own.low != EVER:
            continue
        who = f"{name or 'it'} looks at all time"
        if single is not None:
            yield f"{who}, and {single}"
        if component.tick is not None:
            yield f"{who} at every tick"
        if any(names.intersection(query.topics) for _, query in component.inputs):
            yield f"{who} in a component that builds on others"
        if isinstance(query.location, Aggregate) or isinstance(query.status, Aggregate):
            yield f"{who}, and makes one of locations or statuses"


def _leaves(op: Expression) -> list[Expression]:
    """Return the names, members and numbers of an expression."""
    return [part for part in within(op) if isinstance(part, (MemberAttribute, Name, Number))]


# --- screens -----------------------------------------------------------------------------------


@dataclass
class QueryColumns:
    """The columns of a query that predicates read. Planning a predicate adds to them."""

    query: Query
    topics: Sequence[Topic]
    component: ComponentCondition
    columns: dict[str, PlanColumn] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """Whether the query shows values of several locations at once."""
        return isinstance(self.query.location, Multiple) and self.query.location.how != "separate"

    @property
    def asks_for_members(self) -> bool:
        """Whether given locations must satisfy the predicate, even if they have no data."""
        match self.query.location:
            case Multiple("all", MemberSet()):
                return True
        return False

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes of the query's topics."""
        return frozenset(attribute.name for topic in self.topics for attribute in topic.attributes)

    def column(self, owner: str, name: str) -> PlanColumn | None:
        """Return an attribute as a column of predicates, or `None` if columns cannot show it."""
        if name not in self.own:
            return self._besides(owner, name)
        kind, functions = self._kind(name), self._functions(name)
        if kind is None:
            return None
        if kind in ("text", "bool"):
            return None if functions else PlanColumn(f"{owner}.{name}", name, kind)
        if None in functions.values():
            return None
        function, over, across = (functions.get(which) for which in ("function", "over", "across"))
        return PlanColumn(f"{owner}.{name}", name, "number", function, over=over, across=across)

    def _functions(self, name: str) -> dict[str, Function | None]:
        """Return the functions that apply to an attribute: over the window, over locations or statuses, and
        over topics.

        The value is `None` if the query has a function for this dimension but not for this attribute.
        """
        query = self.query
        over = query.location if isinstance(query.location, Aggregate) else query.status
        found: dict[str, Function | None] = {}
        for which, parameter in (("function", query.time), ("over", over), ("across", query.topic)):
            if isinstance(parameter, Aggregate):
                used = parameter.functions
                found[which] = used if isinstance(used, str) else dict(used).get(name)
        return dict.fromkeys(found) if name in query.each else found

    def _besides(self, owner: str, name: str) -> PlanColumn | None:
        """Return a fixed member as a column, or `None` if columns cannot show it.

        The validity of several places is not shown, because it may change at an instant of another place.
        """
        together = isinstance(self.query.location, PooledDimension) or (
            isinstance(self.query.location, Multiple) and not self.several
        )
        match name:
            case "count":
                return PlanColumn(f"{owner}.count", "", "number")
            case "status" if not isinstance(self.query.status, Aggregate) and not (
                self.query.status == PooledDimension() and self._functions("")
            ):
                return PlanColumn(f"{owner}.status", STATUS, "text")
            case "valid" if together and not self._functions(""):
                return PlanColumn(f"{owner}.valid", VALID, "bool")
        return None

    def away(self, owner: str, sign: str, limit: float) -> PlanColumn | None:
        """Return a comparison of the distance from a moving host with a limit as a column, or `None`."""
        if not isinstance(self.component.here, str) or self.query.is_relative:
            return None
        if self._besides(owner, "valid") is None:
            return None
        return PlanColumn(f"|{owner}.location - here| {sign} {limit}", "", "bool", bound=(sign, limit))

    def given(self, owner: str, name: str) -> PlanColumn | None:
        """Return an attribute as a column of events, or `None` if columns cannot show it."""
        found = self.column(owner, name)
        functions = self._functions(name)
        kind = self._kind(name) if name in self.own else None
        if found is not None or not functions or kind is None:
            return found
        if kind in ("text", "bool"):
            return None if "count" in functions.values() else PlanColumn(f"{owner}.{name}", name, kind)
        return PlanColumn(f"{owner}.{name}", name, "number") if name in self.query.each else None

    def is_whole(self, name: str) -> bool:
        """Whether a member is an integer."""
        column = self.column("", name)
        if column is None or column.attribute in ("", VALID, STATUS):
            return column is not None and column.attribute == ""
        whole = self._kind(name) == "int"
        for function in (column.function, column.over, column.across):
            result = "same" if function is None else AGGREGATES[function].result
            whole = result == "int" or (whole and result == "same")
        return whole

    def _kind(self, name: str) -> Kind | None:
        """Return the kind of an attribute; `None` if it differs between topics."""
        kinds = {topic.by_name[name].kind if name in topic.by_name else None for topic in self.topics}
        return next(iter(kinds)) if len(kinds) == 1 else None


Shows = Mapping[str, QueryColumns]


def screen(op: Expression, shows: Shows) -> tuple[Screen, list[Expression]]:
    """Plan a predicate. Return its screen and the comparisons that the screen assumes to be true.

    Columns that the predicate reads are added to `shows`. Values of a query can be combined with those of
    other queries in any way.
    """
    mentioned = {member.owner for member in members_in(op)} & shows.keys() or shows.keys()
    alone = len(mentioned) == 1
    left: list[Expression] = []
    relaxed = _relax(op, {n: s for n, s in shows.items() if alone or not s.several}, left)
    columns = [column for shown in shows.values() for column in shown.columns.values()]
    read = Topic("", tuple(Attribute(c.name, "float" if c.kind == "number" else c.kind) for c in columns))
    asked = [shows[name] for name in mentioned]
    exact = not left and not any(s.asks_for_members or (s.several and not alone) for s in asked)
    owners = {name: owner for owner, shown in shows.items() for name in shown.columns}
    return Screen(predicate(relaxed, read), exact, _split(relaxed, owners, read)), left


def _split(op: Expression, owners: Mapping[str, str], read: Topic) -> ScreenParts:
    """Split a predicate over columns into comparisons. Only `&&` and `||` may join them."""
    comparisons: list[tuple[frozenset[str], Test]] = []

    def together(op: Expression) -> Callable[[Sequence[Any]], Any]:
        match op:
            case And(left, right):
                a, b = together(left), together(right)
                return lambda true: a(true) & b(true)
            case Or(left, right):
                a, b = together(left), together(right)
                return lambda true: a(true) | b(true)
            case Truth(holds):
                return lambda _: np.bool_(holds)
        number = len(comparisons)
        whose = frozenset(owners[leaf.name] for leaf in _leaves(op) if isinstance(leaf, Name))
        comparisons.append((whose, predicate(op, read)))
        return lambda true: true[number]

    found = together(op)
    return ScreenParts(tuple(comparisons), found)


def _relax(op: Expression, shows: Shows, left: list[Expression]) -> Expression:
    """Replace comparisons that columns cannot evaluate by true, and add these comparisons to `left`."""
    match op:
        case And(a, b):
            return both(_relax(a, shows, left), _relax(b, shows, left))
        case Or(a, b):
            return either(_relax(a, shows, left), _relax(b, shows, left))
        case Truth():
            return op
    if all(_is_shown(leaf, shows) for leaf in _leaves(op)) and not counts_whole(op, shows):
        return _with_column_names(op, shows)
    away = _away(op, shows)
    if away is not None:
        return away
    left.append(op)
    return Truth(True)


def _away(op: Expression, shows: Shows) -> Expression | None:
    """Return a comparison of the distance from a moving host with a limit as the name of a column; otherwise
    `None`."""
    match op:
        case Compare(
            "<" | "<=" | ">" | ">=" as sign, Absolute(Arithmetic("-", a, b)), Number(limit) as number
        ) if Name("here") in (a, b) and _is_shown(number, shows):
            other = b if a == Name("here") else a
            if isinstance(other, MemberAttribute) and other.name == "location" and other.owner in shows:
                column = shows[other.owner].away(other.owner, sign, limit)
                if column is not None:
                    shows[other.owner].columns[column.name] = column
                    return Name(column.name)
    return None


def _is_shown(leaf: Expression, shows: Shows, kinds: Collection[str] = ("number", "text", "bool")) -> bool:
    """Whether columns show a leaf of an expression with one of the given kinds."""
    match leaf:
        case MemberAttribute(owner) if owner in shows:
            column = _column(leaf, shows)
            return column is not None and column.kind in kinds
        case Number(value):
            return abs(value) < _WHOLE
    return False


def _column(member: MemberAttribute, shows: Shows, *, given: bool = False) -> PlanColumn | None:
    """Return a member of a query as a column, or `None` if columns cannot show it.

    With `given`, the column is one of events, otherwise one of predicates.
    """
    shown = shows[member.owner]
    found = (shown.given if given else shown.column)(member.owner, member.name)
    match member.otherwise:
        case Number(default) if abs(default) >= _WHOLE:
            return None
        case Number(default) | Text(default) | Truth(default) if found is not None:
            return found._replace(name=f"{found.name} else {default!r}", default=default)
    return found


def counts_whole(op: Expression, shows: Shows) -> bool:
    """Whether an expression computes with integers, which floats may round."""
    if isinstance(op, Arithmetic) and op.sign != "/" and all(_is_whole(part, shows) for part in parts(op)):
        return True
    return any(counts_whole(part, shows) for part in parts(op))


def _is_whole(op: Expression, shows: Shows) -> bool:
    match op:
        case Number(value):
            return isinstance(value, int)
        case MemberAttribute(owner, name, _, otherwise):
            return shows[owner].is_whole(name) or (otherwise is not None and _is_whole(otherwise, shows))
        case Arithmetic(sign, left, right):
            return sign != "/" and _is_whole(left, shows) and _is_whole(right, shows)
        case Negative(arg) | Absolute(arg):
            return _is_whole(arg, shows)
    return False


def _with_column_names(op: Expression, shows: Shows) -> Expression:
    """Return the expression with column names in place of members."""
    match op:
        case MemberAttribute(owner):
            column = _column(op, shows)
            assert column is not None
            shows[owner].columns[column.name] = column
            return Name(column.name)
        case Compare(_, left, right) | Arithmetic(_, left, right):
            left, right = _with_column_names(left, shows), _with_column_names(right, shows)
            return replace(op, left=left, right=right)
        case Negative(arg) | Absolute(arg) | Not(arg):
            return replace(op, arg=_with_column_names(arg, shows))
    return op


# --- columns of events ------------------------------------------------------------------------

Values = Callable[[pa.RecordBatch], Any]
"""A function that computes a value for each row of a batch."""
ReadColumns = dict[str, dict[str, PlanColumn]]
"""The columns that computations read, by query and name."""


def plan_event(rule: CheckedRule, component: ComponentCondition, shows: Shows) -> EventColumns | str:
    """Return the columns of a rule's events, or the reason why events are built one by one."""
    sets = dict(rule.sets)
    attributes = [attribute.name for attribute in component.topic.attributes]
    if odd := [name for name in sets if name not in attributes]:
        return f"{odd[0]} is set"
    given: dict[str, tuple[PlanColumn, ...]] = {}
    for owner, shown in shows.items():
        columns: list[PlanColumn] = []
        for name in attributes:
            if name in shown.own and name not in sets:
                if (column := shown.given(owner, name)) is None:
                    return f"{name} has no function"
                columns.append(column)
        given[owner] = tuple(columns)
    read: ReadColumns = {}
    computes: dict[str, Values] = {}
    for name, op in sets.items():
        if (compute := _values(op, shows, read)) is None:
            return f"{name} is set to what columns do not tell"
        computes[name] = compute
    return EventColumns(given, {owner: tuple(found.values()) for owner, found in read.items()}, computes)


def _values(op: Expression, shows: Shows, read: ReadColumns) -> Values | None:
    """Return the function that computes an expression over columns, or `None` if columns do not suffice.

    The columns that the function reads are added to `read`.
    """
    match op:
        case Text(constant) | Truth(constant):
            return lambda batch: pa.repeat(constant, len(batch))
        case MemberAttribute(owner, name) if owner in shows and name not in ("valid", "status"):
            column = _column(op, shows, given=True)
            if column is None:
                return None
            read.setdefault(owner, {})[column.name] = column
            if column.kind == "number":
                return lambda batch: floats(batch, column.name)
            return lambda batch: batch.column(column.name)
        case Number() | Arithmetic() | Negative() | Absolute():
            is_shown = all(_is_shown(leaf, shows, ("number",)) for leaf in _leaves(op))
            return _numbers(op, shows, read) if is_shown and not counts_whole(op, shows) else None
    return None


def _numbers(op: Expression, shows: Shows, read: ReadColumns) -> Values:
    """Return the function that computes a number over columns, with the results of
    `holdfast.lang.expressions.evaluate`."""
    match op:
        case Number(constant):
            return lambda batch: np.full(len(batch), float(constant))
        case Negative(arg):
            negated = _numbers(arg, shows, read)
            return lambda batch: 0.0 - negated(batch)
        case Absolute(arg):
            inner = _numbers(arg, shows, read)
            return lambda batch: np.where((values := inner(batch)) < 0, 0.0 - values, values)
        case Arithmetic(sign, left, right):
            a, b, compute = _numbers(left, shows, read), _numbers(right, shows, read), ARITHMETIC[sign]
            return np.errstate(all="ignore")(lambda batch: compute(a(batch), b(batch)))
    found = _values(op, shows, read)
    assert found is not None, "not a number"
    return found
