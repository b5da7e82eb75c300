"""The statement of states and filters: its class, parsers and printer. A new clause needs a line in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import Place
from ...lang.literal import is_name, write_text
from ...lang.nodes import (
    as_token,
    as_tree,
    duration,
    expression,
    hold_of,
    is_tree,
    label_of,
    levels,
    name_of,
    one_of,
    place,
    read_clauses,
    starting_name,
    text_of,
    topic_word,
    word_of,
)
from ...lang.ops import ConditionStatement, Expression, Levels, MemberAttribute, Not, Truth
from ...lang.rewrite import within
from ...lang.show import label, show_delivery, show_expression, show_hold, show_levels
from ...lang.tree import Rules
from ...model.guard import AT_ONCE, INITIALLY, PLAIN, Care, Hold, Roster
from ...model.instant import show_duration
from ...model.qos import TIMELY, Correct, Delivery
from ..clauses import delivery_clause

if TYPE_CHECKING:
    from lark import Token, Tree

    from ...lang.nodes import Node


@dataclass(frozen=True, slots=True)
class DefineState(ConditionStatement):
    """The statement ``filter`` or ``state``: a named condition ``[enter; exit]`` over the events of a topic.

    ``topic`` is ``None`` only in the papers' short notations; checking finds the topic. ``exit`` is
    ``Truth(True)`` for a momentary condition, which ``filter`` declares. ``care`` has minimum durations,
    no-data clauses and initial values.
    """

    name: str
    topic: str | None
    enter: Expression
    exit: Expression
    per: Levels = ()
    scope: Levels = ()
    delivery: Delivery = TIMELY
    care: Care = PLAIN
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def scopes(self) -> Levels:
        return self.scope

    def map_scopes(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> DefineState:
        return replace(self, scope=tuple(map(change, self.scope)))

    @property
    def corrects(self) -> bool:
        return isinstance(self.delivery.late, Correct)


def read_filter(parts: list[Any]) -> DefineState:
    """Parse ``filter NAME on TOPIC where …``."""
    name, topic, where, *clauses = parts
    return subscribe(name, topic_word(topic), Predicates(expression(where), Truth(True)), clauses)


def read_state(parts: list[Any]) -> DefineState:
    """Parse ``state NAME on TOPIC [enter; exit]``."""
    name, topic, condition, *clauses = parts
    return subscribe(name, topic_word(topic), predicates(condition), clauses)


def read_labelled(parts: list[Any]) -> DefineState:
    """Parse a named condition without a topic, in a short notation."""
    name, condition, *clauses = parts
    return subscribe(starting_name(name), None, predicates(condition), clauses)


def read_anonymous(parts: list[Any]) -> DefineState:
    """Parse a condition without a name and without a topic."""
    condition, *clauses = parts
    return subscribe(condition, None, predicates(condition), clauses, "")


class Predicates(NamedTuple):
    """The predicates of a condition, the scope that is written with them, and their minimum durations."""

    enter: Expression
    exit: Expression
    scope: Levels = ()
    holds: tuple[Hold, Hold] = (AT_ONCE, AT_ONCE)


def predicates(node: Node) -> Predicates:
    """Parse ``[…]``, ``{…}`` or a plain content filter into predicates."""
    if not is_tree(node) or as_tree(node).data not in ("pair", "triple"):
        return Predicates(expression(node), Truth(True))
    parts: list[Any] = list(as_tree(node).children)
    if as_tree(node).data == "pair":
        first, hold, second, rest_of_parts = parts
        holds = (hold_of(hold), hold_of(rest_of_parts))
        if second is None:
            enter = expression(first, inside=1)
            return Predicates(enter, Not(enter, place(first)), holds=holds)
        return Predicates(expression(first), expression(second), holds=holds)
    enter = expression(parts[0])
    regions = tuple(word_of(token) for token in parts[2:] if token is not None and token.type != "EVERYTHING")
    return Predicates(enter, expression(parts[1]), (regions,) if regions else ())


def subscribe(
    at: Node,
    topic: str | None,
    predicates: Predicates,
    clauses: Iterable[Tree[Token]],
    name: str | None = None,
) -> DefineState:
    """Return the statement of a condition; ``at`` is the node of its name and gives its place."""
    enter, exit, scope, holds = predicates
    values = read_clauses(clauses, _clause, notation=_NOTATION, given={"scope": scope} if scope else {})
    initially, quietly = values.get("initially", ("off", False))
    return DefineState(
        label_of(as_token(at)) if name is None else name,
        topic,
        enter,
        exit,
        values.get("per", ()),
        values.get("scope", ()),
        Delivery(values.get("wait"), values.get("late", "drop")),
        Care(*holds, values.get("unknown"), values.get("forget"), initially, quietly, values.get("roster")),
        place(at),
    )


_NOTATION = {"wait": "timely or ordered", "unknown": "unknown after", "forget": "forget after"}


def _clause(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case ("per" | "scope") as word, [groups]:
            return word, levels(groups)
        case ("unknown" | "forget") as word, [length]:
            return word, duration(length, above_zero=True)
        case "initially", [word, quietly]:
            begins = one_of(as_token(word), INITIALLY, "how a scope begins")
            return "initially", (begins, quietly is not None)
        case "roster", []:
            return "roster", Roster()
        case "roster", [named]:
            token = as_token(named)
            return "roster", Roster(text_of(token)) if token.type == "STRING" else Roster(
                table=name_of(token)
            )
        case _:
            return delivery_clause(node, corrects=True)


def show_state(statement: DefineState) -> str:
    """Return a state or filter as text, which the parsers read again."""
    care = statement.care
    if statement.topic is None:
        head = f"{statement.name}: {show_predicates(statement)}"
    elif statement.exit == Truth(True) and is_name(statement.name) and not (care.enter or care.exit):
        head = f"filter {statement.name} on {statement.topic} where {show_expression(statement.enter)}"
    else:
        head = f"state {label(statement.name)} on {statement.topic} {show_predicates(statement)}"
    return " ".join([head, *show_clauses(statement)])


def show_predicates(statement: DefineState) -> str:
    """Return the entrance and the exit as text, with their minimum durations."""
    enter, exit = (show_expression(op) for op in (statement.enter, statement.exit))
    return f"[{enter}{show_hold(statement.care.enter)}; {exit}{show_hold(statement.care.exit)}]"


def show_clauses(statement: DefineState) -> list[str]:
    """Return the clauses of a state as text: scopes, delivery and no-data clauses."""
    scopes = (("per", statement.per), ("scope", statement.scope))
    clauses = [f"{word} {show_levels(levels)}" for word, levels in scopes if levels]
    shown = show_delivery(statement.delivery)
    return clauses + ([shown] if shown else []) + list(_care(statement.care))


def _care(care: Care) -> Iterator[str]:
    if care.unknown is not None:
        yield f"unknown after {show_duration(care.unknown)}"
    if care.forget is not None:
        yield f"forget after {show_duration(care.forget)}"
    if care.initially != "off" or care.quietly:
        yield f"initially {care.initially}" + " quietly" * care.quietly
    if care.roster is not None:
        path = "gazetteer" if care.roster.path is None else write_text(care.roster.path)
        yield f"roster {path if care.roster.table is None else care.roster.table}"


RULES: Rules = {
    "filter": read_filter,
    "state": read_state,
    "labelled": read_labelled,
    "equation": read_labelled,
    "anonymous": read_anonymous,
}
"""The parser of each notation of a state, by grammar rule."""


def tables(statement: DefineState) -> Iterator[str]:
    """Yield the tables that a state names in its predicates, minimum durations and roster."""
    care = statement.care
    columns = [hold.column for hold in (care.enter, care.exit) if hold.column]
    yield from (column.partition(".")[0] for column in columns)
    inside = (*within(statement.enter), *within(statement.exit))
    yield from (op.owner for op in inside if isinstance(op, MemberAttribute))
    if care.roster is not None and care.roster.table is not None:
        yield care.roster.table


def reads_file(statement: DefineState) -> bool:
    """Whether a state reads its expected sources from a file."""
    return statement.care.roster is not None and statement.care.roster.path is not None
