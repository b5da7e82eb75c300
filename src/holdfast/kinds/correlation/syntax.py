"""The statements of correlations. `parse.py` makes them, and `check.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import Place
from ...lang.ops import ConditionStatement, Expression
from ...model.correlation import Tell
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.space import Shape


@dataclass(frozen=True, slots=True)
class MatchRange:
    """A filter ``ambient_temp of "s12" in [-5, 2)``: the range of one attribute.

    A side that is ``None`` is unbounded. ``strict`` is true for each of the two ends that is excluded.
    """

    attribute: str
    low: Expression | None = None
    high: Expression | None = None
    strict: tuple[bool, bool] = (False, False)
    sensor: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DefineCorrelation(ConditionStatement):
    """The statement ``correlate Storm within 2 min, 500 m in region Pass …``: readings that agree in time and
    space.

    ``within`` is in microseconds, ``near`` in metres. ``region`` is a name or a shape.
    """

    name: str
    matches: tuple[MatchRange, ...]
    within: Duration
    near: float | None = None
    region: str | Shape | None = None
    tell: Tell = "events"
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)
