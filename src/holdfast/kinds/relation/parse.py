"""Parse relations, groups and routes. Short forms are expanded:

- ``all of Team within 100 m`` is ``when spread(Team) <= 100 m``.
- ``at least 3 of Team within 10 m`` is ``when radius(Team, 3) <= 10 m``.
- ``slow North nominal 16 min`` is ``when travel_time(North) > 20 min``.
- ``backoff 250 m`` is ``until distance(a, b) >= 250 m``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ...errors import DefinitionError, Place
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
    read_clauses,
    text_of,
    topic_word,
    word_of,
)
from ...lang.ops import Call, Compare, ComparisonSign, Expression, Number, Trigger, Word
from ...model.instant import MINUTE
from ...model.qos import Delivery
from ...model.relation import Setting, Strategy, slow
from ..clauses import delivery_clause
from .syntax import DeclareGroup, DeclareRoute, DefineRelation

if TYPE_CHECKING:
    from lark import Token, Tree

    from ...lang.nodes import Node


def group_of(parts: list[Any]) -> DeclareGroup:
    """Parse ``group Team of User (…)``."""
    name, topic, sources = parts
    listed = tuple(map(_source, parts_of(sources))) if is_tree(sources) else _path(sources)
    return DeclareGroup(name_of(name), topic_word(topic), listed, place(name))


def route(parts: list[Any]) -> DeclareRoute:
    """Parse ``route North on Loop.speed (…)``."""
    name, member, legs = parts
    topic, _, attribute = member.partition(".")
    listed = tuple(map(_leg, parts_of(legs))) if is_tree(legs) else _path(legs)
    at = place(member)
    return DeclareRoute(name_of(name), Word(topic, at), Word(attribute, at), listed, place(name))


def _source(node: Node) -> Word:
    return word_of(as_token(node))


def _path(token: Token) -> Word:
    return Word(text_of(token), place(token))


def _leg(node: Node) -> tuple[str, float]:
    source, metres = as_tree(node).children
    return _source(source), coordinate_of(metres)


# --- relate ------------------------------------------------------------------------------------


def relate(parts: list[Any]) -> DefineRelation:
    """Parse ``relate …``: its roles and pairs, its test, and its options."""
    name, roles, pairs, related, *options = parts
    clauses = read_clauses(options, _option, notation={"wait": "timely or ordered"})
    named = [as_tree(node).children for node in (() if roles is None else parts_of(roles))]
    made: dict[str, Any] = {
        "roles": tuple((topic_word(as_token(role)), topic_word(as_token(topic))) for role, topic in named),
        "pairs": _pairs(pairs),
        **_read_relation(related),
    }
    if (far := clauses.pop("backoff", None)) is not None:
        made |= {"exit": _with_backoff(made, far)}
    delivery = Delivery(clauses.pop("wait", None), clauses.pop("late", "drop"))
    using, settings = clauses.pop("using", (None, ()))
    made |= {"using": using, "settings": settings, "delivery": delivery}
    return DefineRelation(label_of(name), **made, **clauses, at=place(name))


def _pairs(node: Node | None) -> tuple[tuple[str, str], ...] | str | None:
    """Parse listed pairs, or the name of a table; ``None`` stands for all sources."""
    if node is None:
        return None
    if not is_tree(node):
        return _path(as_token(node))
    return tuple((_source(a), _source(b)) for a, b in (as_tree(couple).children for couple in parts_of(node)))


def _read_relation(node: Tree[Token]) -> dict[str, Any]:
    """Parse the test of a relation in any of its forms; return arguments of the statement."""
    parts: list[Any] = list(node.children)
    match node.data, parts:
        case "when", [enter, leave]:
            return {"enter": _turn(enter), "exit": None if leave is None else _turn(leave)}
        case "gathered", [how, team, near, around, far]:
            measure = _gathering(how, team, around)
            enter = Trigger(_than("<=", measure, coordinate_of(near), "m", place(near)))
            if far is None:
                return {"enter": enter, "exit": None}
            leave = Trigger(_than(">=", measure, coordinate_of(far), "m", place(far)))
            return {"enter": enter, "exit": leave}
        case "slowed", [token, nominal]:
            taken = Call("travel_time", (topic_word(token),), at=place(token))
            minutes = duration(nominal, above_zero=True) / MINUTE
            return {"enter": Trigger(_than(">", taken, slow(minutes), "min", place(nominal)))}
        case "best_of", [*names, by]:
            return {"best": tuple(map(topic_word, names)), "by": duration(by)}
        case other:
            raise AssertionError(other)


def _gathering(how: Token, team: Token, around: Token | None) -> Call:
    """Return the measure of a group: its spread, or the radius around one member that contains a number of
    members."""
    if how.type == "HOW":
        one_of(how, ("all",), "those who gather")
        if around is None:
            return Call("spread", (topic_word(team),), at=place(team))
    least = () if how.type == "HOW" else (Word(str(how), place(how)),)
    center = None if around is None else _source(around)
    return Call("radius", (topic_word(team), *least), center, place(team))


def _turn(node: Node) -> Trigger:
    when, hold = as_tree(node).children
    return Trigger(expression(when), 0 if hold is None else duration(hold), (), place(when))


def _than(sign: ComparisonSign, call: Call, bound: float, unit: str, at: Place) -> Expression:
    return Compare(sign, call, Number(int(bound) if bound == int(bound) else bound, unit, at), at)


def _with_backoff(made: dict[str, Any], far: Tree[Token]) -> Trigger:
    """Return the exit that ``backoff`` stands for."""
    if made.get("exit") is not None or made.get("enter") is None:
        message = "'backoff' stands in place of 'until'"
        raise DefinitionError(message, place(far), hint="Leave one of them out.")
    if len(made["roles"]) != 2:
        raise DefinitionError("'backoff' is for pairs", place(far), hint="Say when it ends: until …")
    roles = tuple(str(role) for role, _ in made["roles"])
    return Trigger(_than(">=", Call("distance", roles, at=place(far)), coordinate_of(far), "m", place(far)))


def _setting(node: Node) -> Setting:
    word, of, number = as_tree(node).children
    whose = None if of is None else as_token(of)
    is_source = whose is not None and whose.type == "STRING"
    name = None if whose is None else text_of(whose) if is_source else name_of(whose)
    return Setting(topic_word(as_token(word)), float(as_token(number)), name, is_source)


def _option(node: Tree[Token]) -> tuple[str, Any]:
    match node.data, list(node.children):
        case "accuracy", [name]:
            return "accuracy", topic_word(as_token(name))
        case "using", [name, *settings]:
            made = tuple(_setting(setting) for setting in settings if setting is not None)
            return "using", (one_of(as_token(name), get_args(Strategy), "a strategy"), made)
        case "backoff", [far]:
            return "backoff", far
        case _:
            return delivery_clause(node)
