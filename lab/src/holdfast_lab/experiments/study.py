"""A study: one function over many cells (a point, a seed, a day), made in rounds.

Runs are kept, so that a long study goes on where it stopped: after each cell, or after each round where its
cells are Spark tasks.
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
    """One after the other, in this process."""
    return [function(cell) for cell in cells]


def on_spark(function: Callable[[Cell], Run], cells: Sequence[Cell]) -> list[Run]:
    """Each cell as a Spark task."""
    from holdfast.runtimes.spark import sweep

    return sweep.sweep(function, cells)


ENGINES: Mapping[str, Spread] = {"local": in_turn, "spark": on_spark}
_ASKED: ContextVar[Spread | None] = ContextVar("engine", default=None)


@contextmanager
def on_engine(name: str | None) -> Iterator[None]:
    """All studies in it run their cells there; none: as each of them has it."""
    before = _ASKED.set(None if name is None else ENGINES[name])
    try:
        yield
    finally:
        _ASKED.reset(before)


@dataclass(frozen=True)
class StoredRuns(Generic[Run]):
    """A file of runs, and how a run is made again from what JSON has of it."""

    path: Path
    made: Callable[[Any], Run]

    def read(self) -> dict[Any, Run]:
        return journal.done(self.path, lambda pairs: {_key(key): self.made(run) for key, run in pairs})

    def write(self, runs: Mapping[Any, Run]) -> None:
        journal.keep(self.path, list(runs.items()))


def _key(read: Any) -> Any:
    return tuple(read) if isinstance(read, list) else read


def singly(cells: Iterable[Key], label: Callable[[Key], str]) -> dict[str, dict[Key, Key]]:
    """Each cell in a round of its own."""
    return {label(cell): {cell: cell} for cell in cells}


def conduct(
    function: Callable[[Cell], Run],
    rounds: Mapping[str, Mapping[Key, Cell]],
    progress: Progress,
    stored: StoredRuns[Run] | None = None,
    spread: Spread = in_turn,
) -> dict[Key, Run]:
    """What the function gives for every cell; ``rounds`` says what is to be told of each, and its cells."""
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
