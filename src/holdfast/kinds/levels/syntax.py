"""The statement of levels: its class, parser and printer. Its clauses are those of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from ...errors import Place
from ...lang.nodes import label_of, place, topic_word
from ...lang.ops import ConditionStatement, Levels
from ...lang.show import label
from ..state.syntax import DefineState, predicates, show_clauses, show_predicates, subscribe
from ..state.syntax import reads_file as state_reads_file
from ..state.syntax import tables as tables_of_state


@dataclass(frozen=True, slots=True)
class DefineLevels(ConditionStatement):
    """The statement ``levels Heat on Temperature: warn […; …], alarm […; …] per source``.

    It defines states of one topic in the same scopes, the lowest first. The highest active state is the
    level.
    """

    name: str
    rungs: tuple[DefineState, ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def scopes(self) -> Levels:
        return tuple(level for rung in self.rungs for level in rung.scope)

    def map_scopes(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> DefineLevels:
        return replace(self, rungs=tuple(rung.map_scopes(change) for rung in self.rungs))


def read_levels(parts: list[Any]) -> DefineLevels:
    """Parse ``levels Heat on Temperature: warn […; …], alarm […; …] per source``."""
    name, topic, *nodes = parts
    rungs = [node.children for node in nodes if node.data == "rung"]
    clauses = [node for node in nodes if node.data != "rung"]
    on = topic_word(topic)
    made = [subscribe(rung, on, predicates(pair), clauses) for rung, pair in rungs]
    return DefineLevels(label_of(name), tuple(made), place(name))


def show_levels_statement(statement: DefineLevels) -> str:
    """Return ``levels Heat on Temperature: warn […; …], alarm […; …] per source`` as text."""
    name, rungs = statement.name, statement.rungs
    rungs_text = ", ".join(f"{rung.name} {show_predicates(rung)}" for rung in rungs)
    return " ".join([f"levels {label(name)} on {rungs[0].topic}: {rungs_text}", *show_clauses(rungs[0])])


def tables(statement: DefineLevels) -> Iterator[str]:
    """Yield the tables that the states of the levels name."""
    return chain.from_iterable(map(tables_of_state, statement.rungs))


def reads_file(statement: DefineLevels) -> bool:
    """Whether a state of a level reads its expected sources from a file."""
    return any(map(state_reads_file, statement.rungs))
