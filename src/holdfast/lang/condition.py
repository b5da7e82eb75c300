"""Checked definitions: conditions, in a small core of expressions.

In a core expression every name is an attribute of the topic, and numbers carry no unit. ``!`` has been pushed
down to the comparisons: `!unknown` is unknown, so `!(a > b)` is `a <= b`. ``in`` has become two comparisons.

The core consists of ``Name``, ``Number``, ``Text``, ``Truth``, ``Arithmetic``, ``Negative``, ``Absolute``,
``Compare``, ``And``, ``Or``, and ``Not`` directly around the ``Name`` of a bool attribute. A component has
``Member`` (``A.value``) in place of attributes, and the names ``now`` and ``here``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..errors import Place, pointed
from ..model.qos import Delivery
from ..model.space import Forest
from ..model.table import Table
from ..model.topic import Topic
from .ops import Case, Expression, Levels

C = TypeVar("C", bound="Condition")

LEVEL, BEFORE = "level", "was"
"""The attributes of notifications that have levels: the new level and the level before."""


class Condition:
    """A checked condition. Each kind has a subclass; the properties exist for every kind.

    The properties that return a constant here are defaults, which a kind overrides where it differs.
    """

    kind: ClassVar[str]
    """The name of its kind in the registry."""

    if TYPE_CHECKING:  # subclasses have them as fields or properties
        __dataclass_fields__: ClassVar[dict[str, Any]]

        @property
        def name(self) -> str: ...
        @property
        def topic(self) -> Topic:
            """The output topic of the condition; for a state the topic of its readings."""

        @property
        def listens(self) -> tuple[Topic, ...]:
            """The topics that the condition consumes: of readings, or of conditions that it builds on."""

        @property
        def delivery(self) -> Delivery: ...

    @property
    def momentary(self) -> bool:
        """Whether the condition ends as it starts, so that every match is a notification of its own."""
        return False

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables whose columns the predicates compare."""
        return ()

    @property
    def summary(self) -> str:
        """A summary of the condition's inputs, in one line."""
        raise NotImplementedError

    @property
    def api_kind(self) -> str:
        """The name of the kind in the list of the HTTP API."""
        return "filter" if self.momentary else f"{self.kind}s"

    @property
    def publishes(self) -> bool:
        """Whether notifications are events of the condition's own topic.

        Otherwise they are the readings that caused them.
        """
        return True

    @property
    def output_topics(self) -> tuple[Topic, ...]:
        """The topics that the events of the condition's notifications can have."""
        return (self.topic,)

    @property
    def scope_keys(self) -> tuple[str, ...]:
        """The attributes in notifications whose values identify a scope."""
        return ()

    @property
    def routing_keys(self) -> tuple[str, ...]:
        """The attributes that have one value in all notifications of a scope.

        Downstream operators may be sharded by them.
        """
        return self.scope_keys

    @property
    def outer_scopes(self) -> tuple[Levels, Forest | None]:
        """The outermost scopes of the condition: by keys, or by regions."""
        return (), None

    @property
    def spans_scopes(self) -> bool:
        """Whether a scope of the condition comprises several scopes of other conditions."""
        return False

    @property
    def mutes(self) -> str | None:
        """The condition whose notifications this mute withholds; ``None`` for any other kind."""
        return None

    @property
    def has_levels(self) -> bool:
        """Whether notifications have attributes for the new level and the level before."""
        return False

    @property
    def emits_by_time(self) -> bool:
        """Whether timers can make the condition emit, and so out of the order of readings."""
        return True


class ScopedCondition(Condition):
    """A condition with predicates over the readings of one topic, in scopes by keys or regions.

    ``keys`` are the levels of ``per``, innermost first. ``forest`` has the regions of ``scope``, or is
    ``None``. With both, the keys are scopes inside the regions. With neither there is one scope.
    """

    if TYPE_CHECKING:

        @property
        def enter(self) -> Expression: ...
        @property
        def exit(self) -> Expression: ...
        @property
        def keys(self) -> Levels: ...
        @property
        def forest(self) -> Forest | None: ...
        @property
        def tables(self) -> tuple[Table, ...]: ...

    @property
    def listens(self) -> tuple[Topic, ...]:
        return (self.topic,)

    @property
    def topic_with_rows(self) -> Topic:
        """The topic with the columns of the condition's tables. An event has the values of its row there."""
        return with_rows(self.topic, self.tables)

    @property
    def publishes(self) -> bool:
        return False

    @property
    def scope_keys(self) -> tuple[str, ...]:
        return self.keys[-1] if self.keys and self.forest is None else ()

    @property
    def outer_scopes(self) -> tuple[Levels, Forest | None]:
        return ((), self.forest) if self.forest is not None else (self.keys[-1:], None)


def with_rows(topic: Topic, tables: tuple[Table, ...]) -> Topic:
    """Return a topic with the columns of tables. An event has the values of its row there."""
    more = (attribute for table in tables for attribute in table.attributes)
    return Topic(topic.name, (*topic.attributes, *more)) if tables else topic


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning about a definition that is valid but probably a mistake."""

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
    """A checked definition: topics of readings, conditions, test cases and warnings.

    The conditions are ordered by the kinds in the registry, and then by the text.
    """

    topics: tuple[Topic, ...]
    conditions: tuple[Condition, ...]
    cases: tuple[Case, ...] = ()
    warnings: tuple[Caution, ...] = ()

    @property
    def by_name(self) -> dict[str, Any]:
        """The conditions by name."""
        return {condition.name: condition for condition in self.conditions}

    def of(self, *classes: type[C]) -> tuple[C, ...]:
        """Return the conditions of some classes, in the order of the definition's conditions."""
        return tuple(condition for condition in self.conditions if isinstance(condition, classes))

    @property
    def output_topics(self) -> tuple[Topic, ...]:
        """The topics of notifications: those of readings, and of conditions that publish their own events."""
        return (*self.topics, *(condition.topic for condition in self.conditions if condition.publishes))
