"""Relationships, groups and routes become operations.

Short forms are written out: ``all of Team within 100 m`` is ``when spread(Team) <= 100 m``, ``at least 3 of
Team within 10 m`` is ``when radius(Team, 3) <= 10 m``, ``slow North nominal 16 min`` is ``when
travel_time(North) > 20 min``, and ``backoff 250 m`` is ``until distance(a, b) >= 250 m``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ...errors import DefinitionError, Place
from ...model.instant import MINUTE
from ...model.qos import Delivery
from ...model.relation import Setting, Strategy, slow
from ..nodes import (
    as_token,
    as_tree,
    coordinate_of,
    duration,
    expression,
    is_tree,
    label_of,
    late_of,
    name_of,
    one_of,
    parts_of,
    place,
    text_of,
    topic_word,
    word_of,
)
from ..ops import (
    Call,
    Compare,
    ComparisonSign,
    DeclareGroup,
    DeclareRoute,
    Expression,
    Number,
    Relate,
    Turn,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    from ..nodes import Node


def group_of(parts: list[Any]) -> DeclareGroup:
    """``group Team of User (…)``."""
    name, topic, sources = parts
    listed = tuple(map(_source, parts_of(sources))) if is_tree(sources) else _path(sources)
    return DeclareGroup(name_of(name), topic_word(topic), listed, place(name))


def route(parts: list[Any]) -> DeclareRoute:
    """``route North on Loop.speed (…)``."""
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


def relate(parts: list[Any]) -> Relate:
    """``relate …``."""
    name, roles, pairs, related, *options = parts
    said = _options(options)
    made: dict[str, Any] = {
        "roles": () if roles is None else tuple(map(_role, parts_of(roles))),
        "pairs": _pairs(pairs),
        **_related(related),
    }
    if (far := said.pop("backoff", None)) is not None:
        made |= {"exit": _backed_off(made, far)}
    delivery = Delivery(said.pop("wait", None), said.pop("late", "drop"))
    using, settings = said.pop("using", (None, ()))
    made |= {"using": using, "settings": settings, "delivery": delivery}
    return Relate(label_of(name), **made, **said, at=place(name))


def _role(node: Node) -> tuple[str, str]:
    role, topic = as_tree(node).children
    return topic_word(as_token(role)), topic_word(as_token(topic))


def _pairs(node: Node | None) -> tuple[tuple[str, str], ...] | str | None:
    if node is None:
        return None
    if not is_tree(node):
        return _path(as_token(node))
    return tuple((_source(a), _source(b)) for a, b in (as_tree(couple).children for couple in parts_of(node)))


def _related(node: Tree[Token]) -> dict[str, Any]:
    parts: list[Any] = list(node.children)
    match node.data, parts:
        case "when", [enter, leave]:
            return {"enter": _turn(enter), "exit": None if leave is None else _turn(leave)}
        case "gathered", [how, team, near, around, far]:
            measure = _gathering(how, team, around)
            leave = None if far is None else Turn(_than(">=", measure, coordinate_of(far), "m", place(far)))
            return {"enter": Turn(_than("<=", measure, coordinate_of(near), "m", place(near))), "exit": leave}
        case "slowed", [token, nominal]:
            taken = Call("travel_time", (topic_word(token),), at=place(token))
            minutes = duration(nominal, above_zero=True) / MINUTE
            return {"enter": Turn(_than(">", taken, slow(minutes), "min", place(nominal)))}
        case "best_of", [*names, by]:
            return {"best": tuple(map(topic_word, names)), "by": duration(by)}
        case other:
            raise AssertionError(other)


def _gathering(how: Token, team: Token, around: Token | None) -> Call:
    """What is measured of a group: how far it is spread, or how far around one so many of it are."""
    if how.type == "HOW":
        one_of(how, ("all",), "those who gather")
        if around is None:
            return Call("spread", (topic_word(team),), at=place(team))
    least = () if how.type == "HOW" else (Word(str(how), place(how)),)
    whom = None if around is None else _source(around)
    return Call("radius", (topic_word(team), *least), whom, place(team))


def _turn(node: Node) -> Turn:
    when, hold = as_tree(node).children
    return Turn(expression(when), 0 if hold is None else duration(hold), (), place(when))


def _than(sign: ComparisonSign, call: Call, bound: float, unit: str, at: Place) -> Expression:
    return Compare(sign, call, Number(int(bound) if bound == int(bound) else bound, unit, at), at)


def _backed_off(made: dict[str, Any], far: Tree[Token]) -> Turn:
    if made.get("exit") is not None or made.get("enter") is None:
        raise DefinitionError(
            "'backoff' stands in place of 'until'", place(far), hint="Leave one of them out."
        )
    if len(made["roles"]) != 2:
        raise DefinitionError("'backoff' is for pairs", place(far), hint="Say when it ends: until …")
    roles = tuple(str(role) for role, _ in made["roles"])
    return Turn(_than(">=", Call("distance", roles, at=place(far)), coordinate_of(far), "m", place(far)))


_OPTIONS = {"wait": "timely or ordered"}


def _options(nodes: list[Tree[Token]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for node in nodes:
        word, value = _option(node)
        if word in said:
            raise DefinitionError(f"'{_OPTIONS.get(word, word)}' is given twice", place(node))
        said[word] = value
    return said


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
            made = tuple(_setting(one) for one in settings if one is not None)
            return "using", (one_of(as_token(name), get_args(Strategy), "a strategy"), made)
        case "backoff", [far]:
            return "backoff", far
        case "timely", []:
            return "wait", None
        case "ordered", [wait]:
            return "wait", duration(wait)
        case "late", [word, within]:
            return "late", late_of(as_token(word), within)
        case other:
            raise AssertionError(other)
