"""What a columnar plan adds to a component: predicates over columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.query import Function

Test = Callable[[pa.RecordBatch], NDArray[np.bool_]]


class Column(NamedTuple):
    """A column that predicates read: an attribute of what a query shows at each instant.

    ``function`` is that of the query's window, ``None`` where it shows the nearest.
    """

    name: str
    attribute: str
    kind: Literal["number", "text", "bool"]
    function: Function | None = None


@dataclass(frozen=True)
class Screen:
    """A predicate over columns, true wherever the predicate is; if it is ``exact``, only there."""

    test: Test
    exact: bool


@dataclass(frozen=True)
class Plan:
    """The columns of each query, and the predicates as screens; without an exit, momentary."""

    columns: Mapping[str, tuple[Column, ...]]
    enter: Screen
    exit: Screen | None
