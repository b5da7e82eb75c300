"""Checked components become columnar plans, or a reason why not.

A screen is the predicate with every comparison that columns do not show taken to be true.  In the
core ``!`` stands only before names, so a screen lets pass at least what the predicate does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...lang.condition import Component, Rule
from ...lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    Expression,
    Member,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ...lang.rewrite import both, either, parts
from ...machines.detector.plan import STATUS, VALID, Column, Parts, Plan, Saying, Screen, Test
from ...machines.detector.span import EVER, span
from ...model.event import Status
from ...model.query import (
    NOW,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Function,
    Index,
    Members,
    Multiple,
    Pool,
    Query,
)
from ...model.topic import Attribute, Kind, Topic
from ..columns import ARITHMETIC, floats, predicate

LAST = "last"

_WHOLE = 2**53
"""From here on a float may stand for several whole numbers, and be equal to none of them."""


class Screened(NamedTuple):
    """A columnar plan, the comparisons that are left to the reference machine, and why it makes events one by
    one, if it does."""

    plan: Plan
    left: tuple[Expression, ...]
    single: str | None


def screened(component: Component, others: Iterable[Component] = ()) -> Screened | str:
    """The columnar plan of a component, or why it has none; ``others`` are those that it may build on."""
    others = list(others)
    if component.here in {one.name for one in others}:
        return f"what {component.here} tells carries a replica"
    statuses = dict(_statuses(component, others))
    reason = next(_reasons(component, statuses), None)
    if reason is not None:
        return reason
    shows = {name: Shown(query, _topics(component, query), component) for name, query in component.inputs}
    rules = [component.enter] if component.momentary else [component.enter, component.exit]
    (enter, *leave), left = zip(*(screen(rule.when, shows) for rule in rules), strict=True)
    columns = {name: tuple(shown.columns.values()) for name, shown in shows.items()}
    beyond = dict.fromkeys(comparison for some in left for comparison in some)
    says = [saying(rule, component, shows) for rule in rules]
    told = [None if isinstance(one, str) else one for one in says]
    plan = Plan(
        columns,
        enter,
        leave[0] if leave else None,
        component.topic,
        {topic.name: topic for topic in component.listens},
        statuses,
        (told[0], told[-1]),
    )
    guarded = "a guard waits" if any(rule.hold for rule in rules) else None
    unsure = (
        "columns do not tell all of a predicate" if not all(one.exact for one in (enter, *leave)) else None
    )
    several = (
        f"{name or 'it'} shows several places at other times than now"
        for name, shown in shows.items()
        if shown.several and shown.query.time != Closest(NOW)
    )
    reasons = [*(one for one in says if isinstance(one, str)), unsure, guarded, *several]
    single = next(filter(None, reasons), None)
    costly = next(_endless_reasons(component, others, single), None)
    return Screened(plan, tuple(beyond), single) if costly is None else costly


def _statuses(component: Component, others: Iterable[Component]) -> Iterator[tuple[str, tuple[Status, ...]]]:
    """The statuses of what each query looks at."""
    lasting = {one.name for one in others if not one.momentary}
    for name, query in component.inputs:
        yield name, ("ingress", "egress") if lasting.intersection(query.topics) else ("atomic",)


def _topics(component: Component, query: Query) -> list[Topic]:
    heard = {topic.name: topic for topic in component.listens}
    return [heard[name] for name in query.topics]


# --- reasons -----------------------------------------------------------------------------------


def _reasons(component: Component, statuses: Mapping[str, tuple[Status, ...]]) -> Iterator[str]:
    """Why a component is evaluated one instant after another."""
    if isinstance(component.here, str):
        yield from _roaming_reasons(component, statuses)
    for name, query in component.inputs:
        yield from (f"{name or 'it'} {reason}" for reason in _query_reasons(query, statuses[name]))
    if len({query.separate for _, query in component.inputs}) > 1:
        yield from _sharing_reasons(component)


def _sharing_reasons(component: Component) -> Iterator[str]:
    """Why one is of which an event of one query concerns every key."""
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
    named = [leaf for leaf in _leaves(component.enter.when) if isinstance(leaf, Member)]
    if named and not any(leaf.owner in apart and leaf.otherwise is None for leaf in named):
        yield f"{every} that is known, whatever is known of it"


def _roaming_reasons(component: Component, statuses: Mapping[str, tuple[Status, ...]]) -> Iterator[str]:
    """Why one that hosts carry with them is."""
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
            case Closest() | Multiple(_, Ball()) | Pool(Ball()):
                pass
            case _:
                yield f"{who} looks at a range around each source of {component.here}"


def _query_reasons(query: Query, statuses: tuple[Status, ...]) -> Iterator[str]:
    if len(query.topics) > 1 or not isinstance(query.topic, Closest):
        yield from _topic_reasons(query, statuses)
    whole = (Multiple("any"), Pool(), *(Closest(Index(status)) for status in statuses))
    folds = [one for one in (query.location, query.status) if isinstance(one, Aggregate)]
    if query.status not in whole and not (
        isinstance(query.status, Aggregate) and query.status.group == WHOLE
    ):
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
    """Why one that looks at several topics is."""
    if isinstance(query.topic, Multiple) and query.topic.how == "separate":
        yield "keeps topics apart"
    if statuses != ("atomic",):
        yield "looks at starts and ends of several topics"
    if isinstance(query.status, Aggregate) or not (
        isinstance(query.location, Pool)
        or (isinstance(query.location, Multiple) and query.location.how == "separate")
    ):
        yield "looks at several topics, and chooses or makes one of locations or statuses"


def _endless_reasons(component: Component, others: Iterable[Component], single: str | None) -> Iterator[str]:
    """Why one that looks at all there ever was is: the reference machine keeps up what columns would go
    through anew, for each event that is made one by one, each tick, and each batch of what others tell."""
    told = {one.name for one in others}
    for name, query in component.inputs:
        if (own := span(query)) is None or own.low != EVER:
            continue
        who = f"{name or 'it'} looks at all time"
        if single is not None:
            yield f"{who}, and {single}"
        if component.tick is not None:
            yield f"{who} at every tick"
        if any(told.intersection(one.topics) for _, one in component.inputs):
            yield f"{who} in a component that builds on others"
        if isinstance(query.location, Aggregate) or isinstance(query.status, Aggregate):
            yield f"{who}, and makes one of locations or statuses"


def _leaves(op: Expression) -> Iterator[Expression]:
    if isinstance(op, (Member, Name, Number)):
        yield op
    for part in parts(op):
        yield from _leaves(part)


# --- screens -----------------------------------------------------------------------------------


@dataclass
class Shown:
    """What a query shows, and the columns of it that predicates read."""

    query: Query
    topics: Sequence[Topic]
    component: Component
    columns: dict[str, Column] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """Whether it shows values of several locations at once."""
        return isinstance(self.query.location, Multiple) and self.query.location.how != "separate"

    @property
    def asks_for_members(self) -> bool:
        """Whether certain locations must satisfy, also if they are silent."""
        location = self.query.location
        return (
            isinstance(location, Multiple) and location.how == "all" and isinstance(location.group, Members)
        )

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes of what it looks at."""
        return frozenset(attribute.name for topic in self.topics for attribute in topic.attributes)

    def column(self, owner: str, name: str) -> Column | None:
        """An attribute as a column, if it can be one."""
        if name not in self.own:
            return self._besides(owner, name)
        kind, functions = self._kind(name), self._functions(name)
        if kind is None:
            return None
        if kind in ("text", "bool"):
            return None if functions else Column(f"{owner}.{name}", name, kind)
        if None in functions.values():
            return None
        return Column(
            f"{owner}.{name}",
            name,
            "number",
            functions.get("function"),
            over=functions.get("over"),
            across=functions.get("across"),
        )

    def _functions(self, name: str) -> dict[str, Function | None]:
        """What makes one of many values of an attribute: the function of a window, the one over locations or
        statuses, and that over topics; ``None`` if it leaves out the attribute."""
        query = self.query
        over = query.location if isinstance(query.location, Aggregate) else query.status
        return {
            which: _function(name, query, one.functions)
            for which, one in (("function", query.time), ("over", over), ("across", query.topic))
            if isinstance(one, Aggregate)
        }

    def _besides(self, owner: str, name: str) -> Column | None:
        """What knowledge has besides attributes, if it can be a column: what is valid now need not be so at
        the next instant of another place."""
        together = isinstance(self.query.location, Pool) or (
            isinstance(self.query.location, Multiple) and not self.several
        )
        match name:
            case "count":
                return Column(f"{owner}.count", "", "number")
            case "status" if not isinstance(self.query.status, Aggregate) and not (
                self.query.status == Pool() and self._functions("")
            ):
                return Column(f"{owner}.status", STATUS, "text")
            case "valid" if together and not self._functions(""):
                return Column(f"{owner}.valid", VALID, "bool")
        return None

    def away(self, owner: str, sign: str, limit: float) -> Column | None:
        """Whether what it shows is so far from a host that moves, if that can be a column."""
        if not isinstance(self.component.here, str) or self.query.is_relative:
            return None
        if self._besides(owner, "valid") is None:
            return None
        return Column(f"|{owner}.location - here| {sign} {limit}", "", "bool", bound=(sign, limit))

    def given(self, owner: str, name: str) -> Column | None:
        """An attribute as a column of events, if it can be one."""
        found = self.column(owner, name)
        functions = self._functions(name)
        kind = self._kind(name) if name in self.own else None
        if found is not None or not functions or kind is None:
            return found
        if kind in ("text", "bool"):
            return None if "count" in functions.values() else Column(f"{owner}.{name}", name, kind)
        return Column(f"{owner}.{name}", name, "number") if name in self.query.each else None

    def is_whole(self, name: str) -> bool:
        """Whether what it shows under a name is a whole number."""
        column = self.column("", name)
        if column is None or column.attribute in ("", VALID, STATUS):
            return column is not None and column.attribute == ""
        whole = self._kind(name) == "int"
        for function in (column.function, column.over, column.across):
            whole = function == "count" or (whole and function not in ("avg", "stddev"))
        return whole

    def _kind(self, name: str) -> Kind | None:
        """The kind of an attribute; ``None`` if not all topics have the same."""
        kinds = {topic.by_name[name].kind if name in topic.by_name else None for topic in self.topics}
        return next(iter(kinds)) if len(kinds) == 1 else None


def _function(
    name: str, query: Query, functions: Function | tuple[tuple[str, Function], ...]
) -> Function | None:
    if name in query.each:
        return None
    return functions if isinstance(functions, str) else dict(functions).get(name)


def screen(op: Expression, shows: Mapping[str, Shown]) -> tuple[Screen, list[Expression]]:
    """A core predicate as a screen, and what of it the screen takes to be true; the columns that it
    reads are noted in ``shows``.

    Several values of a query that is not alone can be combined with those of others in any way.
    """
    mentioned = {
        leaf.owner for leaf in _leaves(op) if isinstance(leaf, Member)
    } & shows.keys() or shows.keys()
    alone = len(mentioned) == 1
    left: list[Expression] = []
    relaxed = _relaxed(op, {n: s for n, s in shows.items() if alone or not s.several}, left)
    columns = [column for shown in shows.values() for column in shown.columns.values()]
    read = Topic("", tuple(Attribute(c.name, "float" if c.kind == "number" else c.kind) for c in columns))
    exact = not left and not any(
        shows[name].asks_for_members or (shows[name].several and not alone) for name in mentioned
    )
    owners = {name: owner for owner, shown in shows.items() for name in shown.columns}
    return Screen(predicate(relaxed, read), exact, _parted(relaxed, owners, read)), left


def _parted(op: Expression, owners: Mapping[str, str], read: Topic) -> Parts:
    """A predicate over columns as its comparisons; no more than ``&&`` and ``||`` are around them."""
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
    return Parts(tuple(comparisons), found)


def _relaxed(op: Expression, shows: Mapping[str, Shown], left: list[Expression]) -> Expression:
    """The predicate over columns; what they do not show is true, and added to what is left."""
    match op:
        case And(a, b):
            return both(_relaxed(a, shows, left), _relaxed(b, shows, left))
        case Or(a, b):
            return either(_relaxed(a, shows, left), _relaxed(b, shows, left))
        case Truth():
            return op
    if all(_is_shown(leaf, shows) for leaf in _leaves(op)) and not counts_whole(op, shows):
        return _named(op, shows)
    away = _away(op, shows)
    if away is not None:
        return away
    left.append(op)
    return Truth(True)


def _away(op: Expression, shows: Mapping[str, Shown]) -> Expression | None:
    """A comparison of the distance from a host that moves with a limit, as a column."""
    match op:
        case Compare(
            "<" | "<=" | ">" | ">=" as sign, Absolute(Arithmetic("-", a, b)), Number(limit) as number
        ) if Name("here") in (a, b) and _is_shown(number, shows):
            other = b if a == Name("here") else a
            if isinstance(other, Member) and other.name == "location" and other.owner in shows:
                column = shows[other.owner].away(other.owner, sign, limit)
                if column is not None:
                    shows[other.owner].columns[column.name] = column
                    return Name(column.name)
    return None


def _is_shown(leaf: Expression, shows: Mapping[str, Shown]) -> bool:
    match leaf:
        case Member(owner):
            return owner in shows and _column(leaf, shows) is not None
        case Number(value):
            return abs(value) < _WHOLE
    return False


def _column(member: Member, shows: Mapping[str, Shown], *, given: bool = False) -> Column | None:
    """What is said of a query, as a column of predicates, or of events (``given``), if it can be one."""
    shown = shows[member.owner]
    found = (shown.given if given else shown.column)(member.owner, member.name)
    match member.otherwise:
        case Number(default) if abs(default) >= _WHOLE:
            return None
        case Number(default) | Text(default) | Truth(default) if found is not None:
            return found._replace(name=f"{found.name} else {default!r}", default=default)
    return found


def counts_whole(op: Expression, shows: Mapping[str, Shown]) -> bool:
    """Whether whole numbers are computed with, which floats may round."""
    if isinstance(op, Arithmetic) and op.sign != "/" and all(_is_whole(part, shows) for part in parts(op)):
        return True
    return any(counts_whole(part, shows) for part in parts(op))


def _is_whole(op: Expression, shows: Mapping[str, Shown]) -> bool:
    match op:
        case Number(value):
            return isinstance(value, int)
        case Member(owner, name, _, otherwise):
            return shows[owner].is_whole(name) or (otherwise is not None and _is_whole(otherwise, shows))
        case Arithmetic(sign, left, right):
            return sign != "/" and _is_whole(left, shows) and _is_whole(right, shows)
        case Negative(arg) | Absolute(arg):
            return _is_whole(arg, shows)
    return False


def _named(op: Expression, shows: Mapping[str, Shown]) -> Expression:
    """The expression over names of columns."""
    match op:
        case Member(owner):
            column = _column(op, shows)
            assert column is not None
            shows[owner].columns[column.name] = column
            return Name(column.name)
        case Compare(sign, left, right):
            return Compare(sign, _named(left, shows), _named(right, shows))
        case Arithmetic(sign, left, right):
            return Arithmetic(sign, _named(left, shows), _named(right, shows))
        case Negative(arg):
            return Negative(_named(arg, shows))
        case Absolute(arg):
            return Absolute(_named(arg, shows))
        case Not(arg):
            return Not(_named(arg, shows))
    return op


# --- what events say ---------------------------------------------------------------------------

Values = Callable[[pa.RecordBatch], Any]


def saying(rule: Rule, component: Component, shows: Mapping[str, Shown]) -> Saying | str:
    """What events of a rule say, over columns; or why they are made one by one."""
    sets = dict(rule.sets)
    told = [attribute.name for attribute in component.topic.attributes]
    if odd := [name for name in sets if name not in told]:
        return f"{odd[0]} is set"
    given: dict[str, tuple[Column, ...]] = {}
    for owner, shown in shows.items():
        found = [(name, shown.given(owner, name)) for name in told if name in shown.own and name not in sets]
        if lost := [name for name, column in found if column is None]:
            return f"{lost[0]} has no function"
        given[owner] = tuple(column for _, column in found if column is not None)
    read: dict[str, dict[str, Column]] = {}
    computes = {name: _values(op, shows, read) for name, op in sets.items()}
    if hard := [name for name, compute in computes.items() if compute is None]:
        return f"{hard[0]} is set to what columns do not tell"
    known = {name: compute for name, compute in computes.items() if compute is not None}
    return Saying(given, {owner: tuple(columns.values()) for owner, columns in read.items()}, known)


def _values(op: Expression, shows: Mapping[str, Shown], read: dict[str, dict[str, Column]]) -> Values | None:
    """What an expression computes over columns, which are noted in ``read``; ``None`` if they do not tell."""
    match op:
        case Text(constant) | Truth(constant):
            return lambda batch: pa.repeat(constant, len(batch))
        case Member(owner, name) if owner in shows and name not in ("valid", "status"):
            column = _column(op, shows, given=True)
            if column is None:
                return None
            read.setdefault(owner, {})[column.name] = column
            if column.kind == "number":
                return lambda batch: floats(batch, column.name)
            return lambda batch: batch.column(column.name)
        case Number() | Arithmetic() | Negative() | Absolute():
            told = all(_is_number(leaf, shows) for leaf in _leaves(op)) and not counts_whole(op, shows)
            return _numbers(op, shows, read) if told else None
    return None


def _numbers(op: Expression, shows: Mapping[str, Shown], read: dict[str, dict[str, Column]]) -> Values:
    """The same of numbers, as :func:`holdfast.lang.evaluate.computed` has them."""
    match op:
        case Number(constant):
            return lambda batch: np.full(len(batch), float(constant))
        case Negative(arg):
            negated = _numbers(arg, shows, read)
            return lambda batch: 0.0 - negated(batch)
        case Absolute(arg):
            inner = _numbers(arg, shows, read)
            return lambda batch: _absolute(inner(batch))
        case Arithmetic(sign, left, right):
            a, b, compute = _numbers(left, shows, read), _numbers(right, shows, read), ARITHMETIC[sign]
            return lambda batch: _quietly(compute, a(batch), b(batch))
    found = _values(op, shows, read)
    assert found is not None, "not a number"
    return found


def _is_number(leaf: Expression, shows: Mapping[str, Shown]) -> bool:
    match leaf:
        case Number(value):
            return abs(value) < _WHOLE
        case Member(owner) if owner in shows:
            column = _column(leaf, shows)
            return column is not None and column.kind == "number"
    return False


def _absolute(values: Any) -> Any:
    return np.where(values < 0, 0.0 - values, values)


def _quietly(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return compute(a, b)
