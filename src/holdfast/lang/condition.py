"""What checking leaves of a definition: the small core that compilers understand.

In a core expression every name is an attribute of the topic, numbers carry no unit, ``!`` has been
pushed down to the comparisons (`!unknown` is unknown, so `!(a > b)` is `a <= b`), and ``in`` has
become two comparisons.  What is left: ``Name``, ``Number``, ``Text``, ``Truth``, ``Arithmetic``,
``Negative``, ``Absolute``, ``Compare``, ``And``, ``Or``, and ``Not`` directly around the ``Name``
of a bool attribute.  In a component there are ``Member`` (``A.value``) in place of attributes, and the
names ``now`` and ``here``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Place, pointed
from ..model.correlation import Correlation, Tell
from ..model.instant import Duration
from ..model.qos import Delivery
from ..model.query import Function, Query
from ..model.relation import Relation
from ..model.space import Forest, Point
from ..model.topic import Topic
from .ops import Case, Expression, Levels, Truth


@dataclass(frozen=True)
class Condition:
    """A checked subscription.

    ``keys`` are the levels of ``per``, innermost first; ``forest`` the regions of ``scope``, if
    any.  With both, the keys live inside the regions.  With neither there is one scope.
    """

    name: str
    topic: Topic
    enter: Expression
    exit: Expression
    keys: Levels
    forest: Forest | None
    delivery: Delivery

    @property
    def momentary(self) -> bool:
        """``[F; true]`` passes every match and never sets the bit.  [S3]"""
        return self.exit == Truth(True)


@dataclass(frozen=True)
class Rule:
    """What starts or ends a component's condition, how long it must hold, and what is computed."""

    when: Expression
    hold: Duration = 0
    sets: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True)
class Component:
    """A checked component.

    ``topic`` is what it publishes, ``listens`` what it listens to, readings and other components'
    topics alike; ``keys`` are what is kept apart; ``level`` is how far it is above the readings;
    ``collide`` makes one of readings of one cell.
    """

    name: str
    topic: Topic
    inputs: tuple[tuple[str, Query], ...]
    listens: tuple[Topic, ...]
    enter: Rule
    exit: Rule
    keys: tuple[str, ...]
    here: Point | str | None
    tick: Duration | None
    delivery: Delivery
    level: int
    collide: Function = "avg"

    @property
    def momentary(self) -> bool:
        """An exit that is always true: every detection is told, nothing lasts.  [F68]"""
        return self.exit.when == Truth(True)


@dataclass(frozen=True)
class Correlated:
    """A checked correlation.

    Filter ``i`` of ``correlation`` is over attribute ``measured[i]`` of a topic; ``forest`` is the region,
    if any, with the places and sources in it; ``topic`` is what complex events are published as.
    """

    name: str
    correlation: Correlation
    measured: tuple[tuple[Topic, str], ...]
    forest: Forest | None
    tell: Tell
    delivery: Delivery
    topic: Topic

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The topics that its filters look at."""
        return tuple(dict.fromkeys(topic for topic, _ in self.measured))


@dataclass(frozen=True)
class Related:
    """A checked relationship; ``topic`` is what is told of it, ``using`` how an overlay watches it."""

    name: str
    relation: Relation
    listens: tuple[Topic, ...]
    using: str | None
    delivery: Delivery
    topic: Topic


@dataclass(frozen=True, slots=True)
class Caution:
    """A definition that is probably a mistake; it runs all the same."""

    message: str
    place: Place | None = None
    hint: str | None = None
    text: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        message = f"warning: {self.message}"
        return pointed(message, self.place, hint=self.hint, text=self.text, file=self.file)


@dataclass(frozen=True)
class Checked:
    """A checked definition: topics of readings; conditions, components, correlations and relationships in
    the order of the text; cases, warnings."""

    topics: tuple[Topic, ...]
    conditions: tuple[Condition, ...]
    cases: tuple[Case, ...] = ()
    warnings: tuple[Caution, ...] = ()
    components: tuple[Component, ...] = ()
    correlations: tuple[Correlated, ...] = ()
    relations: tuple[Related, ...] = ()

    @property
    def published(self) -> tuple[Topic, ...]:
        """The topics that notifications can be of: those of readings, of components, of complex events, of
        relationships."""
        complex_events = (one.topic for one in self.correlations if one.tell != "events")
        related = (one.topic for one in self.relations)
        return (*self.topics, *(component.topic for component in self.components), *complex_events, *related)
