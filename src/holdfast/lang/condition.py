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
from ..model.allen import Allen
from ..model.correlation import Correlation, Tell
from ..model.count import Quota, Unknown
from ..model.guard import Care
from ..model.instant import Duration
from ..model.qos import TIMELY, Delivery
from ..model.query import Function, Query
from ..model.relation import Relation, Setting
from ..model.schedule import Schedule
from ..model.space import Forest, Point
from ..model.table import Table
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
    tables: tuple[Table, ...] = ()

    @property
    def looked(self) -> Topic:
        """The topic with what an event has because of its rows in tables."""
        return with_rows(self.topic, self.tables)

    @property
    def momentary(self) -> bool:
        """``[F; true]`` passes every match and never sets the bit.  [S3]"""
        return self.exit == Truth(True)


def with_rows(topic: Topic, tables: tuple[Table, ...]) -> Topic:
    """A topic with what its events have because of their rows in tables."""
    more = (attribute for table in tables for attribute in table.attributes)
    return Topic(topic.name, (*topic.attributes, *more)) if tables else topic


@dataclass(frozen=True)
class Guarded:
    """A checked subscription with guards, silence, or a beginning of its own: over one level of scopes.

    Its predicates may have ``Silent``, plain or in a ``Not``.  ``roster`` has the values of the keys
    of every scope that is expected.
    """

    name: str
    topic: Topic
    enter: Expression
    exit: Expression
    keys: Levels
    forest: Forest | None
    delivery: Delivery
    care: Care
    roster: tuple[tuple[str, ...], ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def listens(self) -> tuple[Topic, ...]:
        return (self.topic,)

    @property
    def looked(self) -> Topic:
        """The topic with what an event has because of its rows in tables."""
        return with_rows(self.topic, self.tables)

    @property
    def momentary(self) -> bool:
        """It lasts."""
        return False


@dataclass(frozen=True)
class Leveled:
    """Checked levels, the lowest first; ``topic`` is what they publish."""

    name: str
    rungs: tuple[Condition | Guarded, ...]
    topic: Topic
    delivery: Delivery

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The one topic of readings that they are about."""
        return (self.rungs[0].topic,)


@dataclass(frozen=True)
class Tallied:
    """A checked count over the scopes of a condition.

    ``over`` is the condition, as the topic of what it tells; ``topic`` is what the count publishes.  Members
    meet in the scope that ``within`` or ``forest`` name, or all of them; ``settled`` says whether a member's
    key tells that scope.  ``roster`` has the members that are expected, each with its scope.
    """

    name: str
    over: Topic
    topic: Topic
    quota: Quota
    within: tuple[str, ...]
    forest: Forest | None
    settled: bool
    joined: bool
    roster: tuple[tuple[str, tuple[str, ...] | str | None], ...] | None
    unknown: Unknown
    stage: int
    waits: bool = False
    """Whether what it counts speaks by time, too, and so not in the order of what happens."""
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The condition that it is over."""
        return (self.over,)


@dataclass(frozen=True)
class Folded:
    """A checked fold: ``over`` is the condition, as the topic of what it tells; ``topic`` is what the fold
    publishes.  A cell holds while more than ``most`` of what is directly in it does, until there are fewer
    than ``fewer``; cells are regions, or squares with ``sides``, the smallest first."""

    name: str
    over: Topic
    topic: Topic
    most: int
    fewer: int
    forest: Forest | None
    sides: tuple[float, ...]
    waits: bool = False
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The condition that it is over."""
        return (self.over,)


@dataclass(frozen=True)
class Clock:
    """A mute by the clock."""

    schedule: Schedule


@dataclass(frozen=True)
class Parent:
    """A mute while a condition holds, as the topic of what it tells, in scopes by keys or regions."""

    topic: Topic
    keys: Levels
    forest: Forest | None


@dataclass(frozen=True)
class Storm:
    """A mute while more than ``most`` scopes hold that agree in some attributes."""

    most: int
    within: tuple[str, ...]


Cause = Clock | Parent | Storm


@dataclass(frozen=True)
class Muted:
    """A checked mute of a condition, for all causes: ``over`` is the topic of what that tells, as events of
    the topic ``tells``; ``topic`` is that of summaries."""

    name: str
    target: str
    over: Topic
    tells: str
    topic: Topic
    causes: tuple[Cause, ...]
    wait: Duration
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The conditions that it hears."""
        return (self.over, *(cause.topic for cause in self.causes if isinstance(cause, Parent)))


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
class Aligned:
    """A checked correlation of conditions.

    ``over`` are the conditions, as the topics of what they tell; ``topic`` is what it publishes itself.
    Those meet that agree in the attributes ``per``; ``settled`` says whether the keys of all of them tell
    these.  ``near`` is in metres.
    """

    name: str
    over: tuple[Topic, ...]
    relation: Allen
    within: Duration | None
    near: float
    per: tuple[str, ...]
    settled: bool
    topic: Topic
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The conditions that it is over."""
        return self.over

    @property
    def momentary(self) -> bool:
        """Only what holds at once lasts."""
        return self.relation != "overlapping"


@dataclass(frozen=True)
class Related:
    """A checked relationship; ``topic`` is what is told of it, ``using`` how an overlay watches it."""

    name: str
    relation: Relation
    listens: tuple[Topic, ...]
    using: str | None
    delivery: Delivery
    topic: Topic
    settings: tuple[Setting, ...] = ()


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
    """A checked definition: topics of readings; conditions of each kind in the order of the text; cases,
    warnings."""

    topics: tuple[Topic, ...]
    conditions: tuple[Condition, ...]
    cases: tuple[Case, ...] = ()
    warnings: tuple[Caution, ...] = ()
    components: tuple[Component, ...] = ()
    correlations: tuple[Correlated, ...] = ()
    relations: tuple[Related, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    leveled: tuple[Leveled, ...] = ()
    tallied: tuple[Tallied, ...] = ()
    muted: tuple[Muted, ...] = ()
    aligned: tuple[Aligned, ...] = ()
    folded: tuple[Folded, ...] = ()

    @property
    def published(self) -> tuple[Topic, ...]:
        """The topics that notifications can be of: those of readings, and of conditions that publish events
        of their own."""
        complex_events = (one for one in self.correlations if one.tell != "events")
        some = (
            *(self.components, complex_events, self.relations, self.leveled),
            *(self.tallied, self.muted, self.aligned, self.folded),
        )
        own = (one.topic for conditions in some for one in conditions)
        return (*self.topics, *own)
