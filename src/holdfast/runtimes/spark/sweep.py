"""Independent runs as Spark tasks, for simulations and repetitions of an experiment."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import pyarrow as pa

from ...errors import HoldfastError, InputError, UsageError
from .session import session

P = TypeVar("P")
R = TypeVar("R")


def sweep(function: Callable[[P], R], points: Sequence[P], master: str | None = None) -> list[R]:
    """Call a function on each point as a Spark task of its own.

    Return the results in the order of the points. The function, the points and the results travel between
    processes, so they must be picklable. The function must depend only on its point. If tasks raise errors of
    Holdfast, the error of the first such point is raised here.
    """
    if not points:
        return []
    spark = session(master)
    count = len(points)

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                raw = pickle.dumps(_outcome(function, points[number]))
                yield pa.RecordBatch.from_pydict({"number": [number], "outcome": [raw]})

    rows = spark.range(0, count, 1, count).mapInArrow(run, "number long, outcome binary").collect()
    outcomes = {row.number: pickle.loads(row.outcome) for row in rows}
    for number in range(count):
        if isinstance(failure := outcomes[number], _Failure):
            raise (UsageError if failure.exit_status == 2 else InputError)(failure.message)
    return [outcomes[number] for number in range(count)]


class _Failure(NamedTuple):
    """An error that a task raised on purpose: its exit status and its message."""

    exit_status: int
    message: str


def _outcome(function: Callable[[P], R], point: P) -> R | _Failure:
    try:
        return function(point)
    except HoldfastError as error:
        return _Failure(error.exit_status, str(error))
