"""Parse components in the readable form. Each function receives the parts of one grammar rule.

The rules are in `lang/holdfast.lark`. `thesis_tables.py` parses the notation of the thesis to the same
statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ...errors import DefinitionError, did_you_mean
from ...lang import literal
from ...lang.grammar import read
from ...lang.nodes import (
    as_token,
    as_tree,
    coordinate_of,
    duration,
    expression,
    is_tree,
    label_of,
    name_of,
    one_of,
    parts_of,
    place,
    point_of,
    text_of,
    topic_word,
    word_of,
    wrong,
)
from ...lang.ops import Expression, LocationLiteral, Not, Number, Trigger, Word
from ...model.instant import parse_instant
from ...model.qos import Delivery
from ...model.query import (
    HERE,
    NOW,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Dimension,
    Function,
    Group,
    How,
    Index,
    MemberSet,
    Multiple,
    Parameter,
    PooledDimension,
    Query,
    QueryRange,
)
from ..clauses import delivery_clause
from .origin import resolve_origin
from .syntax import Collide, DefineComponent

if TYPE_CHECKING:
    from lark import Token, Tree

    from ...lang.nodes import Node

DIMENSION: dict[str, Dimension] = {
    "time": "time", "times": "time",
    "location": "location", "locations": "location",
    "status": "status", "statuses": "status",
}  # fmt: skip
"""The dimension that each word of the language names, in singular and plural."""
STATUSES = ("atomic", "ingress", "egress")


def component(parts: list[Any]) -> DefineComponent:
    """Parse `state NAME` with queries, `enter`, `exit` and traits."""
    name, queries, enter, leave, *traits = parts
    inputs: tuple[tuple[str, Query], ...]
    if queries.data == "inputs":
        pairs = (as_tree(node).children for node in queries.children)
        inputs = tuple((query_word(as_token(name)), select(query)) for name, query in pairs)
    else:
        inputs = (("", select(queries)),)
    when, hold, sets = enter.children
    entrance = trigger(when, hold, sets, inside=int(leave is None))
    return DefineComponent(
        label_of(name),
        inputs,
        entrance,
        Trigger(Not(entrance.when, entrance.at)) if leave is None else trigger(*leave.children),
        **traits_of(traits),
        at=place(name),
    )


def trigger(when: Node, hold: Node | None, sets: Node | None, inside: int = 0) -> Trigger:
    """Parse a predicate, its minimum duration, and the computations of its event."""
    pairs = [as_tree(node).children for node in (parts_of(sets) if sets is not None else ())]
    computed: list[tuple[str, Expression]] = []
    for target, value in pairs:
        word = topic_word(as_token(target))
        if word in (known for known, _ in computed):
            raise DefinitionError(f"'{word}' is set twice", place(target))
        computed.append((word, _computed_value(value, word)))
    length = 0 if hold is None else duration(hold, above_zero=True)
    return Trigger(resolve_origin(expression(when, inside)), length, tuple(computed), place(when))


def _computed_value(node: Node, word: str) -> Expression:
    """Parse the value of a computation. A location with one coordinate has the form of a number."""
    if is_tree(node) and as_tree(node).data == "spot":
        return LocationLiteral(point_of(node), place(node))
    found = resolve_origin(expression(node), word)
    if word == "location" and isinstance(found, Number) and found.unit in (None, "m"):
        return LocationLiteral((float(found.value),), found.at)
    return found


def traits_of(nodes: Iterable[Tree[Token]]) -> dict[str, Any]:
    """Parse `tick`, `here` and delivery, and return them as arguments of the statement."""
    traits: dict[str, Any] = {}
    for node in nodes:
        word, trait = _trait(node)
        if word in traits:
            raise DefinitionError(f"'{node.data}' is given twice", place(node))
        traits[word] = trait
    delivery = Delivery(traits.pop("wait", None), traits.pop("late", "drop"))
    return traits | {"delivery": delivery}


def _trait(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case "tick", [every]:
            return "tick", duration(every, above_zero=True)
        case "here", [at]:
            return "here", point_of(at) if is_tree(at) else word_of(as_token(at))
        case _:
            return delivery_clause(node)


# --- queries -----------------------------------------------------------------------------------


def query_word(token: Token) -> Word:
    """Return the name of a query. Raise a `DefinitionError` for a reserved word."""
    if token in literal.QUERY_WORDS:
        message = f"'{token}' has a meaning of its own in a component"
        raise DefinitionError(message, place(token), hint="Name the query otherwise.")
    return topic_word(token)


def select(node: Node) -> Query:
    """Parse a query, such as `avg InductiveLoop over 30 s each location`."""
    functions, status, chosen, *clauses = cast("list[Any]", as_tree(node).children)
    found = _QueryClauses(node)
    if functions is not None:
        found.put("time", "function", _functions(functions), functions)
    if status is not None:
        found.put("status", "closest", Index(str(status)), status)
    if chosen.data == "of_topic" and chosen.children[0] is not None:
        found.put("location", "how", str(chosen.children[0]), chosen)
    for clause in clauses:
        _clause(clause, found)
    return Query(_topics(chosen), found.time(), found.location(), found.status(), tuple(found.keys))


def _functions(node: Node) -> Function | tuple[tuple[str, Function], ...]:
    """Parse one function, or pairs of function and attribute."""
    words = [as_token(part) for part in parts_of(node)]
    if len(words) == 1:
        return str(words[0])
    return tuple((name_of(n), str(f)) for f, n in zip(words[::2], words[1::2], strict=True))


def _topics(node: Tree[Token]) -> Closest | Aggregate | Multiple:
    """Parse the topics of a query: one topic, or several with a function or a word for how many."""
    first, *words = [cast("Any", child) for child in node.children if child is not None]
    if node.data == "of_topic":
        return Closest(Index(word_of(words[-1] if words else first)))
    names = words if is_tree(first) or first.type == "HOW" else [first, *words]
    members = MemberSet(tuple(Index(word_of(name)) for name in names))
    if is_tree(first):
        return Aggregate(_functions(first), members)
    return Multiple(cast("How", str(first)) if first.type == "HOW" else "separate", members)


class _QueryClauses:
    """The clauses of a query.

    Each dimension has at most one group, and at most one choice of how it is processed: how many, a function,
    or the closest.
    """

    def __init__(self, query: Node) -> None:
        self.query = query
        self.groups: dict[Dimension, Group] = {}
        self.becomes: dict[Dimension, tuple[str, Any]] = {}
        self.keys: list[str] = []

    def put(self, dimension: Dimension, what: str, value: Any, at: Node) -> None:
        """Store a clause. Raise a `DefinitionError` if the dimension already has one for the purpose
        `what`."""
        known: dict[Dimension, Any] = self.groups if what == "group" else self.becomes
        if dimension in known:
            raise DefinitionError(f"what becomes of the {dimension} is said twice", place(at))
        known[dimension] = value if what == "group" else (what, value)

    def _parameter(self, dimension: Dimension, otherwise: Parameter) -> Any:
        group = self.groups.get(dimension, WHOLE)
        match self.becomes.get(dimension):
            case "how", how:
                return Multiple(how, group)
            case "function", functions:
                return Aggregate(functions, group)
            case "closest", index:
                return Closest(index)
            case "pool", _:
                return PooledDimension(group)
        return otherwise

    def time(self) -> Any:
        """Return the time parameter. A function needs a window, and a window needs a function."""
        made = self._parameter("time", Closest(NOW))
        if isinstance(made, Aggregate) and "time" not in self.groups:
            message = f"{made.functions if isinstance(made.functions, str) else 'a function'} needs a window"
            hint = "Say over how long: over 30 s; or over everything that was: ever."
            raise DefinitionError(message, place(self.query), hint=hint)
        if isinstance(made, Closest) and "time" in self.groups:
            message = "a window needs a function, or a word for how many"
            hint = "As in: avg T over 30 s; T any time over 30 s; T all times over 30 s."
            raise DefinitionError(message, place(self.query), hint=hint)
        return made

    def location(self) -> Any:
        """Return the location parameter; by default, locations are pooled."""
        made = self._parameter("location", PooledDimension(self.groups.get("location", WHOLE)))
        if isinstance(made, Closest) and "location" in self.groups:
            hint = "Say either where to look, or what to be close to."
            raise DefinitionError("the closest needs no region", place(self.query), hint=hint)
        return made

    def status(self) -> Any:
        """Return the status parameter; by default, any status."""
        return self._parameter("status", Multiple("any"))


def _clause(node: Tree[Token], clauses: _QueryClauses) -> None:
    """Parse one clause of a query and store it in `clauses`."""
    parts = cast("list[Any]", node.children)
    match node.data:
        case "many":
            how, word, members = parts
            dimension = _dimension(word)
            clauses.put(dimension, "how", str(how), node)
            _members(dimension, members, clauses)
        case "each":
            *words, members = parts
            for word in words:
                if word in DIMENSION:
                    clauses.put(DIMENSION[word], "how", "separate", node)
                    _members(DIMENSION[word], members, clauses)
                else:
                    clauses.keys.append(topic_word(word))
        case "fused":
            functions, word, members = parts
            clauses.put(_dimension(word), "function", _functions(functions), node)
            _members(_dimension(word), members, clauses)
        case "pooled":
            word, members = parts
            if _dimension(word) != "status":
                message = f"only the status can be whatever it is, not the {word}"
                hint = "Leave it out: without a word it does not matter."
                raise DefinitionError(message, place(word), hint=hint)
            clauses.put("status", "pool", None, node)
            _members("status", members, clauses)
        case other:
            dimension, what, value = _PARTS[other]
            clauses.put(dimension, what, value(parts), node)


_PARTS: dict[str, tuple[Dimension, str, Callable[[list[Any]], Any]]] = {
    "over": ("time", "group", lambda parts: _window(parts)),
    "over_these": ("time", "group", lambda parts: MemberSet(tuple(map(_instant, parts)))),
    "ever": ("time", "group", lambda _: WHOLE),
    "moment": ("time", "closest", lambda parts: _instant(parts[0])),
    "nearest": ("location", "closest", lambda parts: _spot(parts[0])),
    "inside": ("location", "group", lambda parts: QueryRange(*map(_spot, parts))),
    "around": ("location", "group", lambda parts: Ball(_spot(parts[1]), _radius(parts[0]))),
    "among": ("location", "group", lambda parts: MemberSet(tuple(map(_spot, parts)))),
}
"""The dimension, the purpose and the parser of each clause of a query."""


def _dimension(word: Token) -> Dimension:
    """Return the dimension that a word stands for."""
    if word not in DIMENSION:
        known = "There are time, location and status; any of (T, U) is for topics, each for the rest."
        hint = did_you_mean(word, DIMENSION) or known
        raise DefinitionError(f"'{word}' is not a dimension", place(word), hint=hint)
    return DIMENSION[word]


def _members(dimension: Dimension, node: Node | None, clauses: _QueryClauses) -> None:
    """Parse the members of a dimension and store them as its group, if the clause lists members."""
    if node is not None:
        read = {"time": _instant, "location": _spot, "status": _status}[dimension]
        clauses.put(dimension, "group", MemberSet(tuple(read(item) for item in parts_of(node))), node)


# --- indices -----------------------------------------------------------------------------------


def _window(parts: Sequence[Any]) -> QueryRange:
    """Parse a window: a duration up to now, or two times."""
    if len(parts) == 1:
        return QueryRange(Index(-duration(parts[0]), relative=True), NOW)
    return QueryRange(*map(_instant, parts))


def _instant(item: Node) -> Index:
    """Parse a time: ``-30 s``, ``now``, or a date."""
    try:
        match _parts(item):
            case "amount", [minus, amount]:
                length = literal.read_duration(*literal.split_quantity(amount))
                return Index(length if minus is None else -length, relative=True)
            case "quoted", [text]:
                return Index(parse_instant(text_of(text)))
            case "named", ["now", None, None]:
                return NOW
    except ValueError as error:
        raise wrong(error, item) from None
    raise DefinitionError("expected a time", place(item), hint='As in: now, -30 s, "2006-07-01T01:00:00Z".')


def _spot(item: Node) -> Index:
    """Parse a location: `here`, `here + (1, 2)`, a point, or the name of a place."""
    match _parts(item):
        case "amount", _:
            return Index((coordinate_of(item),))
        case "quoted", [text]:
            return Index(text_of(text))
        case "point", _:
            return Index(point_of(item))
        case "named", ["here", None, None]:
            return HERE
        case "named", ["here", _, offset]:
            return Index(point_of(offset), relative=True)
    hint = 'As in: here, (3, 4), "junction 5".'
    raise DefinitionError("expected a location", place(item), hint=hint)


def _radius(item: Node) -> float:
    """Parse the distance of `within 10 m of …`, and return it in metres."""
    match _parts(item):
        case "amount", [None, _]:
            return coordinate_of(item)
    raise DefinitionError("expected a distance", place(item), hint="As in: within 10 m of here.")


def _status(item: Node) -> Index:
    """Parse the name of a status: `atomic`, `ingress` or `egress`."""
    match _parts(item):
        case "named", [name, None, None]:
            return Index(one_of(name, STATUSES, "a status"))
    raise DefinitionError("expected a status", place(item), hint=f"There is {', '.join(STATUSES)}.")


def _parts(item: Node) -> tuple[str, list[Any]]:
    return as_tree(item).data, list(as_tree(item).children)


def parse_query(text: str) -> Query:
    """Parse a query of a component, such as `avg InductiveLoop over 30 s each location`."""
    return read(text, None, "select", select)


def collide(parts: list[Any]) -> Collide:
    """Parse `collide max`, which names the function that merges colliding readings."""
    return Collide(str(parts[0]), place(parts[0]))
