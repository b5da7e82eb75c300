"""Corrections: the notifications that remain after all retractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from holdfast.model.qos import Correct, Delivery

MADE_GOOD = {"retracted": "ingress", "reopened": "egress"}
"""What each status takes back."""

deliveries = st.builds(Delivery, st.integers(0, 3), st.builds(Correct, st.integers(1, 12)))


def standing(rows: Iterable[tuple[Any, ...]], status: int) -> list[tuple[Any, ...]]:
    """The rows that remain after retractions, each with its count; ``status`` is the position of the status.

    A negative count is a retraction of a row that was never there.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        output = MADE_GOOD.get(row[status], row[status])
        counts[(*row[:status], output, *row[status + 1 :])] += -1 if row[status] in MADE_GOOD else 1
    return sorted(((*row, count) for row, count in counts.items() if count), key=repr)


def as_rows(_definition, _events, emitted):
    """The notifications that remain after all corrections."""
    rows = [(n.subscription, n.scope, n.status, n.since, n.event.order) for n in emitted]
    return standing(rows, 2)


def at_last(twin):
    """The result of a twin for the whole history in order."""
    return lambda definition, events: standing(twin(definition, events), 2)
