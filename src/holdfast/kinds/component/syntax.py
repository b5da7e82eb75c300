"""The statements of components. `parse.py` and `thesis_tables.py` make them, and `check.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...errors import Place
from ...lang.ops import ConditionStatement, Statement, Trigger
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.query import Function, Query
from ...model.space import Point


@dataclass(frozen=True, slots=True)
class DefineComponent(ConditionStatement):
    """The statement `state` with queries: a State Maintenance Component.

    In `state … on TOPIC enter …` the only query has the name `""`. `here` is the location of the host: a
    point, or a topic whose sources each carry a replica. `tick` is in microseconds.
    """

    has_scopes: ClassVar[bool] = False
    name: str
    inputs: tuple[tuple[str, Query], ...]
    enter: Trigger
    exit: Trigger
    here: Point | str | None = None
    tick: Duration | None = None
    delivery: Delivery = TIMELY
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Collide(Statement):
    """The statement `collide max`: the function that merges readings of one topic, time and place."""

    function: Function
    at: Place | None = field(default=None, compare=False, repr=False)
