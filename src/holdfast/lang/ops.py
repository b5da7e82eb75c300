"""The operations: everything that a definition can contain, as frozen values.

There are two families. *Expressions* compute a value of one event; *statements* are the lines of a file.
Equality ignores the place in the text (``at``), so ``parse(show(x)) == x``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ..errors import Place
from ..model.instant import Duration
from ..model.space import Point, Shape
from ..model.table import Column
from ..model.topic import Topic

Levels = tuple[tuple[str, ...], ...]
"""Nested groups of names, innermost first: ``a, b within c`` is ``(("a", "b"), ("c",))``."""

Notation = Literal["readable", "thesis"]

# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute of the event, or a parameter that ``let`` declared."""

    name: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MemberAttribute:
    """``A.value``: an attribute of the value of a component's query, or of its ``last`` event.

    ``A.value else 5`` has a default for a missing value: a literal or the name of a parameter.
    """

    owner: str
    name: str
    at: Place | None = field(default=None, compare=False, repr=False)
    otherwise: Name | Number | Text | Truth | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number. Without a unit it takes the unit of the value that it is compared with."""

    value: float | int
    unit: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A literal text, such as ``"open"``."""

    value: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """A literal truth value: ``true`` or ``false``."""

    value: bool
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LocationLiteral:
    """A location, given by its coordinates."""

    point: Point
    at: Place | None = field(default=None, compare=False, repr=False)


ArithmeticSign = Literal["+", "-", "*", "/"]
ComparisonSign = Literal["<", "<=", "==", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic operation: ``+``, ``-``, ``*`` or ``/``."""

    sign: ArithmeticSign
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """The negative ``-arg`` of a number."""

    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Absolute:
    """The absolute value ``|arg|`` of a number, or the length of an offset."""

    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison: true, false, or unknown if an operand is missing."""

    sign: ComparisonSign
    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    """``arg in [low, high]``: whether a number is in a range that includes both ends."""

    arg: Expression
    low: Expression
    high: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    """``left && right``: false if one operand is false, else unknown if one is unknown."""

    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    """``left || right``: true if one operand is true, else unknown if one is unknown."""

    left: Expression
    right: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    """``!arg``: the negation of a predicate. The negation of unknown is unknown."""

    arg: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Silent:
    """``silent 10 min``: the scope has had no reading for longer than the duration."""

    length: Duration
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """``distance(a, b)``: a measure of a relationship. ``around`` is the source at its centre."""

    function: str
    args: tuple[str, ...]
    around: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


Expression = (
    Call | Name | MemberAttribute | Number | Text | Truth | LocationLiteral
    | Arithmetic | Negative | Absolute | Compare | Between | And | Or | Not | Silent
)  # fmt: skip

# --- statements ------------------------------------------------------------------------------


class Statement:
    """A statement of a definition. Each kind of condition has a subclass."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def at(self) -> Place | None:
            """The place of the statement in the text."""

    @property
    def subject(self) -> str | None:
        """The name of the condition that the statement defines or mutes; `None` for a declaration."""
        return None

    @property
    def mutes(self) -> str | None:
        """The name of the condition whose notifications this mute withholds; `None` for other statements."""
        return None

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The conditions that the statement names as its inputs."""
        return ()


class ConditionStatement(Statement):
    """A statement that defines a condition. Each kind of condition has a subclass."""

    __slots__ = ()
    has_scopes: ClassVar[bool] = True
    """Whether it may have a clause ``scope``."""
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]

        @property
        def name(self) -> str: ...
        @property
        def at(self) -> Place | None: ...

    @property
    def subject(self) -> str | None:
        return self.name

    @property
    def scopes(self) -> Levels:
        """The regions that the statement names as its scopes."""
        return ()

    def map_scopes(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Self:  # noqa: ARG002
        """Return the statement with each level of its scopes replaced by `change` of it."""
        return self

    @property
    def corrects(self) -> bool:
        """Whether the condition corrects its notifications when late events arrive."""
        return False


class DerivedStatement(ConditionStatement):
    """A statement that defines a condition over other conditions."""

    __slots__ = ()

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The names of the conditions that the statement builds on."""
        raise NotImplementedError


class Word(str):
    """A name with its place in the text."""

    at: Place | None

    def __new__(cls, name: str, at: Place | None = None) -> Word:
        word = super().__new__(cls, name)
        word.at = at
        return word


def place_of(name: str, otherwise: Place | None) -> Place | None:
    """Return the place of a name, or ``otherwise`` if it has none."""
    return (name.at if isinstance(name, Word) else None) or otherwise


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """``let high = 25 °C``: the declaration of a parameter."""

    name: str
    value: Expression
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareTopic(Statement):
    """``topic Temperature (value float °C)``: the declaration of a topic."""

    topic: Topic
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareRegion(Statement):
    """``region lab = rectangle (0, 0) (10, 5) in hall``: a region. Without a shape it has only a name."""

    name: str
    shape: Shape | None = None
    parent: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UseGazetteer(Statement):
    """``gazetteer "building.toml"``: names of regions come from a file beside the definition."""

    path: str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareTable(Statement):
    """``table Limits "limits.csv" (source text, high float °C)``: values for each key.

    They come from a file beside the definition, or are given in Python as ``data``. The key is the first
    column unless ``by`` names other columns.
    """

    name: str
    path: str
    columns: tuple[Column, ...]
    by: tuple[str, ...] = ()
    data: Any = field(default=None, compare=False, repr=False)
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that form the key of a row."""
        return self.by or (self.columns[0].name,)


@dataclass(frozen=True, slots=True)
class Trigger:
    """``enter … for … set …``: a predicate, its minimum duration in microseconds, and values to compute.

    The values are computed when the predicate is satisfied.
    """

    when: Expression
    hold: Duration = 0
    sets: tuple[tuple[str, Expression], ...] = ()
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """Readings of a test case from one source: one row each ``every``, from ``start`` on.

    Times are in microseconds.
    """

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
    """The expected notifications of a condition in a test case: pairs of status and time, in order."""

    subscription: str
    marks: tuple[tuple[str, Duration], ...]
    scope: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Case(Statement):
    """``case "a warm room"``: a test case with given readings and expected notifications.

    Event time ends with the last reading, or advances to ``until`` if that is given.
    """

    name: str
    given: tuple[Given, ...]
    expect: tuple[Expect, ...]
    until: Duration | None = None
    at: Place | None = field(default=None, compare=False, repr=False)
