"""The operations: everything that a definition can say, as frozen values.

Two families.  *Expressions* compute a value of one event; *statements* are the lines of a file.
Equality ignores where in the text something stood (``at``), so ``parse(show(x)) == x``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import Place
from ..model.allen import Allen
from ..model.correlation import Tell
from ..model.count import Unknown
from ..model.guard import PLAIN, Care
from ..model.instant import Duration
from ..model.qos import TIMELY, Delivery
from ..model.query import Function, Query
from ..model.relation import Setting
from ..model.space import Point, Shape
from ..model.table import Column
from ..model.topic import Topic

# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute of the event, or a parameter that ``let`` declared."""

    name: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """``A.value``: an attribute of what a component's query shows, or of its ``last`` event; with
    ``A.value else 5``, what it is where there is none, a literal or the name of a parameter."""

    owner: str
    name: str
    at: Place | None = field(default=None, compare=False, repr=False)
    otherwise: Name | Number | Text | Truth | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number; without a unit it takes the unit of what it is compared with."""

    value: float | int
    unit: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spot:
    """A location, by its coordinates."""

    point: Point
    at: Place | None = field(default=None, compare=False, repr=False)


ArithmeticSign = Literal["+", "-", "*", "/"]
ComparisonSign = Literal["<", "<=", "==", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: ArithmeticSign
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negative:
    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Absolute:
    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """True, false, or unknown when an operand is missing."""

    sign: ComparisonSign
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    """``arg in [low, high]``, both ends included."""

    arg: Expression
    low: Expression
    high: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Silent:
    """``silent 10 min``: the scope has had no reading for longer than that."""

    length: Duration
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """``distance(a, b)``: what is measured of a relationship; ``around`` is the source that it is about."""

    function: str
    args: tuple[str, ...]
    around: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


Expression = (
    Call | Name | Member | Number | Text | Truth | Spot
    | Arithmetic | Negative | Absolute | Compare | Between | And | Or | Not | Silent
)  # fmt: skip

# --- statements ------------------------------------------------------------------------------


class Word(str):
    """A name in a group of names that remembers where it stood."""

    at: Place | None

    def __new__(cls, name: str, at: Place | None = None) -> Word:
        word = super().__new__(cls, name)
        word.at = at
        return word


def place_of(name: str, otherwise: Place | None) -> Place | None:
    """Where a name stood, if it remembers."""
    return (name.at if isinstance(name, Word) else None) or otherwise


Levels = tuple[tuple[str, ...], ...]
"""Nested groups of names, innermost first: ``a, b within c`` is ``(("a", "b"), ("c",))``."""


@dataclass(frozen=True, slots=True)
class Let:
    """``let high = 25 °C``: a parameter."""

    name: str
    value: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareTopic:
    """``topic Temperature (value float °C)``."""

    topic: Topic
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareRegion:
    """``region lab = rectangle (0, 0) (10, 5) in hall``; without a shape, a region by name alone."""

    name: str
    shape: Shape | None = None
    parent: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UseGazetteer:
    """``gazetteer "building.toml"``: names of regions come from a file beside the definition."""

    path: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareTable:
    """``table Limits "limits.csv" (source text, high float °C)``: values for each key, from a file beside the
    definition, or ``data`` that was given in Python.  The key is the first column unless ``by`` says it."""

    name: str
    path: str
    columns: tuple[Column, ...]
    by: tuple[str, ...] = ()
    data: Any = field(default=None, compare=False, repr=False)
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows are found."""
        return self.by or (self.columns[0].name,)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """``filter`` and ``state``: a named condition ``[enter; exit]`` over the events of a topic.

    ``topic is None`` only in the papers' short notations; checking finds the topic.  ``exit`` is
    ``Truth(True)`` for a momentary condition, which is what ``filter`` declares.  ``care`` is what it says of
    guards, silence and beginnings.
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


@dataclass(frozen=True, slots=True)
class Ladder:
    """``levels Heat on Temperature: warn […; …], alarm […; …] per source``: states of one topic, in the same
    scopes, of which the highest that holds is the level."""

    name: str
    rungs: tuple[Subscribe, ...]
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """``state Fire = at least 2 of Smoke within room until fewer than 1``: so many scopes of a condition hold
    at once.

    ``least`` and ``fewer`` are numbers, or parts of the roster in per cent.
    """

    name: str
    over: str
    least: Number
    within: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    fewer: Number | None = None
    joined: bool = False
    roster: str | None = None
    unknown: Unknown = "left"
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class During:
    """``during "Sat 00:00 – Mon 06:00" in "Europe/Berlin"``."""

    spans: str
    zone: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While:
    """``while Parent``: while another condition holds."""

    parent: str


@dataclass(frozen=True, slots=True)
class Beyond:
    """``beyond 5 within floor``: while more than so many scopes hold."""

    most: Number
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mute:
    """``mute Child while Parent ordered 30 s``: what is told of a condition is held back for a while."""

    target: str
    cause: During | While | Beyond
    wait: Duration = 0
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """``enter … for … set …``: a predicate, how long it must hold, and what is computed then."""

    when: Expression
    hold: Duration = 0
    sets: tuple[tuple[str, Expression], ...] = ()
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Detect:
    """``state`` with queries: a State Maintenance Component.

    Of ``state … on TOPIC enter …`` the one query has the name ``""``.  ``here`` is where it is: a
    point, or the topic whose sources carry a replica each.
    """

    name: str
    inputs: tuple[tuple[str, Query], ...]
    enter: Turn
    exit: Turn
    here: Point | str | None = None
    tick: Duration | None = None
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Collide:
    """``collide max``: how components take readings of one topic, moment and place for one."""

    function: Function
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Match:
    """``ambient_temp of "s12" in [-5, 2)``: the range of a correlation's attribute; a side that is
    ``None`` is open to infinity, and ``strict`` says of both whether their ends are left out."""

    attribute: str
    low: Expression | None = None
    high: Expression | None = None
    strict: tuple[bool, bool] = (False, False)
    sensor: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Correlate:
    """``correlate Storm within 2 min, 500 m in region Pass …``: readings that agree in time and space.

    ``near`` is in metres; ``region`` is a name, or a shape in its place.
    """

    name: str
    matches: tuple[Match, ...]
    within: Duration
    near: float | None = None
    region: str | Shape | None = None
    tell: Tell = "events"
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Align:
    """``correlate Danger = Smoke, DoorOpen overlapping within 30 s, 50 m per room``: conditions that hold at
    once, or lie to one another in time as Allen says; ``near`` is in metres."""

    name: str
    over: tuple[str, ...]
    relation: Allen
    within: Duration | None = None
    near: float | None = None
    per: tuple[str, ...] = ()
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """``fold Storm = Heat scope floors within building beyond 3``: where more than so many siblings hold,
    what is around them is told; regions, or squares of ``cells 10 m within 160 m``."""

    name: str
    over: str
    most: Number
    scope: Levels = ()
    side: float | None = None
    widest: float | None = None
    fewer: Number | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareGroup:
    """``group Team of User ("ann", "bob")``, or with the sources in a table."""

    name: str
    topic: str
    sources: tuple[str, ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareRoute:
    """``route North on Loop.speed ("4" 12 km, "5" 23 km)``: sources in a row, each with metres."""

    name: str
    topic: str
    attribute: str
    legs: tuple[tuple[str, float], ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relate:
    """``relate Meet (a User, b User) when distance(a, b) <= 10 m until …``: a relationship that holds.

    ``pairs`` are given, in a table, or ``None``: all sources.  Without ``exit`` it ends when ``enter``
    fails.  ``best`` are alternatives of which the least is told, in place of ``enter``.
    """

    name: str
    roles: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[str, str], ...] | str | None = None
    enter: Turn | None = None
    exit: Turn | None = None
    best: tuple[str, ...] = ()
    by: Duration = 0
    accuracy: str | None = None
    using: str | None = None
    settings: tuple[Setting, ...] = ()
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """Readings of a test case: one row each ``every``, from ``start``, of one source."""

    topic: str
    rows: tuple[tuple[Number | Text | Truth | None, ...], ...]
    every: Duration
    start: Duration = 0
    source: str | None = None
    place: str | None = None
    location: Point | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Expect:
    """What a subscription must say in a test case: (status, when) in order; empty is nothing."""

    subscription: str
    marks: tuple[tuple[str, Duration], ...]
    scope: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Case:
    """``case "a warm room"`` with what is given and what is expected; time ends with the last reading, or
    goes on as far as ``until``."""

    name: str
    given: tuple[Given, ...]
    expect: tuple[Expect, ...]
    until: Duration | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


Defined = Subscribe | Detect | Correlate | Relate | Ladder | Tally | Align | Fold
"""What defines a condition that can be subscribed to."""

Statement = (
    Let | DeclareTopic | DeclareRegion | UseGazetteer | Subscribe | Detect | Collide | Correlate | Case
    | DeclareGroup | DeclareRoute | Relate | Ladder | Tally | DeclareTable | Mute | Align | Fold
)  # fmt: skip
