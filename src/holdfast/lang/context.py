"""The declared names that the checks of a definition's conditions use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import DefinitionError, Place, did_you_mean
from ..model.folder import Folder
from ..model.space import Gazetteer
from ..model.table import Table
from ..model.topic import Topic
from .condition import Condition
from .ops import Case, Statement
from .typed import Parameters

S = TypeVar("S", bound=Statement)


@dataclass(frozen=True)
class Context:
    """The names that statements may use, and the folder in which files are searched.

    The names are those of statements, topics, parameters, regions, tables and conditions checked before.
    Warnings also use the test cases.
    """

    statements: Sequence[Statement]
    topics: Sequence[Topic]
    parameters: Parameters
    regions: Gazetteer
    folder: Folder
    tables: Mapping[str, Table]
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    cases: Sequence[Case] = ()

    def all(self, kind: type[S]) -> list[S]:
        """Return the statements of a class, in the order of the text."""
        return [statement for statement in self.statements if isinstance(statement, kind)]


def topic_named(name: str, topics: Sequence[Topic], at: Place | None) -> Topic:
    """Return the declared topic with a name. Raises ``DefinitionError`` with a hint if there is none."""
    by_name = {topic.name: topic for topic in topics}
    if name not in by_name:
        has = f"declared: {', '.join(by_name)}" if by_name else "none is declared"
        hint = did_you_mean(name, by_name) or f"Declare it: topic {name} (value float)"
        raise DefinitionError(f"unknown topic '{name}'; {has}", at, hint=hint)
    return by_name[name]
