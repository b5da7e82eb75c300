"""The columnar plan of a component: its predicates and events as functions over columns.

This module has only data classes. `plan_columns.py` makes plans, and `columns.py` evaluates them.
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
"""A predicate over a batch with one row for each instant; it returns a mask."""


STATUS, VALID = "=status", "=valid"
"""Names of two columns beside the attributes: the status of knowledge, and whether it is valid."""


class PlanColumn(NamedTuple):
    """A column that predicates read: an attribute of the value that a query shows.

    `function` aggregates the query's window. It is `None` for the nearest value, or for an attribute on which
    all values agree. `over` aggregates locations or statuses, `across` aggregates topics. `bound` compares
    the distance from the host with a limit. `default` replaces missing values.
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
    """A predicate split into comparisons.

    Each comparison has the names of the queries that it reads. `together` combines the results of all
    comparisons.
    """

    comparisons: tuple[tuple[frozenset[str], Test], ...]
    together: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Screen:
    """A test over columns that is true wherever the predicate is true. If it is `exact`, it is false
    everywhere else."""

    test: Test
    exact: bool
    parts: ScreenParts


@dataclass(frozen=True)
class EventColumns:
    """The columns from which the events of a rule are built.

    `given` are the attributes taken from the query that contributed last, by query. `computes` are the
    computations, `read` the columns that they read.
    """

    given: Mapping[str, tuple[PlanColumn, ...]]
    read: Mapping[str, tuple[PlanColumn, ...]]
    computes: Mapping[str, Callable[[pa.RecordBatch], Any]]


@dataclass(frozen=True)
class ColumnarPlan:
    """The columns of each query, and the predicates as screens; `exit` is `None` for a momentary component.

    `topic` is the topic of the component's events, `consumed` are the topics that the component reads.
    `statuses` are the statuses that each query can select. `events` builds the events of the entrance and of
    the exit; `None` where columns do not suffice.
    """

    columns: Mapping[str, tuple[PlanColumn, ...]]
    enter: Screen
    exit: Screen | None
    topic: Topic
    consumed: Mapping[str, Topic]
    statuses: Mapping[str, tuple[Status, ...]]
    events: tuple[EventColumns | None, EventColumns | None]
