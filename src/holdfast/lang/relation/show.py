"""Relationships, groups and routes as text."""

from __future__ import annotations

from collections.abc import Callable

from ...model.instant import show_duration
from ...model.qos import Delivery
from ...model.relation import Setting
from ..literal import write_number, write_text
from ..ops import DeclareGroup, DeclareRoute, Expression, Relate, Turn

Shown = Callable[[Expression], str]


def show_relation(
    statement: Relate | DeclareGroup | DeclareRoute,
    shown: Shown,
    label: Callable[[str], str],
    delivered: Callable[[Delivery], str],
) -> str:
    """A statement about relationships; how expressions, names and delivery are shown is given."""
    match statement:
        case DeclareGroup(name, topic, sources):
            return f"group {name} of {topic} {_table(sources, write_text)}"
        case DeclareRoute(name, topic, attribute, legs):
            return f"route {name} on {topic}.{attribute} {_table(legs, _leg)}"
        case Relate():
            return _relate(statement, shown, label, delivered)


def _table(rows: str | tuple, one: Callable[..., str]) -> str:  # type: ignore[type-arg]
    return write_text(rows) if isinstance(rows, str) else f"({', '.join(map(one, rows))})"


def _leg(leg: tuple[str, float]) -> str:
    source, metres = leg
    return f"{write_text(source)} {write_number(metres + 0.0).removesuffix('.0')} m"


def _couple(pair: tuple[str, str]) -> str:
    return f"({write_text(pair[0])}, {write_text(pair[1])})"


def _relate(
    one: Relate, shown: Shown, label: Callable[[str], str], delivered: Callable[[Delivery], str]
) -> str:
    words = [f"relate {label(one.name)}"]
    if one.roles:
        words.append(f"({', '.join(f'{role} {topic}' for role, topic in one.roles)})")
    if isinstance(one.pairs, str):
        words.append(f"pairs {write_text(one.pairs)}")
    elif one.pairs is not None:
        words.append(f"pairs {', '.join(map(_couple, one.pairs))}")
    if one.enter is not None:
        words.append(f"when {_turn(one.enter, shown)}")
    if one.exit is not None:
        words.append(f"until {_turn(one.exit, shown)}")
    if one.best:
        words.append(f"best of ({', '.join(one.best)}) by {show_duration(one.by)}")
    words += [] if one.accuracy is None else [f"accuracy {one.accuracy}"]
    words += [] if one.using is None else [f"using {one.using}"]
    words += [f"({', '.join(map(show_setting, one.settings))})"] if one.settings else []
    return " ".join(filter(None, [*words, delivered(one.delivery)]))


def show_setting(one: Setting) -> str:
    """A setting of a strategy."""
    whose = [] if one.of is None else [write_text(one.of) if one.is_source else one.of]
    return " ".join([one.word, *whose, write_number(one.value)])


def _turn(turn: Turn, shown: Shown) -> str:
    return shown(turn.when) + (f" for {show_duration(turn.hold)}" if turn.hold else "")
