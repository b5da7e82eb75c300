"""SQL tests for the relevant events of correlations. Spark uses them to drop other rows while it reads
files."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...lang.expressions.sql import Naming, literal, number, quote_name
from ...lang.ops import Name
from ...model.correlation import RangeFilter
from ...model.topic import Topic
from .condition import CorrelationCondition


def relevant(
    correlations: Sequence[CorrelationCondition], topic: Topic, named: Naming = quote_name
) -> list[str]:
    """Return the ranges of correlations over a topic as SQL tests. Locations are not tested."""
    return [
        _within(filter, number(Name(attribute), topic, named), named("source"))
        for condition in correlations
        for (own, attribute), filter in zip(condition.measured, condition.correlation.filters, strict=True)
        if own == topic
    ]


def _within(filter: RangeFilter, value: str, source: str) -> str:
    """Return one range as an SQL test."""
    tests = [] if filter.low == -math.inf else [f"{value} >= {filter.low!r}D"]
    # in Spark NaN is greater than infinity
    highest = "double('Infinity')" if filter.high == math.inf else f"{filter.high!r}D"
    tests += [f"{value} <= {highest}"]
    tests += [] if filter.sensor is None else [f"{source} = {literal(filter.sensor)}"]
    return f"({' AND '.join(tests)})"
