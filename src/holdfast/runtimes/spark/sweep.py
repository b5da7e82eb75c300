"""Many independent runs as Spark tasks: simulations, repetitions of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...errors import HoldfastError, InputError, UsageError
from .session import session

P = TypeVar("P")
R = TypeVar("R")


def sweep(function: Callable[[P], R], points: Sequence[P], master: str | None = None) -> list[R]:
    """``[function(point) for point in points]``, each a task of its own.

    The function, the points and what it returns travel between processes, so they must be picklable,
    and the function must depend on its point only.  What Holdfast raises on purpose in a task is raised
    here again, the first in the order of the points.
    """
    if not points:
        return []
    context = session(master).sparkContext
    outcomes = context.parallelize(list(points), len(points)).map(_Safely(function)).collect()
    for outcome in outcomes:
        if isinstance(outcome, _Failed):
            raise (UsageError if outcome.exit_status == 2 else InputError)(outcome.message)
    return outcomes


class _Failed:
    """What a task raised on purpose, in a form that travels."""

    def __init__(self, error: HoldfastError) -> None:
        self.exit_status, self.message = error.exit_status, str(error)


class _Safely:
    """The function, with its errors as results."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, point: Any) -> Any:
        try:
            return self._function(point)
        except HoldfastError as error:
            return _Failed(error)
