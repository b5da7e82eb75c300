"""Pushdown: the columns and rows of a topic that a definition needs, determined once for all readers.

A reader of files, an executor on Spark, a data frame or a publisher asks a `Pushdown` which rows to retain.
Each predicate is evaluated once on a batch; see `Relevance` for the two answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..engine.graph import OperatorId
from ..engine.machine import Mask, Relevance
from ..engine.operator import Operator


class Consumer(NamedTuple):
    """An operator that consumes a topic, with its id."""

    id: OperatorId
    operator: Operator


@dataclass
class Coverage:
    """The number of events of each topic, and of each condition's events in no scope.

    An event without a row in a table of the condition counts as being in no scope.
    """

    events: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    def add(self, other: Coverage) -> None:
        """Add the counts of another reader to these."""
        self.events.update(other.events)
        self.outside.update(other.outside)

    def out_of_scope(self, operators: Iterable[Operator]) -> list[str]:
        """Return the conditions of which no event was in a scope."""
        return [
            name
            for operator in operators
            for name, topics in operator.topics_by_name().items()
            if 0 < self.outside[name] == sum(self.events[topic] for topic in topics)
        ]


class Pushdown:
    """The rows and columns that the operators of a graph need of each topic of readings."""

    def __init__(self, operators: Mapping[OperatorId, Operator]) -> None:
        self.operators = operators
        self.consumers: dict[str, list[Consumer]] = {}
        for id, operator in operators.items():
            for topic in operator.topics:
                self.consumers.setdefault(topic, []).append(Consumer(id, operator))

    @cached_property
    def decisive_columns(self) -> dict[str, frozenset[str]]:
        """The columns of each topic that determine whether a row is relevant.

        Other columns are read afterwards.
        """
        return {
            topic: frozenset().union(*(operator.decisive_columns[topic] for _, operator in consumers))
            for topic, consumers in self.consumers.items()
        }

    @cached_property
    def compacts(self) -> bool:
        """Whether every operator over readings needs fewer rows of a closed part than of other parts."""
        return all(operator.compacts for operator in self.operators.values() if not operator.upstream_topics)

    def relevance(self, topic: str, batch: pa.RecordBatch, coverage: Coverage) -> list[Relevance]:
        """Return the relevance of a batch for each consumer of its topic. Adds its events to ``coverage``."""
        coverage.events[topic] += len(batch)
        found = []
        for _, operator in self.consumers[topic]:
            relevance = operator.machine.relevance(topic, batch)
            outside = relevance.outside
            if operator.missing_rows is not None:
                missing = [lacks.sum() for lacks in operator.missing_rows(batch)]
                outside = outside + np.array(missing, np.int64)
            for names, count in zip(operator.names, outside.tolist(), strict=True):
                coverage.outside.update(dict.fromkeys(names, count) if count else {})
            if len(operator.topics) > 1:  # events of other topics lie between: no part is closed
                relevance = Relevance(relevance.satisfies, relevance.outside)
            found.append(relevance)
        return found


def satisfying(relevances: Sequence[Relevance]) -> Mask:
    """Return the rows that an operator needs of any part of a history."""
    found: Mask = np.logical_or.reduce([relevance.satisfies for relevance in relevances])
    return found


def deciding(relevances: Sequence[Relevance]) -> Mask:
    """Return the rows that are sufficient for all operators if the part is closed."""
    found: Mask = np.logical_or.reduce([relevance.decides for relevance in relevances])
    return found
