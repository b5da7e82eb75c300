"""Complex events: one simple event for each filter, all of them close enough together.  [J2]

The event that *completes* a complex event is its last one, by (time, source, sequence, topic).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...model.batch import to_events
from ...model.correlation import Tell
from ...model.event import Event
from ...model.instant import Duration, Instant, show_instant
from ...model.topic import Topic
from .entries import Entries, Kept, chosen, points
from .joint import Joint, Slot

Order = tuple[Instant, str, int, str]
Spot = tuple[float, ...]


class Member(NamedTuple):
    """An event that matches a filter; ``fresh`` if it was not there at the last look."""

    order: Order
    event: Event
    value: float
    at: Spot
    fresh: bool

    @property
    def time(self) -> Instant:
        return self.order[0]


Members = tuple[Member, ...]


def complex_events(
    tell: Tell, candidates: Sequence[Sequence[Member]], within: Duration, near: float, completed: set[Order]
) -> Iterator[Members]:
    """The complex events of which some member is fresh; ``candidates`` of each filter are in order.

    Of those that one event completes, ``latest`` is the one with the latest event for the first filter,
    then for the second, and so on, ``first`` that with the earliest; an event that has completed one before
    (``completed``) is not looked at again.
    """
    orders = [[member.order for member in mine] for mine in candidates]
    for last in sorted({order for mine in orders for order in mine}):
        if tell != "all" and last in completed:
            continue
        windows = [
            mine[bisect_right(order, (last[0] - within, chr(0x10FFFF))) : bisect_right(order, last)]
            for mine, order in zip(candidates, orders, strict=True)
        ]
        if not all(windows) or not any(member.fresh for mine in windows for member in mine):
            continue
        choices = _choices(windows if tell != "latest" else [mine[::-1] for mine in windows], last, near)
        if tell == "all":
            yield from (members for members in choices if any(member.fresh for member in members))
        elif (chosen := next(choices, None)) is not None:
            completed.add(last)
            yield chosen


def _choices(
    windows: Sequence[Sequence[Member]], last: Order, near: float, chosen: Members = ()
) -> Iterator[Members]:
    """Every choice of one member for each filter, in turn, that has the last event and keeps together."""
    if not windows:
        yield chosen
        return
    mine, *others = windows
    free = any(one.order == last for one in chosen) or any(one.order == last for of in others for one in of)
    for member in mine:
        if (free or member.order == last) and all(distance(member.at, one.at) < near for one in chosen):
            yield from _choices(others, last, near, (*chosen, member))


def distance(p: Spot, q: Spot) -> float:
    """How far apart two points are."""
    return math.sqrt(sum((a - b) * (a - b) for a, b in zip(p, q, strict=True)))


def published(topic: str, labels: Sequence[str], members: Members) -> Event:
    """A complex event: of every member value, source and time; place and source are the completing one's.

    Its sequence is a digest of its members, so that it is the same wherever it is found.
    """
    attributes: dict[str, float | str | None] = {}
    for label, member in zip(labels, members, strict=True):
        attributes |= {
            label: member.value,
            f"{label}_source": member.event.source,
            f"{label}_time": show_instant(member.time),
        }
    raw = msgspec.msgpack.encode([member.order for member in members])
    number = int.from_bytes(blake2b(raw, digest_size=8).digest()) >> 1
    last = max(members, key=lambda member: member.order).event
    return Event(topic, last.time, last.source, attributes, number, last.location, last.place)


def combined(
    kept: Mapping[str, Kept],
    found: Mapping[str, Entries],
    joint: Joint,
    number: int,
    slots: Sequence[Slot],
    topics: Mapping[str, Topic],
    within: Duration,
) -> Iterator[Event]:
    """The complex events of a correlation that have come since the last look; the events that complete
    them are marked as told."""
    bit = np.uint64(1 << number)
    candidates: list[list[Member]] = [[] for _ in joint.slots]
    rows: dict[Order, tuple[Kept, int]] = {}
    for name, entries in found.items():
        mine = chosen(entries, (entries.words & bit) != 0)
        for slot, row, member in _members(topics[name], slots, kept[name], mine):
            candidates[joint.slots.index(slot)].append(member)
            rows[member.order] = kept[name], row
    for some in candidates:
        some.sort(key=lambda member: member.order)
    completed = {order for order, (one, row) in rows.items() if one.told[row] & bit}
    for members in complex_events(joint.tell, candidates, within, joint.near, completed):
        yield published(joint.topic, joint.labels, members)
    for order in completed:
        one, row = rows[order]
        one.told[row] |= bit


def _members(
    topic: Topic, slots: Sequence[Slot], kept: Kept, entries: Entries
) -> Iterator[tuple[int, int, Member]]:
    """The slots, rows and events of entries."""
    rows = np.unique(entries.rows)
    batch = kept.events.take(pa.array(rows))
    events, spots = list(to_events(topic, batch)), points(batch).tolist()
    at = np.searchsorted(rows, entries.rows)
    for i, row, slot in zip(at.tolist(), entries.rows.tolist(), entries.slots.tolist(), strict=True):
        event = events[i]
        value = event.attributes[slots[slot].attribute]
        assert isinstance(value, (int, float))
        order = (*event.order, topic.name)
        yield slot, row, Member(order, event, float(value), tuple(spots[i]), bool(kept.fresh[row]))
