"""Sources that are silent longer than usual."""

from __future__ import annotations

import pyarrow as pa

from holdfast.model.batch import TIME
from holdfast.model.instant import MINUTE, SECOND
from holdfast.service.sources import SourceActivity


def batch(*rows):
    at, names = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict({"time": pa.array(at, pa.int64()).cast(TIME), "source": list(names)})


def test_a_source_is_silent_after_five_of_its_usual_pauses():
    sources = SourceActivity()
    sources.add("T", batch((0, "once")))
    for i in range(4):
        sources.add("T", batch((i * MINUTE, "slow"), (i * 10 * SECOND, "fast")))
    found = sources.quiet(3 * MINUTE + 50 * SECOND)
    assert {one["source"]: (one["last"], one["silent"]) for one in found["sources"]} == {
        "fast": (30 * SECOND, True),
        "once": (0, False),
        "slow": (3 * MINUTE, False),
    }
    assert (found["silent"], found["total"], found["sources"][0]["source"]) == (1, 3, "fast")
    assert sources.quiet(10 * MINUTE)["silent"] == 2


def test_sources_are_found_by_name():
    sources = SourceActivity()
    sources.add("T", batch((1, "room-1"), (2, "room-2"), (3, "hall")))
    assert [one["source"] for one in sources.quiet(10, "ROOM", 1)["sources"]] == ["room-1"]
    assert sources.quiet(10, "ROOM", 1)["total"] == 2
