"""Complex events: one simple event for each filter, close enough in time and space. [J2]

The event that *completes* a complex event is its last simple event, by (time, source, sequence, topic).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...model.batch import to_events
from ...model.correlation import Tell
from ...model.event import Event
from ...model.instant import Duration, Instant, show_instant
from ...model.topic import Topic
from .entries import Entries, StoredEntries, points, select
from .joint import Joint, Slot

Order = tuple[Instant, str, int, str]
Spot = tuple[float, ...]


class MatchedMember(NamedTuple):
    """An event that matches a filter. ``fresh`` is true until the first search that includes the event."""

    order: Order
    event: Event
    value: float
    at: Spot
    fresh: bool

    @property
    def time(self) -> Instant:
        return self.order[0]


Members = tuple[MatchedMember, ...]


def complex_events(
    tell: Tell,
    candidates: Sequence[Sequence[MatchedMember]],
    within: Duration,
    near: float,
    completed: set[Order],
) -> Iterator[Members]:
    """Yield the complex events with at least one fresh member. The ``candidates`` of each filter are sorted.

    Several complex events may be completed by the same event. Of these, ``latest`` selects the one with the
    latest event for the first filter, then for the second, and so on; ``first`` selects the one with the
    earliest. An event in ``completed`` has already completed a complex event and is skipped. New events are
    added to ``completed``.
    """
    orders = [[member.order for member in candidate] for candidate in candidates]
    for last in sorted({order for orders_of_slot in orders for order in orders_of_slot}):
        if tell != "all" and last in completed:
            continue
        windows = [
            candidate[bisect_right(order, (last[0] - within, chr(0x10FFFF))) : bisect_right(order, last)]
            for candidate, order in zip(candidates, orders, strict=True)
        ]
        if not all(windows) or not any(member.fresh for window in windows for member in window):
            continue
        choices = _choices(windows if tell != "latest" else [window[::-1] for window in windows], last, near)
        if tell == "all":
            yield from (members for members in choices if any(member.fresh for member in members))
        elif (chosen := next(choices, None)) is not None:
            completed.add(last)
            yield chosen


def _choices(
    windows: Sequence[Sequence[MatchedMember]], last: Order, near: float, chosen: Members = ()
) -> Iterator[Members]:
    """Yield every choice of one member per filter that includes the last event and respects the distance."""
    if not windows:
        yield chosen
        return
    candidates_of_slot, *others = windows
    free = any(member.order == last for member in chain(chosen, *others))
    for member in candidates_of_slot:
        if (free or member.order == last) and all(distance(member.at, one.at) < near for one in chosen):
            yield from _choices(others, last, near, (*chosen, member))


def distance(p: Spot, q: Spot) -> float:
    """Return the Euclidean distance of two points, in the unit of the coordinates."""
    return math.sqrt(sum((a - b) * (a - b) for a, b in zip(p, q, strict=True)))


def complex_event(topic: str, labels: Sequence[str], members: Members) -> Event:
    """Return the event that represents a combination.

    Its attributes are the value, source and time of each member. Its place and source are those of the member
    that completes it. Its sequence number is a digest of its members, so that every runtime computes the same
    number.
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


def combine(
    stored: Mapping[str, StoredEntries],
    found: Mapping[str, Entries],
    joint: Joint,
    number: int,
    slots: Sequence[Slot],
    topics: Mapping[str, Topic],
    within: Duration,
) -> Iterator[Event]:
    """Yield the complex events of one correlation that are new since the last search.

    The events that complete them are marked as emitted in ``stored``.
    """
    bit = np.uint64(1 << number)
    candidates: list[list[MatchedMember]] = [[] for _ in joint.slots]
    rows: dict[Order, tuple[StoredEntries, int]] = {}
    for name, entries in found.items():
        own_entries = select(entries, (entries.words & bit) != 0)
        for slot, row, member in _members(topics[name], slots, stored[name], own_entries):
            candidates[joint.slots.index(slot)].append(member)
            rows[member.order] = stored[name], row
    for candidate in candidates:
        candidate.sort(key=lambda member: member.order)
    completed = {order for order, (one, row) in rows.items() if one.emitted[row] & bit}
    for members in complex_events(joint.tell, candidates, within, joint.near, completed):
        yield complex_event(joint.topic, joint.labels, members)
    for order in completed:
        one, row = rows[order]
        one.emitted[row] |= bit


def _members(
    topic: Topic, slots: Sequence[Slot], stored: StoredEntries, entries: Entries
) -> Iterator[tuple[int, int, MatchedMember]]:
    """Yield the slots, rows and events of entries."""
    rows = np.unique(entries.rows)
    batch = stored.events.take(pa.array(rows))
    events, spots = list(to_events(topic, batch)), points(batch).tolist()
    at = np.searchsorted(rows, entries.rows)
    for i, row, slot in zip(at.tolist(), entries.rows.tolist(), entries.slots.tolist(), strict=True):
        event = events[i]
        value = event.attributes[slots[slot].attribute]
        assert isinstance(value, (int, float))
        order = (*event.order, topic.name)
        yield slot, row, MatchedMember(order, event, float(value), tuple(spots[i]), bool(stored.fresh[row]))
