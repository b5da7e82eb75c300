"""The columnar plan of a component: its predicates and events over columns.

These are data only: `plan_columns.py` makes plans, `columns.py` evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....model.event import Status, Value
from ....model.query import Function
from ....model.topic import Topic

Test = Callable[[pa.RecordBatch], NDArray[np.bool_]]


STATUS, VALID = "=status", "=valid"
"""Columns of knowledge beside its attributes: its status, and whether it is valid."""


class PlanColumn(NamedTuple):
    """A column that predicates read: an attribute of the value that a query shows.

    `function` is that of the query's window, `None` for the nearest value or the one that all share; `over`
    that over locations or statuses, `across` that over topics. `bound` compares the distance from the host
    with a limit. `default` replaces missing values.
    """

    name: str
    attribute: str
    kind: Literal["number", "text", "bool"]
    function: Function | None = None
    bound: tuple[str, float] | None = None
    default: Value = None
    over: Function | None = None
    across: Function | None = None


@dataclass(frozen=True)
class ScreenParts:
    """A predicate split into comparisons, each with the queries whose columns it reads, and the function that
    joins their results."""

    comparisons: tuple[tuple[frozenset[str], Test], ...]
    together: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Screen:
    """A test over columns that is true wherever the predicate is; if it is `exact`, only there."""

    test: Test
    exact: bool
    parts: ScreenParts


@dataclass(frozen=True)
class EventColumns:
    """The events of a rule over columns: by query the attributes taken from it where it contributed last, the
    columns that computations read, and the computations."""

    given: Mapping[str, tuple[PlanColumn, ...]]
    read: Mapping[str, tuple[PlanColumn, ...]]
    computes: Mapping[str, Callable[[pa.RecordBatch], Any]]


@dataclass(frozen=True)
class ColumnarPlan:
    """The columns of each query, and the predicates as screens; `exit` is `None` for a momentary component.

    `topic` is that of its events, `consumed` are the topics that it reads, `statuses` the statuses that each
    query can select; `events` build the events of both rules, where columns suffice.
    """

    columns: Mapping[str, tuple[PlanColumn, ...]]
    enter: Screen
    exit: Screen | None
    topic: Topic
    consumed: Mapping[str, Topic]
    statuses: Mapping[str, tuple[Status, ...]]
    events: tuple[EventColumns | None, EventColumns | None]
