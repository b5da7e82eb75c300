"""What one world told beside another: which alarms it lost, shifted, doubled or made up, and how late it was.

An alarm is a stretch during which a condition held, in the world that knows everything; the other world told
the same if a stretch of its own begins with the same reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..model.event import Notification
from ..model.instant import NEVER, Duration, Instant

Heard = tuple[Instant, Notification]
"""What was told, and when it came."""
Place = tuple[str, str | None]
"""A subscription and a scope."""
Fate = Literal["told", "shifted", "merged", "lost"]
"""``shifted`` began with another reading, ``merged`` into one that was told before: its own start was not."""


class Stretch(NamedTuple):
    """From when to when a condition held, by the readings; and when its start and its end were told."""

    start: Instant
    end: Instant | None
    told: Instant
    ended: Instant | None

    @property
    def until(self) -> Instant:
        """When it is over; an open one never is."""
        return NEVER if self.end is None else max(self.start, self.end)

    def meets(self, other: Stretch) -> bool:
        """Whether the two have something in common: more than a moment, or the moment that one of them is."""
        if self.start == self.until or other.start == other.until:
            return self.start <= other.until and other.start <= self.until
        return self.start < other.until and other.start < self.until


def stretches(heard: Iterable[Heard]) -> dict[Place, list[Stretch]]:
    """The stretches that were told of, by subscription and scope, in the order of their starts."""
    found: dict[Place, list[Stretch]] = {}
    open_: dict[Place, Stretch] = {}
    for came, said in heard:
        place, time = (said.subscription, said.scope), said.event.time
        match said.status:
            case "ingress":
                open_.setdefault(place, Stretch(time, None, came, None))
            case "egress" if place in open_:
                found.setdefault(place, []).append(open_.pop(place)._replace(end=time, ended=came))
            case "atomic":
                found.setdefault(place, []).append(Stretch(time, time, came, came))
    for place, stretch in open_.items():
        found.setdefault(place, []).append(stretch)
    return {place: sorted(some, key=lambda each: each.start) for place, some in found.items()}


class Alarm(NamedTuple):
    """An alarm of the ideal, and what became of it elsewhere."""

    subscription: str
    scope: str | None
    start: Instant
    end: Instant | None
    fate: Fate
    delay: Duration | None
    """From its start until somebody knew."""
    doubled: int
    """How often its start was told again, after an end that was none."""
    end_delay: Duration | None
    """From its end until somebody knew; missing too if nobody was told."""
    unended: bool
    """Whether its start was told and its end never."""


@dataclass(frozen=True)
class Difference:
    """All alarms of the ideal, and what was told that is none of them."""

    alarms: list[Alarm]
    false: dict[Place, list[Stretch]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many alarms there were, and what became of them.

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
        """Of the starts that were told."""
        return sorted(alarm.delay for alarm in self.alarms if alarm.delay is not None)


def difference(ideal: Iterable[Heard], other: Iterable[Heard], until: Instant = NEVER) -> Difference:
    """What the other world made of the alarms of the ideal; what began after ``until`` does not count."""
    ours, theirs = stretches(ideal), stretches(other)
    alarms: list[Alarm] = []
    false: dict[Place, list[Stretch]] = {}
    for place in ours.keys() | theirs.keys():
        told = [each for each in theirs.get(place, ()) if each.start <= until]
        met = _met(ours.get(place, ()), told)
        alarms += (_alarm(place, alarm, *some) for alarm, some in zip(ours.get(place, ()), met, strict=True))
        known = {id(each) for some, _ in met for each in some}
        if made_up := [each for each in told if id(each) not in known]:
            false[place] = made_up
    return Difference(sorted(alarms, key=lambda each: (each.start, each[0], each[1] or "")), false)


def _met(ours: Sequence[Stretch], theirs: Sequence[Stretch]) -> list[tuple[list[Stretch], list[Stretch]]]:
    """For each alarm the stretches that meet it, and those of them that are its own: the one that begins with
    it, and whatever is nobody's yet."""
    left: dict[Instant, list[int]] = {}
    for i, each in enumerate(theirs):
        left.setdefault(each.start, []).append(i)
    same = [left[alarm.start].pop(0) if left.get(alarm.start) else None for alarm in ours]
    taken, found = {i for i in same if i is not None}, []
    for alarm, mine in zip(ours, same, strict=True):
        met = [i for i, each in enumerate(theirs) if i == mine or each.meets(alarm)]
        new = [i for i in met if i == mine or i not in taken]
        taken.update(new)
        found.append(([theirs[i] for i in met], [theirs[i] for i in new]))
    return found


def _alarm(place: Place, alarm: Stretch, met: Sequence[Stretch], new: Sequence[Stretch]) -> Alarm:
    same = any(each.start == alarm.start for each in new)
    fate: Fate = "told" if same else "shifted" if new else "merged" if met else "lost"
    last = (new or met or (None,))[-1]
    ended = None if last is None or alarm.end is None or last.ended is None else last.ended - alarm.end
    return Alarm(
        *place,
        alarm.start,
        alarm.end,
        fate,
        max(0, new[0].told - alarm.start) if new else None,
        max(0, len(new) - 1),
        None if ended is None else max(0, ended),
        alarm.end is not None and last is not None and last.end is None,
    )


def between(dear: Mapping[str, float], cheap: Mapping[str, float]) -> dict[str, float]:
    """What the cheaper of two ways saves, and what is lost for it: joules, alarms, and alarms for a joule.

    >>> between({"joules": 5.0, "missed": 1}, {"joules": 3.0, "missed": 2})
    {'saved': 2.0, 'missed': 1, 'missed_per_joule': 0.5}
    """
    saved, missed = dear["joules"] - cheap["joules"], cheap["missed"] - dear["missed"]
    return {"saved": saved, "missed": missed, "missed_per_joule": missed / saved if saved else 0.0}
