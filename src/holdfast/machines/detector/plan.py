"""What a columnar plan adds to a component: predicates over columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.event import Status, Value
from ...model.query import Function
from ...model.topic import Topic

Test = Callable[[pa.RecordBatch], NDArray[np.bool_]]


STATUS, VALID = "=status", "=valid"
"""What knowledge has besides attributes: whether it starts or ends something, and if that is still so."""


class Column(NamedTuple):
    """A column that predicates read: an attribute of what a query shows at each instant.

    ``function`` is that of the query's window; ``None`` where it shows the nearest, or what all have.
    ``over`` is that over locations, or over starts and ends, if these are as one; ``across`` over topics.
    ``bound`` is how far from the host it is to be, by sign and limit; ``default`` is what counts where
    nothing is shown.
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
class Parts:
    """A predicate as comparisons, each with the queries whose columns it reads, and what is true of all of
    them where so much is true of each."""

    comparisons: tuple[tuple[frozenset[str], Test], ...]
    together: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Screen:
    """A predicate over columns, true wherever the predicate is; if it is ``exact``, only there."""

    test: Test
    exact: bool
    parts: Parts


@dataclass(frozen=True)
class Saying:
    """What an event of a rule says: of each query the attributes that it has where that query contributed
    last, and what is computed of columns ``read``."""

    given: Mapping[str, tuple[Column, ...]]
    read: Mapping[str, tuple[Column, ...]]
    computes: Mapping[str, Callable[[pa.RecordBatch], Any]]


@dataclass(frozen=True)
class Plan:
    """The columns of each query, and the predicates as screens; without an exit, momentary.

    ``topic`` is that of its events, ``heard`` are those that it listens to, and ``statuses`` those of what
    each query looks at; ``says`` is what events of the two rules say, if columns can tell.
    """

    columns: Mapping[str, tuple[Column, ...]]
    enter: Screen
    exit: Screen | None
    topic: Topic
    heard: Mapping[str, Topic]
    statuses: Mapping[str, tuple[Status, ...]]
    says: tuple[Saying | None, Saying | None]
