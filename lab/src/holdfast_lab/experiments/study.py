"""A study: one function applied to many cells (a point, a seed, a day), in rounds.

Runs are stored after each cell, so that an interrupted study continues where it stopped. If cells are Spark
tasks, they are stored after each round.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from . import journal
from .experiment import Progress

Key = TypeVar("Key", bound=Hashable)
Cell = TypeVar("Cell")
Run = TypeVar("Run")

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]
"""A way to apply a function to many cells."""


def in_turn(function: Callable[[Cell], Run], cells: Sequence[Cell]) -> list[Run]:
    """Apply a function to the cells one after the other, in this process."""
    return [function(cell) for cell in cells]


def on_spark(function: Callable[[Cell], Run], cells: Sequence[Cell]) -> list[Run]:
    """Apply a function to the cells as Spark tasks."""
    from holdfast.runtimes.spark import sweep

    return sweep.sweep(function, cells)


ENGINES: Mapping[str, Spread] = {"local": in_turn, "spark": on_spark}
_ASKED: ContextVar[Spread | None] = ContextVar("engine", default=None)


@contextmanager
def on_engine(name: str | None) -> Iterator[None]:
    """Run all studies in the block on an engine; with None, each on its default."""
    before = _ASKED.set(None if name is None else ENGINES[name])
    try:
        yield
    finally:
        _ASKED.reset(before)


@dataclass(frozen=True)
class StoredRuns(Generic[Run]):
    """A file of runs, and the function that converts a JSON value to a run."""

    path: Path
    made: Callable[[Any], Run]

    def read(self) -> dict[Any, Run]:
        return journal.done(self.path, lambda pairs: {_key(key): self.made(run) for key, run in pairs})

    def write(self, runs: Mapping[Any, Run]) -> None:
        journal.keep(self.path, list(runs.items()))


def _key(read: Any) -> Any:
    return tuple(read) if isinstance(read, list) else read


def singly(cells: Iterable[Key], label: Callable[[Key], str]) -> dict[str, dict[Key, Key]]:
    """Put each cell into a round of its own."""
    return {label(cell): {cell: cell} for cell in cells}


def conduct(
    function: Callable[[Cell], Run],
    rounds: Mapping[str, Mapping[Key, Cell]],
    progress: Progress,
    stored: StoredRuns[Run] | None = None,
    spread: Spread = in_turn,
) -> dict[Key, Run]:
    """Apply a function to all cells; ``rounds`` has the progress message and the cells of each round."""
    done: dict[Any, Run] = stored.read() if stored else {}
    spread = _ASKED.get() or spread
    for doing, cells in rounds.items():
        missing = [key for key in cells if key not in done]
        if missing:
            progress(doing)
        together = 1 if stored and spread is in_turn else max(1, len(missing))
        for i in range(0, len(missing), together):
            some = missing[i : i + together]
            done |= zip(some, spread(function, [cells[key] for key in some]), strict=True)
            if stored:
                stored.write(done)
    return {key: done[key] for cells in rounds.values() for key in cells}
