"""Print relations, groups and routes. `parse.py` reads the same statement again from the text."""

from __future__ import annotations

from collections.abc import Callable

from ...lang.literal import write_number, write_text
from ...lang.ops import Trigger
from ...lang.show import label, show_coordinate, show_delivery, show_expression
from ...model.instant import show_duration
from ...model.relation import Setting
from .syntax import DeclareGroup, DeclareRoute, DefineRelation


def show_relation(statement: DefineRelation | DeclareGroup | DeclareRoute) -> str:
    """Return a statement about relations as text."""
    match statement:
        case DeclareGroup(name, topic, sources):
            return f"group {name} of {topic} {_table(sources, write_text)}"
        case DeclareRoute(name, topic, attribute, legs):
            return f"route {name} on {topic}.{attribute} {_table(legs, _leg)}"
        case DefineRelation():
            return _relate(statement)


def _table(rows: str | tuple, one: Callable[..., str]) -> str:  # type: ignore[type-arg]
    """Return listed rows as text, or the quoted name of a table."""
    return write_text(rows) if isinstance(rows, str) else f"({', '.join(map(one, rows))})"


def _leg(leg: tuple[str, float]) -> str:
    source, metres = leg
    return f"{write_text(source)} {show_coordinate(metres)} m"


def _couple(pair: tuple[str, str]) -> str:
    return f"({write_text(pair[0])}, {write_text(pair[1])})"


def _relate(statement: DefineRelation) -> str:
    words = [f"relate {label(statement.name)}"]
    if statement.roles:
        words.append(f"({', '.join(f'{role} {topic}' for role, topic in statement.roles)})")
    if isinstance(statement.pairs, str):
        words.append(f"pairs {write_text(statement.pairs)}")
    elif statement.pairs is not None:
        words.append(f"pairs {', '.join(map(_couple, statement.pairs))}")
    if statement.enter is not None:
        words.append(f"when {_turn(statement.enter)}")
    if statement.exit is not None:
        words.append(f"until {_turn(statement.exit)}")
    if statement.best:
        words.append(f"best of ({', '.join(statement.best)}) by {show_duration(statement.by)}")
    words += [] if statement.accuracy is None else [f"accuracy {statement.accuracy}"]
    words += [] if statement.using is None else [f"using {statement.using}"]
    words += [f"({', '.join(map(show_setting, statement.settings))})"] if statement.settings else []
    return " ".join(filter(None, [*words, show_delivery(statement.delivery)]))


def show_setting(setting: Setting) -> str:
    """Return a setting of a strategy as text."""
    whose = [] if setting.of is None else [write_text(setting.of) if setting.is_source else setting.of]
    return " ".join([setting.word, *whose, write_number(setting.value)])


def _turn(turn: Trigger) -> str:
    return show_expression(turn.when) + (f" for {show_duration(turn.hold)}" if turn.hold else "")
