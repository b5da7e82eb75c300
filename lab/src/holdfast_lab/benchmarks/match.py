"""Content matching: a million subscriptions, which of them an event satisfies.

All that is measured here runs on one core, and its time is that core's time (``process_time``): other work
on the machine then changes little.  What the clock on the wall says stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.network.protocols.cbps.boxes import Boxes, BoxRanges

from . import Row, measure_time
from .brute import WAYS
from .process import apart, resident

SIZES = (10_000, 100_000, 1_000_000)
ATTRIBUTES = 20
RANGES = 10
WIDTHS = {"about 1 in 10,000 matching": 0.4, "1 % matching": 0.01**0.1}
"""Ten ranges of width w match with probability w^10."""

BATCH = 1000
BRUTE_BATCH = 50  # more would not change its time for each event
ONE_BY_ONE = 50
SINGLY, AT_ONCE = 2_000, 50_000
"""How many are inserted and deleted, one at a time and at once."""

Points = NDArray[np.float64]


def run(progress: Callable[[str], None]) -> list[Row]:
    """Time for each event beside brute force, at growing sizes; then memory, insertions, deletions."""
    rows = [
        row
        for workload, width in WIDTHS.items()
        for size in SIZES
        for row in matching(workload, width, size, progress)
    ]
    return [*rows, *changing(progress), memory(progress)]


def subscriptions(count: int, width: float, seed: int = 1) -> BoxRanges:
    """Ten ranges each, over ten of the twenty attributes by chance, uniform within [0, 1]."""
    random = np.random.default_rng(seed)
    order = np.argsort(random.random((count, ATTRIBUTES), dtype=np.float32), axis=1)
    lows = random.random((count, RANGES)) * (1 - width)
    return BoxRanges.of(order[:, :RANGES], lows, lows + width)


def events(count: int, seed: int = 2) -> Points:
    """All twenty attributes, uniform in [0, 1]."""
    return np.random.default_rng(seed).random((count, ATTRIBUTES))


def matching(workload: str, width: float, size: int, progress: Callable[[str], None]) -> Iterator[Row]:
    """ms for each event, one at a time and in a batch."""
    progress(f"{workload}: {size:,} subscriptions")
    ranges, points = subscriptions(size, width), events(BATCH)
    boxes = Boxes(ATTRIBUTES, ranges)
    brute = {name: way(ranges, ATTRIBUTES) for name, way in WAYS.items()}
    found = boxes.match(points[:BRUTE_BATCH])
    for name, matcher in brute.items():
        progress(f"{workload}: {size:,} subscriptions, brute force by {name}")
        assert same(matcher(points[:BRUTE_BATCH]), found.numbers, found.ends), f"by {name} others match"

    matches = len(boxes.match(points).numbers) / BATCH
    for how, each_of, count, few in (
        ("one at a time", one_by_one, ONE_BY_ONE, ONE_BY_ONE // 5),
        (f"in a batch of {BATCH}", in_a_batch, BATCH, BRUTE_BATCH),
    ):
        ours = each_of(boxes.match, points[:count], time.process_time)
        wall = each_of(boxes.match, points[:count], time.perf_counter)
        peers = {name: each_of(matcher, points[:few], time.process_time) for name, matcher in brute.items()}
        ratio = min(peers.values()) / ours
        is_goal = size == max(SIZES) and each_of is in_a_batch
        yield Row(
            f"{workload}, {size:,} subscriptions, {how}",
            ours * 1e3,
            "ms/event",
            "≤ 1 ms and ≥ 10 × brute force" if is_goal else None,
            ours <= 1e-3 and ratio >= 10 if is_goal else None,
            {
                "matches": matches,
                "times_brute_force": ratio,
                "brute_force_ms": {name: seconds * 1e3 for name, seconds in peers.items()},
                "wall_ms": wall * 1e3,
            },
        )


def same(brute: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> bool:
    """Whether the same boxes were found for every point; those of a point come in any order."""
    owners = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return np.array_equal(brute, numbers[np.lexsort((numbers, owners))])


def one_by_one(match: Callable[[Points], Any], points: Points, clock: Callable[[], float]) -> float:
    """Seconds for each point, alone."""
    return measure_time(lambda: [match(point[None]) for point in points], 3, clock).best / len(points)


def in_a_batch(match: Callable[[Points], Any], points: Points, clock: Callable[[], float]) -> float:
    """Seconds for each point, all together."""
    return measure_time(lambda: match(points), 3, clock).best / len(points)


def changing(progress: Callable[[str], None]) -> Iterator[Row]:
    """How many boxes a second come and go, with a million there."""
    size, width = max(SIZES), min(WIDTHS.values())
    progress(f"insertions and deletions at {size:,}")
    ranges, more = subscriptions(size, width), subscriptions(max(SINGLY, AT_ONCE), width, 3)
    whole = measure_time(lambda: Boxes(ATTRIBUTES, ranges), 1, time.process_time)
    boxes: Boxes = whole.result
    yield Row("subscriptions arranged", size / whole.best, "subscriptions/s", detail={"count": size})
    for how, count, pieces in (("one at a time", SINGLY, SINGLY), (f"{AT_ONCE:,} at once", AT_ONCE, 1)):
        parts = [more.take(part) for part in np.array_split(np.arange(count), pieces)]
        coming = measure_time(partial(_insert, boxes, parts), 1, time.process_time)
        yield Row(f"insertions, {how}", count / coming.best, "subscriptions/s", detail={"count": count})
        going = measure_time(partial(_delete, boxes, coming.result), 1, time.process_time)
        yield Row(f"deletions, {how}", count / going.best, "subscriptions/s", detail={"count": count})


def _insert(boxes: Boxes, parts: list[BoxRanges]) -> list[NDArray[np.int32]]:
    return [boxes.insert(part) for part in parts]


def _delete(boxes: Boxes, parts: list[NDArray[np.int32]]) -> None:
    for part in parts:
        boxes.delete(part)


def memory(progress: Callable[[str], None]) -> Row:
    """Resident memory that a million subscriptions take, measured in a process of its own."""
    size = max(SIZES)
    progress(f"{size:,} subscriptions in memory")
    grown, arrays, given = apart(memory_growth_by_boxes)
    detail = {"count": size, "arrays_mb": arrays / 1e6, "ranges_alone_mb": given / 1e6}
    return Row("a million subscriptions", grown / 1e6, "MB", detail=detail)


def memory_growth_by_boxes() -> tuple[int, int, int]:
    """How much the process grew, the bytes of the index, and of the ranges alone."""
    size, width = max(SIZES), min(WIDTHS.values())
    Boxes(ATTRIBUTES, subscriptions(5000, width)).match(events(1))  # code and kernels
    ranges = subscriptions(size, width)
    before = resident()
    boxes = Boxes(ATTRIBUTES, ranges)
    return resident() - before, boxes.nbytes, sum(column.nbytes for column in ranges)
