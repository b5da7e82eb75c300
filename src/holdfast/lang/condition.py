"""What checking leaves of a definition: the small core that compilers understand.

In a core expression every name is an attribute of the topic, numbers carry no unit, ``!`` has been
pushed down to the comparisons (`!unknown` is unknown, so `!(a > b)` is `a <= b`), and ``in`` has
become two comparisons.  What is left: ``Name``, ``Number``, ``Text``, ``Truth``, ``Arithmetic``,
``Negative``, ``Absolute``, ``Compare``, ``And``, ``Or``, and ``Not`` directly around the ``Name``
of a bool attribute.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Place, pointed
from ..model.qos import Delivery
from ..model.space import Forest
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
    """A checked definition: topics and conditions in the order of the text, cases, warnings."""

    topics: tuple[Topic, ...]
    conditions: tuple[Condition, ...]
    cases: tuple[Case, ...] = ()
    warnings: tuple[Caution, ...] = ()
