"""The statements of relations, groups and routes. `parse.py` makes them, and `check.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import Place
from ...lang.ops import ConditionStatement, Statement, Trigger
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.relation import Setting


@dataclass(frozen=True, slots=True)
class DeclareGroup(Statement):
    """The statement ``group Team of User ("ann", "bob")``. If ``sources`` is a text, it is the path of a
    table."""

    name: str
    topic: str
    sources: tuple[str, ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DeclareRoute(Statement):
    """The statement ``route North on Loop.speed ("4" 12 km, "5" 23 km)``: sources in a row with lengths in
    metres.

    If ``legs`` is a text, it is the path of a table.
    """

    name: str
    topic: str
    attribute: str
    legs: tuple[tuple[str, float], ...] | str
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DefineRelation(ConditionStatement):
    """The statement ``relate Meet (a User, b User) when distance(a, b) <= 10 m until …``.

    It defines a relation of two sources or of a group. ``pairs`` are listed or the path of a table; ``None``
    means all sources. Without ``exit`` the relation ends when ``enter`` fails. ``best`` has alternatives in
    the place of ``enter``; the alternative with the least value is reported.
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
