"""A definition: statements in their order, parsed from text or built in Python.

app = App()
temp = app.topic("Temperature", value="float °C")
app.state("Warm", on=temp, enter=temp.value > 25, exit=temp.value < 22, per="source")
app.check()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError, did_you_mean
from ..kinds.component.parse import parse_query
from ..kinds.component.syntax import DefineComponent
from ..kinds.correlation.parse import parse_match
from ..kinds.correlation.syntax import DefineCorrelation, MatchRange
from ..kinds.registry import RULES
from ..kinds.state.syntax import DefineState
from ..lang.condition import Checked
from ..lang.expr import (
    Expr,
    Operand,
    TableHandle,
    TopicHandle,
    name_of,
    operand,
    predicate,
    require_name,
    without_places,
)
from ..lang.grammar import parse_duration, parse_length, parse_levels, read
from ..lang.literal import QUERY_WORDS, write_text
from ..lang.ops import (
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    Let,
    Levels,
    Name,
    Not,
    Silent,
    Statement,
    Trigger,
    Truth,
    UseGazetteer,
)
from ..lang.tree import statements
from ..model.correlation import TELLS, Tell
from ..model.guard import INITIALLY, Care, Hold, Initially, Roster
from ..model.instant import Duration
from ..model.qos import LATE, Correct, Delivery, Late
from ..model.space import Point, Shape
from ..model.table import DURATION, Column
from ..model.topic import KINDS, Attribute, Kind, Topic
from ..model.unit import UNITS, nearest

Grouping = str | Sequence[str] | Sequence[Sequence[str]]
"""``"source"``, ``"room, sensor"``, ``("room", "sensor")``, ``"room within floor"``,
``[("room",), ("floor",)]``."""

_KINDS: dict[object, Kind] = {float: "float", int: "int", str: "text", bool: "bool"}


class App:
    """A definition under construction. Two definitions are equal if their statements are equal."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, statements: Iterable[Statement] = (), *, text: str | None = None, file: str | None = None
    ) -> None:
        self._statements = list(statements)
        self.text, self.file = text, file

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(self._statements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, App) and self._statements == other._statements

    def __repr__(self) -> str:
        return f"App({self.statements!r})"

    def check(self, base: Path | None = None, **lets: float | int | str | bool) -> Checked:
        """Return the checked definition, or raise its first error.

        ``lets`` replaces the values of parameters.
        """
        from .check import check

        return check(self, base, lets)

    # --- builders --------------------------------------------------------------------------

    def let(self, name: str, value: Operand) -> Expr:
        """Add ``let name = value``. Return the parameter as an expression."""
        self._statements.append(Let(require_name(name, "parameter"), operand(value)))
        return Expr(Name(name))

    def topic(self, name: str, /, **attributes: type | str) -> TopicHandle:
        """Add ``topic name (…)`` and return the topic.

        The type of an attribute is ``float``, ``int``, ``str``, ``bool`` or text such as ``"float °C"``.
        """
        made = Topic(require_name(name, "topic"), tuple(_attribute(*item) for item in attributes.items()))
        self._statements.append(DeclareTopic(made))
        return TopicHandle(made)

    def region(self, name: str, shape: Shape | None = None, parent: str | None = None) -> str:
        """Add ``region name = shape in parent`` and return the name."""
        self._statements.append(DeclareRegion(name, shape, parent))
        return name

    def gazetteer(self, path: str | Path) -> None:
        """Add ``gazetteer "path"``: a file with the names of regions."""
        self._statements.append(UseGazetteer(str(path)))

    def table(
        self, name: str, data: Any, /, by: str | Sequence[str] = (), **columns: type | str
    ) -> TableHandle:
        """Add ``table name "path" (…)`` and return the table.

        ``data`` is a file, an Arrow table or a data frame. The key is the first column unless ``by`` names
        other columns.
        """
        made = tuple(_column(*item) for item in columns.items())
        keys = (by,) if isinstance(by, str) else tuple(by)
        is_file = isinstance(data, (str, Path))
        path, held = (str(data), None) if is_file else ("", data)
        self._statements.append(DeclareTable(require_name(name, "table"), path, made, keys, held))
        return TableHandle(name, list(columns))

    def filter(
        self,
        name: str,
        *,
        on: TopicHandle | str,
        where: Operand,
        per: Grouping = (),
        scope: Grouping = (),
        ordered: str | timedelta | None = None,
        late: str | Late = "drop",
    ) -> None:
        """Add ``filter name on topic where …``. Every matching event is a notification."""
        self.state(name, on=on, enter=where, exit=True, per=per, scope=scope, ordered=ordered, late=late)

    def state(
        self,
        name: str,
        *,
        on: TopicHandle | str,
        enter: Operand,
        exit: Operand | None = None,
        per: Grouping = (),
        scope: Grouping = (),
        ordered: str | timedelta | None = None,
        late: str | Late = "drop",
        enter_for: str | timedelta | int | None = None,
        exit_for: str | timedelta | int | None = None,
        unknown_after: str | timedelta | None = None,
        forget_after: str | timedelta | None = None,
        initially: Initially = "off",
        quietly: bool = False,
        roster: str | Path | None = None,
    ) -> None:
        """Add ``state name on topic [enter; exit] …``.

        Without ``exit`` the state ends when ``enter`` is not satisfied. ``enter_for`` and ``exit_for`` are a
        duration, a number of readings, or the column of a table that has the duration. ``roster`` is a file,
        the name of a table, or ``"gazetteer"``. ``late`` is ``"drop"``, ``"apply"``, or a correction such as
        ``"correct 10 min"``.
        """
        if initially not in INITIALLY:
            raise UsageError(f"initially is {', '.join(INITIALLY)}, not {initially!r}")
        entrance = predicate(enter)
        self._statements.append(
            DefineState(
                require_name(name, "subscription"),
                require_name(name_of(on), "topic"),
                entrance,
                Not(entrance) if exit is None else Truth(True) if exit is True else predicate(exit),
                _levels(per),
                _levels(scope),
                Delivery(_duration(ordered), _late(late, corrects=True)),
                Care(
                    _hold(enter_for),
                    _hold(exit_for),
                    _duration(unknown_after),
                    _duration(forget_after),
                    initially,
                    quietly,
                    self._roster(roster),
                ),
            )
        )

    def _roster(self, roster: str | Path | None) -> Roster | None:
        if roster is None:
            return None
        if any(isinstance(s, DeclareTable) and s.name == roster for s in self._statements):
            return Roster(table=str(roster))
        return Roster(None if roster == "gazetteer" else str(roster))

    def detect(
        self,
        name: str,
        queries: Mapping[str, str],
        *,
        enter: Operand,
        exit: Operand | None = None,
        enter_set: Mapping[str, Operand] | None = None,
        exit_set: Mapping[str, Operand] | None = None,
        enter_for: str | timedelta | None = None,
        exit_for: str | timedelta | None = None,
        here: Point | str | None = None,
        tick: str | timedelta | None = None,
        ordered: str | timedelta | None = None,
        late: Late = "drop",
    ) -> None:
        """Add ``state name`` with queries, such as ``{"A": "avg InductiveLoop over 30 s each location"}``.

        Without ``exit`` the state ends when ``enter`` is not satisfied.
        """
        entrance = _turn(enter, enter_for, enter_set)
        self._statements.append(
            DefineComponent(
                name,
                tuple((_query_name(own), parse_query(text)) for own, text in queries.items()),
                entrance,
                Trigger(Not(entrance.when)) if exit is None else _turn(exit, exit_for, exit_set),
                here,
                _duration(tick),
                Delivery(_duration(ordered), _late(late)),
            )
        )

    def correlate(
        self,
        name: str,
        *matches: str,
        within: str | timedelta,
        near: str | float | None = None,
        region: str | Shape | None = None,
        tell: Tell = "events",
        ordered: str | timedelta | None = None,
        late: Late = "drop",
    ) -> None:
        """Add ``correlate name within … …`` with filters such as ``"ambient_temp in [-5, 2]"``.

        ``near`` is in metres unless it has a unit.
        """
        if tell not in TELLS:
            raise UsageError(f"a correlation tells {', '.join(TELLS)}, not {tell!r}")
        self._statements.append(
            DefineCorrelation(
                name,
                tuple(map(_match, matches)),
                _duration(within) or 0,
                _length(near),
                region,
                tell,
                Delivery(_duration(ordered), _late(late)),
            )
        )

    def relate(self, name: str, text: str) -> None:
        """Add ``relate name …``. `text` is everything after the name: ``"(a User, b User) when …"``."""
        self._add(f"relate {write_text(name)} {text}")

    def group(self, name: str, text: str) -> None:
        """Add ``group name of …``. `text` is everything after the name: ``"of User ("ann", "bob")"``."""
        self._add(f"group {require_name(name, 'group')} {text}")

    def route(self, name: str, text: str) -> None:
        """Add ``route name on …``. `text` is everything after the name: ``"on Loop.speed ("4" 12 km)"``."""
        self._add(f"route {require_name(name, 'route')} {text}")

    def _add(self, text: str) -> None:
        self._statements += read(text, None, "file", lambda tree: list(statements(tree, RULES)))


def _query_name(name: str) -> str:
    if name in QUERY_WORDS:
        raise UsageError(f"'{name}' has a meaning of its own in a component; name the query otherwise")
    return require_name(name, "query")


def _match(text: str) -> MatchRange:
    """Parse a filter, without its place in the text."""
    match = parse_match(text)
    low, high = (None if side is None else without_places(side) for side in (match.low, match.high))
    sensor = None if match.sensor is None else str(match.sensor)
    return MatchRange(str(match.attribute), low, high, match.strict, sensor)


def _length(length: str | float | None) -> float | None:
    if isinstance(length, str):
        return parse_length(length)
    return None if length is None else float(length)


def _turn(when: Operand, hold: str | timedelta | None, sets: Mapping[str, Operand] | None) -> Trigger:
    computed = tuple(
        (require_name(name, "attribute"), predicate(value)) for name, value in (sets or {}).items()
    )
    return Trigger(Truth(True) if when is True else predicate(when), _duration(hold) or 0, computed)


def silent(length: str | timedelta) -> Expr:
    """Return the predicate ``silent 10 min``: the scope has had no reading for longer than the duration."""
    found = _duration(length)
    if not found:
        raise UsageError("a silence must be longer than nothing")
    return Expr(Silent(found))


def within(*levels: str | Sequence[str]) -> Levels:
    """Return nested groups of names, innermost first: ``within("room", "floor")``."""
    return tuple((level,) if isinstance(level, str) else tuple(level) for level in levels)


def _levels(groups: Grouping) -> Levels:
    if isinstance(groups, str):
        return parse_levels(groups)
    if all(isinstance(group, str) for group in groups):
        return (tuple(cast("Sequence[str]", groups)),) if groups else ()
    return within(*groups)


def _column(name: str, kind: type | str) -> Column:
    if kind == DURATION:
        return Column(require_name(name, "column"), DURATION)
    found = _attribute(name, kind)
    return Column(found.name, found.kind, found.unit)


def _attribute(name: str, kind: type | str) -> Attribute:
    require_name(name, "attribute")
    if kind in _KINDS:
        return Attribute(name, _KINDS[kind])
    word, _, unit = str(kind).partition(" ")
    if word not in KINDS:
        hint = did_you_mean(word, KINDS) or ""
        raise UsageError(f"attribute '{name}' is float, int, text or bool, not '{word}'. {hint}".rstrip())
    if unit and unit not in UNITS:
        hint = nearest(unit) or ""
        raise UsageError(f"attribute '{name}' has the unknown unit '{unit}'. {hint}".rstrip())
    return Attribute(name, word, unit or None)


def _duration(length: str | timedelta | None) -> Duration | None:
    if isinstance(length, str):
        return parse_duration(length)
    if length is None:
        return None
    if length < timedelta():
        raise UsageError("a duration cannot be negative")
    return length // timedelta(microseconds=1)


_COLUMN = re.compile(r"[^\W\d]\w*\.[^\W\d]\w*")


def _hold(held: str | timedelta | int | None) -> Hold:
    if isinstance(held, int):
        if not 0 < held < 2**31:
            raise UsageError(f"a guard of readings is at least one of them, not {held}")
        return Hold(readings=held)
    if isinstance(held, str) and _COLUMN.fullmatch(held.strip()):
        return Hold(column=held.strip())
    return Hold(_duration(held) or 0)


def _late(word: str | Late, *, corrects: bool = False) -> Late:
    if word in LATE or (corrects and isinstance(word, Correct) and word.within > 0):
        return word
    first, _, within = word.partition(" ") if isinstance(word, str) else ("", "", "")
    if corrects and first == "correct" and (length := _duration(within)):
        return Correct(length)
    also = " or 'correct' with a duration, such as 'correct 10 min'" if corrects else ""
    raise UsageError(f"late is 'drop' or 'apply'{also}, not {word!r}")
