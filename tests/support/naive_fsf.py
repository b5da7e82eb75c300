"""The meaning of correlation subscriptions, and the traffic of each approach, by trying everything.

There is no time here: the events that cross a link are a set, made from the sets of the links before it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from holdfast.model.correlation import Correlation, RangeFilter, Simple
from holdfast.model.space import Circle, Rectangle, Region, contains

# --- meaning -------------------------------------------------------------------------------------


def satisfies(event, one, region=None):
    """Whether a simple event matches a filter over sensors in a region."""
    return (
        event.attribute == one.attribute
        and one.sensor in (None, event.sensor)
        and one.low <= event.value <= one.high
        and (region is None or event.sensor in region.sources or _inside(region.shape, event.at))
    )


def _inside(shape, at):
    return shape is not None and contains(shape, at)


def agree(members, within, near):
    """Whether events lie close enough together in time and space, strictly."""
    times = [event.time for event in members]
    return max(times) - min(times) < within and (
        near == math.inf
        or len(members) == 1
        or all(math.dist(a.at, b.at) < near for a in members for b in members)
    )


def participants(wanted, events):
    """The events that are members of a complex event."""
    candidates = [[e for e in events if satisfies(e, one, wanted.region)] for one in wanted.filters]
    return {
        event
        for members in product(*candidates)
        if agree(members, wanted.within, wanted.near)
        for event in members
    }


def binary_joins(wanted, events):
    """The events of binary joins: each with one of the next filter, in the order of the attributes."""
    filters = sorted(wanted.filters, key=lambda one: (one.attribute, one.sensor or ""))
    return {
        main
        for one, following in zip(filters, filters[1:] + filters[:1], strict=True)
        for main, other in product(events, events)
        if satisfies(main, one, wanted.region)
        and satisfies(other, following, wanted.region)
        and agree((main, other), wanted.within, wanted.near)
    }


def matching(wanted, events):
    """The events that satisfy one of the filters."""
    return {e for e in events for one in wanted.filters if satisfies(e, one, wanted.region)}


# --- covering, for bounds that are whole numbers -------------------------------------------------


def points(wanted):
    """The places in a box that can differ: whole numbers, and what lies between two."""
    return product(*(_steps(one.low, one.high) for one in wanted.filters))


def _steps(low, high):
    return [low + i / 2 for i in range(round(2 * (high - low)) + 1)]


def holds(wanted, point):
    return all(one.low <= value <= one.high for one, value in zip(wanted.filters, point, strict=True))


def is_covered_by_all(wanted, others):
    return all(any(holds(other, point) for other in others) for point in points(wanted))


def is_covered_by_one(wanted, others):
    return any(all(holds(other, point) for point in points(wanted)) for other in others)


# --- traffic -------------------------------------------------------------------------------------

FILTERING = {
    "naive": lambda wanted, others: False,
    "operator-placement": is_covered_by_one,
    "multi-join": is_covered_by_one,
    "multi-join-named": is_covered_by_one,
    "multi-join-again": is_covered_by_one,
    "fsf-exact": is_covered_by_all,
}


class Traffic:
    """The traffic of the approaches except the centralized one, for identified subscriptions."""

    def __init__(self, world, approach):
        self.near = {}
        for a, b in world.links:
            self.near.setdefault(a, []).append(b)
            self.near.setdefault(b, []).append(a)
        self.approach, self.sensors, self.events = approach, world.homes, world.events
        self.sent = {}
        for name, (node, wanted) in world.subscriptions.items():
            self._ask(node, None, name, wanted)
        self.subscriptions = Counter({link: len(asked) for link, asked in self.sent.items() if asked})
        self.publications = Counter()
        for node, other in ((b, a) for a, b in self.sent):
            size = self._size(node, other)
            if size:
                self.publications[node, other] = size
        self.delivered = {
            name: self._wanted(node, None, name, wanted)
            for name, (node, wanted) in world.subscriptions.items()
        }

    def behind(self, link, node):
        """The sensors on the far side of the link from a node."""
        return {s for s, home in self.sensors.items() if home == link} | {
            s for other in self.near[link] if other != node for s in self.behind(other, link)
        }

    def _ask(self, node, origin, name, wanted):
        for link in self.near[node]:
            if link == origin:
                continue
            behind = self.behind(link, node)
            chosen = tuple(one for one in wanted.filters if one.sensor in behind)
            apart = self.approach.startswith("multi-join") and len(chosen) < len(wanted.filters)
            for filters in [(one,) for one in chosen] if apart else [chosen] if chosen else []:
                part = Correlation(filters, wanted.within)
                sent = self.sent.setdefault((node, link), [])
                same = [other for _, other in sent if _keys(other) == _keys(part)]
                if not FILTERING[self.approach](part, same):
                    sent.append((name, part))
                    self._ask(link, node, name, part)

    def _arriving(self, node, origin):
        """The events that come to a node from elsewhere than over one link."""
        own = {e for e in self.events if self.sensors[e.sensor] == node}
        return own.union(*(self._passed(other, node) for other in self.near[node] if other != origin))

    def _passed(self, node, to):
        return set().union(*(self._wanted(node, to, *part) for part in self.sent.get((to, node), ())))

    def _size(self, node, to):
        if self.approach in ("naive", "operator-placement"):
            return sum(len(self._wanted(node, to, *part)) for part in self.sent[to, node])
        return len(self._passed(node, to))

    def _wanted(self, node, origin, name, wanted):
        arriving = self._arriving(node, origin)
        if not self.approach.startswith("multi-join"):
            return participants(wanted, arriving)
        if self.approach == "multi-join-again" and len(wanted.filters) > 1:
            return binary_joins(wanted, arriving)
        if self.approach == "multi-join-named":
            for link in self.near[node]:
                if link != origin and (name, wanted) in self.sent.get((node, link), ()):
                    return self._wanted(link, node, name, wanted)
            return (binary_joins if len(wanted.filters) > 1 else matching)(wanted, arriving)
        ways = {
            link
            for link in self.near[node]
            if link != origin and any(one.sensor in self.behind(link, node) for one in wanted.filters)
        }
        here = any(self.sensors[one.sensor] == node for one in wanted.filters)
        compared = len(wanted.filters) > 1 and (here or len(ways) > 1)
        return binary_joins(wanted, arriving) if compared else matching(wanted, arriving)


def _keys(wanted):
    return tuple(one.sensor for one in wanted.filters)


# --- worlds by chance ----------------------------------------------------------------------------

ATTRIBUTES = ("a", "b", "c")
PLACES = [(float(x), float(y)) for x in range(3) for y in range(2)]
REGIONS = [
    Region("left", Rectangle((0.0, 0.0), (1.0, 1.0))),
    Region("right", Rectangle((1.0, 0.0), (2.0, 1.0))),
    Region("all", Rectangle((0.0, 0.0), (2.0, 1.0))),
    Region("disc", Circle((1.0, 0.0), 1.0)),
    Region("named", sources=("s0", "s1", "s2")),
]


@dataclass(frozen=True)
class FsfScenario:
    """Links; sensors with their node, attribute and place; subscriptions with their node; events."""

    links: list
    sensors: dict
    subscriptions: dict
    events: list

    @property
    def homes(self):
        return {name: node for name, (node, _, _) in self.sensors.items()}


def world(seed, nodes, sensors, subscriptions, events, *, identified=None, within=None, start=0):
    """A world of some size.  Most ranges are wide, so that events match and boxes cover; most sensors are
    at one node, and most users, so that operators travel together."""
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(nodes)]
    users, homes = [*names, *[names[0]] * nodes], [*names, *[names[-1]] * 2 * nodes]
    known = {
        f"s{i}": (chance.choice(homes), ATTRIBUTES[i % 3], chance.choice(PLACES)) for i in range(sensors)
    }
    chosen = [chance.sample(sorted(known), chance.choice([1, 2, 2, 3])) for _ in range(2)]
    asked = {}
    for number in range(subscriptions):
        some = chance.choice(chosen) if chance.random() < 0.9 else chance.sample(sorted(known), 2)
        by_sensor = chance.random() < 0.4 if identified is None else identified
        make = _identify if by_sensor else _abstract
        asked[f"q{number}"] = chance.choice(users), make(chance, known, some, within)
    return FsfScenario(
        [(chance.choice(names[:i]), names[i]) for i in range(1, nodes)],
        known,
        asked,
        [_reading(chance, known, time, number) for number, time in enumerate(_times(chance, events, start))],
    )


def _range(chance, attribute, sensor=None):
    return RangeFilter(attribute, chance.choice([0, 0, 0, 1, 2]), chance.choice([2, 3, 4, 4, 4]), sensor)


def _identify(chance, known, some, within):
    chosen = sorted((known[name][1], name) for name in some)
    filters = tuple(_range(chance, attribute, name) for attribute, name in chosen)
    return Correlation(filters, within or chance.choice([2, 4, 6, 6]))


def _abstract(chance, known, some, within):
    return Correlation(
        tuple(_range(chance, attribute) for attribute in sorted({known[name][1] for name in some})),
        within or chance.choice([2, 4, 6, 6]),
        chance.choice([math.inf, math.inf, math.inf, 2.5, 1.5]),
        chance.choice([*[None] * 5, *REGIONS]),
    )


def _times(chance, count, start):
    return sorted(start + chance.randint(0, 12) for _ in range(count))


def _reading(chance, known, time, number):
    name = chance.choice(sorted(known))
    _, attribute, at = known[name]
    return Simple(attribute, name, time, chance.randint(0, 8) / 2, at, number)


def scenarios(**options):
    """Worlds of all sizes that can be tried out."""
    sizes = st.integers(2, 4), st.integers(3, 5), st.integers(1, 10), st.integers(0, 18)
    return st.builds(lambda seed, *size: world(seed, *size, **options), st.integers(0, 2**32), *sizes)
