"""Pushdown: which columns and rows of a topic a definition needs, decided once for all readers.

A reader of files, an executor on Spark, a data frame or a publisher asks a `Pushdown` what it must keep. Each
predicate is evaluated once on a batch; see `Relevance` for the two answers.
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
    """An operator that consumes a topic."""

    id: OperatorId
    operator: Operator


@dataclass
class Coverage:
    """The number of events of each topic, and for each condition the number of them outside its scopes or
    without a row in its tables.
    """

    events: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    def add(self, other: Coverage) -> None:
        """Add what another reader counted."""
        self.events.update(other.events)
        self.outside.update(other.outside)

    def out_of_scope(self, operators: Iterable[Operator]) -> list[str]:
        """The conditions for which every event of their topics lay outside."""
        return [
            name
            for operator in operators
            for name, topics in operator.topics_by_name().items()
            if 0 < self.outside[name] == sum(self.events[topic] for topic in topics)
        ]


class Pushdown:
    """What the operators of a graph need of the readings of each topic."""

    def __init__(self, operators: Mapping[OperatorId, Operator]) -> None:
        self.operators = operators
        self.consumers: dict[str, list[Consumer]] = {}
        for id, operator in operators.items():
            for topic in operator.topics:
                self.consumers.setdefault(topic, []).append(Consumer(id, operator))

    @cached_property
    def decisive_columns(self) -> dict[str, frozenset[str]]:
        """The columns of each topic that decide whether a row is relevant; the others are read afterwards."""
        return {
            topic: frozenset().union(*(operator.decisive_columns[topic] for _, operator in consumers))
            for topic, consumers in self.consumers.items()
        }

    @cached_property
    def compacts(self) -> bool:
        """Whether every operator over readings needs fewer rows of a closed part than of any other."""
        return all(operator.compacts for operator in self.operators.values() if not operator.upstream_topics)

    def relevance(self, topic: str, batch: pa.RecordBatch, coverage: Coverage) -> list[Relevance]:
        """The relevance of a batch for each consumer of its topic; counts what lies in no scope."""
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
    """The rows that must be kept of any part of a history, because an operator needs them."""
    found: Mask = np.logical_or.reduce([relevance.satisfies for relevance in relevances])
    return found


def deciding(relevances: Sequence[Relevance]) -> Mask:
    """The rows of a closed part that are sufficient for all operators."""
    found: Mask = np.logical_or.reduce([relevance.decides for relevance in relevances])
    return found
