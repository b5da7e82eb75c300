"""When would this have fired?  A definition over the stored readings, beside what was really told."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..compilers.advise.judge import FLAP
from ..errors import InputError, UsageError
from ..files.find import find
from ..files.interval import Interval, Pairing
from ..files.reading import Reading
from ..lang.condition import Checked
from ..model.event import left
from ..model.instant import SECOND, Instant, show_instant
from ..runtimes.local.replay import Replay
from .log.seal import history
from .store import Told, begins, ends

MOST = 200_000
"""Notifications that a trial tells at most."""


def overlaps(path: str, start: Instant, end: Instant) -> bool:
    """Whether a file of the log has readings of a stretch of time."""
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(f"{path}: damaged: {error}") from error
    column = table.schema_arrow.get_field_index("time")
    groups = [table.metadata.row_group(i).column(column).statistics for i in range(table.num_row_groups)]
    return any(_instant(g.min) < end and _instant(g.max) >= start for g in groups if g is not None)


def _instant(moment: Any) -> Instant:
    return int(moment.timestamp() * SECOND)


def trial(
    checked: Checked, folder: Path, stretch: tuple[Instant, Instant], seconds: float = 60.0
) -> list[Interval]:
    """The intervals that a definition gives over the stored readings of a stretch of time."""
    start, end = stretch
    deadline = time.monotonic() + seconds
    pairing, found = Pairing(), []
    with history(folder) as paths:
        if not (inside := [path for path in paths if overlaps(path, start, end)]):
            return []
        replay = Replay(
            checked, find(inside), Reading(checked.topics), progress=lambda _: _require_time(deadline)
        )
        for told, one in enumerate(replay):
            _require_time(deadline)
            if told >= MOST:
                raise UsageError(
                    f"it would have told more than {MOST:,} times; take a shorter stretch of time"
                )
            found += pairing.completed([one])
    found += pairing.still_open()
    return [one for one in found if one.start < end and (one.end is None or one.end >= start)]


def _require_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise UsageError("the trial takes too long; take a shorter time")


def intervals(told: Iterable[Told], corrected: Collection[str] = ()) -> list[Interval]:
    """The intervals that were really told, by time.  Of conditions that correct what they have told several
    starts may wait for their ends; elsewhere a new start replaces one that has none."""
    begun: dict[tuple[str, str | None], dict[Instant, Instant]] = {}
    found = []
    for one in left(told):
        key = one.subscription, one.scope
        mine = begun.setdefault(key, {})
        if begins(one):
            if one.status == "revised" or one.subscription not in corrected:
                mine.clear()
            mine[one.time] = one.time if one.since is None else one.since
        elif one.status == "atomic":
            found.append(_interval(key, one.time, one.time))
        elif ends(one):
            which = one.since if one.since in mine else next(reversed(mine), None)
            start = one.since if which is None else mine.pop(which)
            found.append(_interval(key, one.time if start is None else start, one.time))
    return found + [_interval(key, at, None) for key, mine in begun.items() for at in mine.values()]


def _interval(key: tuple[str, str | None], start: Instant, end: Instant | None) -> Interval:
    return Interval(*key, start, end, "", None, None)


def summary(found: Iterable[Interval]) -> dict[str, dict[str, Any]]:
    """Of each subscription: how often, how long, how many flaps, how many still hold."""
    by_name: defaultdict[str, list[Interval]] = defaultdict(list)
    for one in found:
        by_name[one.subscription].append(one)
    return {name: _summary(mine) for name, mine in sorted(by_name.items())}


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


def differences(then: Iterable[Interval], really: Iterable[Interval], most: int = 1_000) -> dict[str, Any]:
    """Intervals that only one side has, by subscription, scope and start, the first of them; and how many
    there are of each subscription."""
    mine = {(i.subscription, i.scope, i.start): i for i in then}
    theirs = {(i.subscription, i.scope, i.start): i for i in really}
    only_then = sorted(mine.keys() - theirs.keys(), key=_order)
    only_really = sorted(theirs.keys() - mine.keys(), key=_order)
    return {
        "only_then": [shown(mine[key]) for key in only_then[:most]],
        "only_really": [shown(theirs[key]) for key in only_really[:most]],
        "more": Counter(name for name, _, _ in only_then),
        "fewer": Counter(name for name, _, _ in only_really),
    }


def _order(key: tuple[str, str | None, Instant]) -> tuple[Instant, str, str]:
    return key[2], key[0], key[1] or ""


def shown(one: Interval) -> dict[str, Any]:
    return {
        "subscription": one.subscription,
        "scope": one.scope,
        "start": show_instant(one.start),
        "end": None if one.end is None else show_instant(one.end),
    }


def bars(found: Iterable[Interval], stretch: tuple[Instant, Instant], width: int) -> list[Mapping[str, Any]]:
    """Intervals for a picture so many pixels wide: what falls on one pixel of a row becomes one bar."""
    start, end = stretch
    pixel = max(1, (end - start) // max(1, width))
    rows: defaultdict[tuple[str, str | None], list[list[int]]] = defaultdict(list)
    for one in sorted(found, key=lambda i: i.start):
        left = max(one.start, start)
        right = end if one.end is None else min(one.end, end)
        row = rows[one.subscription, one.scope]
        if row and left - row[-1][1] <= pixel:
            row[-1][1] = max(row[-1][1], right)
            row[-1][2] += 1
        else:
            row.append([left, right, 1])
    return [
        {"subscription": name, "scope": scope, "bars": row}
        for (name, scope), row in sorted(rows.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]
