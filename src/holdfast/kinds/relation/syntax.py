"""The statements of relations, groups and routes, as `parse.py` makes them and `check.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import Place
from ...lang.ops import ConditionStatement, Statement, Trigger
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.relation import Setting


@dataclass(frozen=True, slots=True)
class DeclareGroup(Statement):
    """``group Team of User ("ann", "bob")``; sources may also come from a table."""

    name: str
    topic: str
    sources: tuple[str, ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareRoute(Statement):
    """``route North on Loop.speed ("4" 12 km, "5" 23 km)``: sources in a row, each with a length in
    metres.
    """

    name: str
    topic: str
    attribute: str
    legs: tuple[tuple[str, float], ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DefineRelation(ConditionStatement):
    """``relate Meet (a User, b User) when distance(a, b) <= 10 m until …``: a relation of two sources or of a
    group.

    ``pairs`` are listed or come from a table; ``None`` means all sources. Without ``exit`` the relation ends
    when ``enter`` fails. ``best`` has alternatives in the place of ``enter``: the one with the least value is
    reported.
    """

    name: str
    roles: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[str, str], ...] | str | None = None
    enter: Trigger | None = None
    exit: Trigger | None = None
    best: tuple[str, ...] = ()
    by: Duration = 0
    accuracy: str | None = None
    using: str | None = None
    settings: tuple[Setting, ...] = ()
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)
