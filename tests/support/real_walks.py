"""Walks on the campus of KAIST: where people were each half minute."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND

FILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "kaist-walks" / "walks.parquet"
EVERY = 30 * SECOND


def real_walks(names, begin=0, end=None):
    """The readings of several walks as if all had started at one time, in order of time."""
    if not FILE.exists():
        pytest.skip("kaist-walks is not here: it belongs beside the repository, in shared/data")
    ways = {name: _ways()[name] for name in names}
    return [
        Event("User", i * EVERY + number, name, {"east": at[0]}, i, at)
        for i in range(begin, min(map(len, ways.values())) if end is None else end)
        for number, name in enumerate(names)
        for at in [ways[name][i]]
    ]


@cache
def _ways():
    table, ways = pq.read_table(FILE).to_pydict(), {}
    for name, x, y in zip(table["walk"], table["x"], table["y"], strict=True):
        ways.setdefault(name, []).append((x, y))
    return ways
