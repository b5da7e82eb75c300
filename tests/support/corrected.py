"""Corrections: what is left of what was told when all has been taken back that was."""

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
    """Rows that say something, with a status in one of their places, without those that were taken back; less
    than nothing is left of what was told before."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        output = MADE_GOOD.get(row[status], row[status])
        counts[(*row[:status], output, *row[status + 1 :])] += -1 if row[status] in MADE_GOOD else 1
    return sorted(((*row, count) for row, count in counts.items() if count), key=repr)


def as_rows(_definition, _events, emitted):
    """What notifications say, all in all."""
    rows = [(n.subscription, n.scope, n.status, n.since, n.event.order) for n in emitted]
    return standing(rows, 2)


def at_last(twin):
    """What a twin says of the whole history in order."""
    return lambda definition, events: standing(twin(definition, events), 2)
