"""Comparison of the reports of a simulated network with the ideal run.

It finds lost, shifted, repeated and false alarms. An alarm is an interval of a condition in the ideal run, in
which every reading is known. The other run reports the same alarm if an interval of its own starts with the
same reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..model.event import Notification
from ..model.instant import NEVER, Duration, Instant

Report = tuple[Instant, Notification]
"""A notification with the time at which it arrived."""
Place = tuple[str, str | None]
"""A subscription and a scope."""
Fate = Literal["told", "shifted", "merged", "lost"]
"""What became of an alarm: ``shifted`` intervals start with another reading; ``merged`` alarms are part of
an interval that was reported before, without a start of their own."""


class ReportedInterval(NamedTuple):
    """The interval of a condition in event time, with the times at which its ends were reported."""

    start: Instant
    end: Instant | None
    reported: Instant
    ended: Instant | None

    @property
    def until(self) -> Instant:
        """The end of the interval, or ``NEVER`` while it is open."""
        return NEVER if self.end is None else max(self.start, self.end)

    def meets(self, other: ReportedInterval) -> bool:
        """Whether two intervals overlap in more than an instant.

        An interval without length overlaps an interval that contains it.
        """
        if self.start == self.until or other.start == other.until:
            return self.start <= other.until and other.start <= self.until
        return self.start < other.until and other.start < self.until


def pair_reports(reports: Iterable[Report]) -> dict[Place, list[ReportedInterval]]:
    """Return the reported intervals by subscription and scope, in the order of their starts."""
    found: dict[Place, list[ReportedInterval]] = {}
    open_: dict[Place, ReportedInterval] = {}
    for arrived, notification in reports:
        place, time = (notification.subscription, notification.scope), notification.event.time
        match notification.status:
            case "ingress":
                open_.setdefault(place, ReportedInterval(time, None, arrived, None))
            case "egress" if place in open_:
                found.setdefault(place, []).append(open_.pop(place)._replace(end=time, ended=arrived))
            case "atomic":
                found.setdefault(place, []).append(ReportedInterval(time, time, arrived, arrived))
    for place, interval in open_.items():
        found.setdefault(place, []).append(interval)
    return {
        place: sorted(intervals, key=lambda interval: interval.start) for place, intervals in found.items()
    }


class Alarm(NamedTuple):
    """An alarm of the ideal run, and its fate in the other run."""

    subscription: str
    scope: str | None
    start: Instant
    end: Instant | None
    fate: Fate
    delay: Duration | None
    """From the start until it was reported."""
    doubled: int
    """How often the start was reported again, after an end that was none."""
    end_delay: Duration | None
    """From the end until it was reported; missing if it was not."""
    unended: bool
    """Whether the start was reported and the end never."""


@dataclass(frozen=True)
class Difference:
    """All alarms of the ideal run, and the reported intervals that match none of them."""

    alarms: list[Alarm]
    false: dict[Place, list[ReportedInterval]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the number of alarms by fate.

        >>> Difference([]).counts()["alarms"]
        0
        """
        fates = Counter(alarm.fate for alarm in self.alarms)
        return {
            "alarms": len(self.alarms),
            **{fate: fates[fate] for fate in ("told", "shifted", "merged", "lost")},
            "doubled": sum(alarm.doubled for alarm in self.alarms),
            "unended": sum(alarm.unended for alarm in self.alarms),
            "false": sum(map(len, self.false.values())),
        }

    def delays(self) -> list[Duration]:
        """Return the delays of the reported starts in microseconds, sorted."""
        return sorted(alarm.delay for alarm in self.alarms if alarm.delay is not None)


def difference(ideal: Iterable[Report], other: Iterable[Report], until: Instant = NEVER) -> Difference:
    """Compare the reports of two runs. Intervals of the other run that start after ``until`` are ignored."""
    ours, theirs = pair_reports(ideal), pair_reports(other)
    alarms: list[Alarm] = []
    false: dict[Place, list[ReportedInterval]] = {}
    for place in ours.keys() | theirs.keys():
        reported = [interval for interval in theirs.get(place, ()) if interval.start <= until]
        met = _met(ours.get(place, ()), reported)
        alarms += (
            _alarm(place, alarm, *intervals)
            for alarm, intervals in zip(ours.get(place, ()), met, strict=True)
        )
        known = {id(interval) for intervals, _ in met for interval in intervals}
        if made_up := [interval for interval in reported if id(interval) not in known]:
            false[place] = made_up
    return Difference(
        sorted(alarms, key=lambda interval: (interval.start, interval[0], interval[1] or "")), false
    )


def _met(
    ours: Sequence[ReportedInterval], theirs: Sequence[ReportedInterval]
) -> list[tuple[list[ReportedInterval], list[ReportedInterval]]]:
    """Return for each alarm the reported intervals that overlap it, and those that belong to it.

    The interval with the same start belongs to an alarm, and overlapping ones that belong to no earlier
    alarm.
    """
    left: dict[Instant, list[int]] = {}
    for i, interval in enumerate(theirs):
        left.setdefault(interval.start, []).append(i)
    same = [left[alarm.start].pop(0) if left.get(alarm.start) else None for alarm in ours]
    taken, found = {i for i in same if i is not None}, []
    for alarm, mine in zip(ours, same, strict=True):
        met = [i for i, interval in enumerate(theirs) if i == mine or interval.meets(alarm)]
        new = [i for i in met if i == mine or i not in taken]
        taken.update(new)
        found.append(([theirs[i] for i in met], [theirs[i] for i in new]))
    return found


def _alarm(
    place: Place, alarm: ReportedInterval, met: Sequence[ReportedInterval], new: Sequence[ReportedInterval]
) -> Alarm:
    same = any(interval.start == alarm.start for interval in new)
    fate: Fate = "told" if same else "shifted" if new else "merged" if met else "lost"
    last = (new or met or (None,))[-1]
    ended = None if last is None or alarm.end is None or last.ended is None else last.ended - alarm.end
    return Alarm(
        *place,
        alarm.start,
        alarm.end,
        fate,
        max(0, new[0].reported - alarm.start) if new else None,
        max(0, len(new) - 1),
        None if ended is None else max(0, ended),
        alarm.end is not None and last is not None and last.end is None,
    )


def savings(dear: Mapping[str, float], cheap: Mapping[str, float]) -> dict[str, float]:
    """Return what the cheaper of two strategies saves, and what that costs in alarms.

    The saving is in joules. ``missed`` is how many more alarms the cheaper strategy misses.

    >>> savings({"joules": 5.0, "missed": 1}, {"joules": 3.0, "missed": 2})
    {'saved': 2.0, 'missed': 1, 'missed_per_joule': 0.5}
    """
    saved, missed = dear["joules"] - cheap["joules"], cheap["missed"] - dear["missed"]
    return {"saved": saved, "missed": missed, "missed_per_joule": missed / saved if saved else 0.0}
