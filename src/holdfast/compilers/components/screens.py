"""Checked components become columnar plans, or a reason why not.

A screen is the predicate with every comparison that columns do not show taken to be true.  In the
core ``!`` stands only before names, so a screen lets pass at least what the predicate does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
    Truth,
)
from ...lang.rewrite import both, either, parts
from ...machines.detector.plan import Column, Plan, Screen
from ...machines.detector.span import span
from ...model.batch import AXES
from ...model.query import NOW, Aggregate, Closest, Function, Index, Members, Multiple, Pool, Query
from ...model.topic import Attribute, Topic
from ..columns import predicate

LAST = "last"
ONE_BY_ONE = ("time", "topic", "status", *AXES)
"""Keys that are found for one reading at a time."""

_WHOLE = 2**53
"""From here on a float may stand for several whole numbers, and be equal to none of them."""


class Screened(NamedTuple):
    """A columnar plan, and the comparisons that are left to the reference machine."""

    plan: Plan
    left: tuple[Expression, ...]


def screened(component: Component) -> Screened | str:
    """The columnar plan of a component, or why it has none."""
    reason = next(_reasons(component), None)
    if reason is not None:
        return reason
    shows = {name: _Shown(query, _topic(component, query), component) for name, query in component.inputs}
    rules = [component.enter] if component.momentary else [component.enter, component.exit]
    (enter, *leave), left = zip(*(screen(rule.when, shows) for rule in rules), strict=True)
    columns = {name: tuple(shown.columns.values()) for name, shown in shows.items()}
    beyond = dict.fromkeys(comparison for some in left for comparison in some)
    return Screened(Plan(columns, enter, leave[0] if leave else None), tuple(beyond))


def _topic(component: Component, query: Query) -> Topic:
    return next(topic for topic in component.listens if topic.name == query.topics[0])


# --- reasons -----------------------------------------------------------------------------------


def _reasons(component: Component) -> Iterator[str]:
    """Why a component is evaluated one instant after another."""
    if isinstance(component.here, str):
        yield f"each source of {component.here} carries a replica"
    if component.level > 1:
        yield "it builds on another component"
    for name, query in component.inputs:
        yield from (f"{name or 'it'} {reason}" for reason in _query_reasons(query))
    if len({query.separate for _, query in component.inputs}) > 1:
        yield "an event of a query that keeps nothing apart concerns every key"
    if odd := [key for key in component.keys if key in ONE_BY_ONE]:
        yield f"it is kept apart by {odd[0]}"
    for rule in (component.enter, component.exit):
        if any(isinstance(leaf, Member) and leaf.otherwise is not None for leaf in _leaves(rule.when)):
            yield "a predicate says what counts where there is nothing"
        if rule.hold and _changes_by_itself(rule, component):
            yield "a guard is over a predicate that time alone can change"


def _query_reasons(query: Query) -> Iterator[str]:
    if not isinstance(query.topic, Closest):
        yield "looks at several topics"
    if query.status not in (Multiple("any"), Pool(), Closest(Index("atomic"))):
        yield "chooses by status"
    if span(query) is None:
        yield "looks at times that are neither a window up to now nor the nearest"
    if isinstance(query.location, Aggregate):
        yield "aggregates locations"


def _changes_by_itself(rule: Rule, component: Component) -> bool:
    """Whether the rule's predicate can become true or false although no reading comes or leaves."""
    inside = list(_leaves(rule.when))
    queries = dict(component.inputs)
    mentioned = {leaf.owner for leaf in inside if isinstance(leaf, Member)} & queries.keys() or queries.keys()
    times = [queries[name].time for name in mentioned]
    return any(isinstance(time, Closest) and time != Closest(NOW) for time in times) or any(
        leaf == Name("now") or (isinstance(leaf, Member) and leaf.name == "valid" and leaf.owner != LAST)
        for leaf in inside
    )


def _leaves(op: Expression) -> Iterator[Expression]:
    if isinstance(op, (Member, Name, Number)):
        yield op
    for part in parts(op):
        yield from _leaves(part)


# --- screens -----------------------------------------------------------------------------------


@dataclass
class _Shown:
    """What a query shows, and the columns of it that predicates read."""

    query: Query
    topic: Topic
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

    def column(self, owner: str, name: str) -> Column | None:
        """An attribute as a column, if it can be one."""
        own = {a.name: a for a in self.topic.attributes}
        if name not in own:
            return Column(f"{owner}.{name}", "", "number") if name == "count" else None
        kind = own[name].kind
        if isinstance(self.query.time, Aggregate):
            function = self._function(name)
            if function is None or kind in ("text", "bool"):
                return None
            return Column(f"{owner}.{name}", name, "number", function)
        if kind in ("text", "bool"):
            return Column(f"{owner}.{name}", name, kind)
        return Column(f"{owner}.{name}", name, "number")

    def _function(self, name: str) -> Function | None:
        assert isinstance(self.query.time, Aggregate)
        functions = self.query.time.functions
        if name in self.query.each:
            return None
        return functions if isinstance(functions, str) else dict(functions).get(name)

    def is_whole(self, name: str) -> bool:
        """Whether what it shows under a name is a whole number."""
        column = self.column("", name)
        if column is None or column.function in ("avg", "stddev"):
            return False
        return column.attribute == "" or column.function == "count" or self._kind(name) == "int"

    def _kind(self, name: str) -> str:
        return self.topic.by_name[name].kind


def screen(op: Expression, shows: Mapping[str, _Shown]) -> tuple[Screen, list[Expression]]:
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
    return Screen(predicate(relaxed, read), exact), left


def _relaxed(op: Expression, shows: Mapping[str, _Shown], left: list[Expression]) -> Expression:
    """The predicate over columns; what they do not show is true, and added to what is left."""
    match op:
        case And(a, b):
            return both(_relaxed(a, shows, left), _relaxed(b, shows, left))
        case Or(a, b):
            return either(_relaxed(a, shows, left), _relaxed(b, shows, left))
        case Truth():
            return op
    if all(_is_shown(leaf, shows) for leaf in _leaves(op)) and not _counts_whole(op, shows):
        return _named(op, shows)
    left.append(op)
    return Truth(True)


def _is_shown(leaf: Expression, shows: Mapping[str, _Shown]) -> bool:
    match leaf:
        case Member(owner, name):
            return owner in shows and shows[owner].column(owner, name) is not None
        case Number(value):
            return abs(value) < _WHOLE
    return False


def _counts_whole(op: Expression, shows: Mapping[str, _Shown]) -> bool:
    """Whether whole numbers are computed with, which floats may round."""
    if isinstance(op, Arithmetic) and op.sign != "/" and all(_is_whole(part, shows) for part in parts(op)):
        return True
    return any(_counts_whole(part, shows) for part in parts(op))


def _is_whole(op: Expression, shows: Mapping[str, _Shown]) -> bool:
    match op:
        case Number(value):
            return isinstance(value, int)
        case Member(owner, name):
            return shows[owner].is_whole(name)
        case Arithmetic(sign, left, right):
            return sign != "/" and _is_whole(left, shows) and _is_whole(right, shows)
        case Negative(arg) | Absolute(arg):
            return _is_whole(arg, shows)
    return False


def _named(op: Expression, shows: Mapping[str, _Shown]) -> Expression:
    """The expression over names of columns."""
    match op:
        case Member(owner, name):
            column = shows[owner].column(owner, name)
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
