"""Dry run: run a definition over the stored readings and compare it with the notifications that were sent."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError, UsageError
from ..files.find import find
from ..files.interval import Interval, Pairing
from ..files.reading import Reading
from ..lang.condition import Checked
from ..model.event import left
from ..model.instant import SECOND, Instant, show_instant
from ..plan.advise.judge import FLAP
from ..runtimes.local.replay import Replay
from .log.seal import history
from .store import NotificationRow, ends_condition, starts_condition

MOST = 200_000
"""How many notifications a trial emits at most."""


def overlaps(path: str, start: Instant, end: Instant) -> bool:
    """Whether a file of the log may have readings in a period."""
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(f"{path}: damaged: {error}") from error
    column = table.schema_arrow.get_field_index("time")
    groups = [table.metadata.row_group(i).column(column).statistics for i in range(table.num_row_groups)]
    return any(_instant(g.min) < end and _instant(g.max) >= start for g in groups if g is not None)


def _instant(time_of_day: Any) -> Instant:
    return int(time_of_day.timestamp() * SECOND)


def trial(
    checked: Checked, folder: Path, period: tuple[Instant, Instant], seconds: float = 60.0
) -> list[Interval]:
    """Return the intervals that a definition yields over the stored readings of a period.

    Raises an error if that takes longer than ``seconds``.
    """
    start, end = period
    deadline = time.monotonic() + seconds
    pairing, found = Pairing(), []
    with history(folder) as paths:
        if not (inside := [path for path in paths if overlaps(path, start, end)]):
            return []
        replay = Replay(
            checked, find(inside), Reading(checked.topics), progress=lambda _: _require_time(deadline)
        )
        for count, notification in enumerate(replay):
            _require_time(deadline)
            if count >= MOST:
                raise UsageError(
                    f"it would have told more than {MOST:,} times; take a shorter stretch of time"
                )
            found += pairing.pair([notification])
    found += pairing.still_open()
    return [one for one in found if one.start < end and (one.end is None or one.end >= start)]


def _require_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise UsageError("the trial takes too long; take a shorter time")


def intervals(rows: Iterable[NotificationRow], corrected: Collection[str] = ()) -> list[Interval]:
    """Pair starts and ends of conditions, and return their intervals.

    Conditions in ``corrected`` can have several open starts. For other conditions a new start replaces an
    open one.
    """
    starts: dict[tuple[str, str | None], dict[Instant, Instant]] = {}
    found = []
    for one in left(rows):
        key = one.subscription, one.scope
        open_starts = starts.setdefault(key, {})
        if starts_condition(one):
            if one.status == "revised" or one.subscription not in corrected:
                open_starts.clear()
            open_starts[one.time] = one.time if one.since is None else one.since
        elif one.status == "atomic":
            found.append(_interval(key, one.time, one.time))
        elif ends_condition(one):
            which = one.since if one.since in open_starts else next(reversed(open_starts), None)
            start = one.since if which is None else open_starts.pop(which)
            found.append(_interval(key, one.time if start is None else start, one.time))
    return found + [
        _interval(key, at, None) for key, open_starts in starts.items() for at in open_starts.values()
    ]


def _interval(key: tuple[str, str | None], start: Instant, end: Instant | None) -> Interval:
    return Interval(*key, start, end, "", None, None)


def summary(found: Iterable[Interval]) -> dict[str, dict[str, Any]]:
    """Return statistics of the intervals of each subscription.

    They are the number of intervals, their durations, flaps, and how many intervals are open.
    """
    by_name: defaultdict[str, list[Interval]] = defaultdict(list)
    for one in found:
        by_name[one.subscription].append(one)
    return {name: _summary(open_starts) for name, open_starts in sorted(by_name.items())}


def _summary(found: list[Interval]) -> dict[str, Any]:
    ended = [one.duration for one in found if one.duration is not None]
    return {
        "count": len(found),
        "open": sum(one.open for one in found),
        "flaps": sum(_flaps(found).values()),
        "longest": max(ended, default=None),
        "mean": sum(ended) / len(ended) if ended else None,
    }


def _flaps(found: list[Interval]) -> Counter[str | None]:
    flaps: Counter[str | None] = Counter()
    last: dict[str | None, Instant] = {}
    for one in sorted(found, key=lambda i: i.start):
        if one.scope in last and one.start - last[one.scope] < FLAP:
            flaps[one.scope] += 1
        if one.end is not None:
            last[one.scope] = one.end
    return flaps


def differences(then: Iterable[Interval], actual: Iterable[Interval], most: int = 1_000) -> dict[str, Any]:
    """Return the intervals that only one side has, by subscription, scope and start.

    The result has at most ``most`` intervals, and the numbers of all differences by subscription.
    """
    open_starts = {(i.subscription, i.scope, i.start): i for i in then}
    theirs = {(i.subscription, i.scope, i.start): i for i in actual}
    only_then = sorted(open_starts.keys() - theirs.keys(), key=_order)
    only_really = sorted(theirs.keys() - open_starts.keys(), key=_order)
    return {
        "only_then": [to_json(open_starts[key]) for key in only_then[:most]],
        "only_really": [to_json(theirs[key]) for key in only_really[:most]],
        "more": Counter(name for name, _, _ in only_then),
        "fewer": Counter(name for name, _, _ in only_really),
    }


def _order(key: tuple[str, str | None, Instant]) -> tuple[Instant, str, str]:
    return key[2], key[0], key[1] or ""


def to_json(one: Interval) -> dict[str, Any]:
    """Return an interval as JSON data, with times as ISO 8601 text."""
    return {
        "subscription": one.subscription,
        "scope": one.scope,
        "start": show_instant(one.start),
        "end": None if one.end is None else show_instant(one.end),
    }


def bars(found: Iterable[Interval], period: tuple[Instant, Instant], width: int) -> list[Mapping[str, Any]]:
    """Return intervals as bars of a chart ``width`` pixels wide.

    Intervals on one pixel of a row become one bar.
    """
    start, end = period
    pixel = max(1, (end - start) // max(1, width))
    rows: defaultdict[tuple[str, str | None], list[list[int]]] = defaultdict(list)
    for one in sorted(found, key=lambda i: i.start):
        without_retractions = max(one.start, start)
        right = end if one.end is None else min(one.end, end)
        row = rows[one.subscription, one.scope]
        if row and without_retractions - row[-1][1] <= pixel:
            row[-1][1] = max(row[-1][1], right)
            row[-1][2] += 1
        else:
            row.append([without_retractions, right, 1])
    return [
        {"subscription": name, "scope": scope, "bars": row}
        for (name, scope), row in sorted(rows.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]
