"""From days back to what has to change: wider bands, fewer readings, filters elsewhere, another protocol.

A plan is judged by what it loses of the detection: the stretches of the history in which a state held, as it
is defined and with every reading, are what ought to be told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....compilers.advise.judge import Grid, Known, Trial, as_it_stands, judged, labelled
from ....compilers.advise.rows import Measure, Rows, Stretch, gathered
from ....compilers.keys import shown
from ....errors import UsageError
from ....kernels.vary import DELAY, HOLDING, REACHED, SHARED
from ....lang.tune import Threshold, Tunable, tunable
from ....model.batch import from_events
from ....model.event import Event
from ....model.instant import SECOND
from ..conditions import Definition
from .outlook import A_DAY, Outlook
from .rates import Kind, Rates
from .ways import Way

THINNED = (1, 2, 3, 5, 10, 20, 30, 60)
"""Every so many readings of a source one is taken."""
WIDER = (1.0, 1.5, 2.0, 3.0, 4.0)
"""So many times as wide is a band: its exit is farther from its entrance."""


Band = tuple[float | None, float | None]
"""Entrance and exit."""


@dataclass(frozen=True)
class Detection:
    """What is told of the stretches in which a state held."""

    known: int
    met: int
    late: float
    """Seconds until it is known, on average; of what is not told, as long as it lasts."""
    excess: float
    """Seconds for which it is told to hold though it does not, for each stretch."""

    @property
    def share(self) -> float:
        return self.met / self.known if self.known else 1.0


@dataclass(frozen=True)
class Plan:
    """What is changed, how long the network lasts then, and what is lost."""

    way: str
    every: int
    wider: float
    bands: Mapping[str, Band]
    """Of each state that has one."""
    days: float
    node: int
    joules: float
    """Of all nodes, a day."""
    detection: Mapping[str, Detection]

    @property
    def loss(self) -> tuple[float, float]:
        """The less the better: what is not told at all, then for how long what is told is wrong."""
        some = self.detection.values()
        known = sum(each.known for each in some) or 1
        wrong = sum((each.late + each.excess) * each.known for each in some) / known
        return 1 - sum(each.met for each in some) / known, wrong

    @property
    def changes(self) -> tuple[int, float]:
        return self.every, self.wider


class Budget:
    """All plans for the ways of a network and a history."""

    def __init__(self, ways: Sequence[Way], rates: Rates, definition: Definition) -> None:
        self._ways = [way for way in ways if way.outlook is not None]
        self._rates = rates
        self._bands = dict(_tunable(definition, rates.subscriptions))
        self._known = {name: _stretches(found, rates.events) for name, found in self._bands.items()}

    def plans(self) -> Iterator[Plan]:
        """Every way with every rate and every band."""
        for every in THINNED:
            events = _thinned(self._rates.events, every)
            if len({event.time for event in events}) < 2:
                return
            trials = {name: _Tried(found, events, self._known[name]) for name, found in self._bands.items()}
            for wider in WIDER if trials else (1.0,):
                found = {name: tried.found(wider) for name, tried in trials.items()}
                for way in self._ways:
                    assert way.outlook is not None
                    yield _plan(way, way.outlook, every, wider, found)


def fitting(plans: Sequence[Plan], days: float) -> list[Plan]:
    """Those that last, for each way the best: what loses least, then changes least, then lasts longest."""
    lasting = [one for one in plans if one.days >= days]
    lasting.sort(key=lambda one: (one.loss, one.changes, -one.days))
    best: dict[str, Plan] = {}
    for one in lasting:
        best.setdefault(one.way, one)
    return list(best.values())


def _plan(way: Way, outlook: Outlook, every: int, wider: float, found: Mapping[str, Found]) -> Plan:
    a_day = _rates(outlook.rates, every, {name: one.turns for name, one in found.items()})
    lasts = outlook.days(a_day)
    if lasts is None:
        raise UsageError("no battery of this network ends: say with energy.battery what a node has")
    return Plan(
        way.name,
        every,
        wider,
        {name: one.band for name, one in found.items()},
        *lasts,
        float(outlook.joules(a_day).sum()),
        {name: _over(outlook, name, one.detection) for name, one in found.items()},
    )


def _over(outlook: Outlook, name: str, told: Detection) -> Detection:
    """What a network adds: it takes time, and loses some."""
    arrival = outlook.delay(name)
    if arrival is None:
        return told
    seconds, chance = arrival
    return replace(told, met=round(told.met * chance), late=told.late + seconds)


def _rates(rates: Rates, every: int, turns: Mapping[str, Counter[str]]) -> dict[Kind, float]:
    """How often a day each kind of reading comes then: turns as counted, the rest in proportion."""
    share = _shares(rates, turns)
    found: dict[Kind, float] = {}
    for kind in rates.counts:
        turned = [name for name in turns if kind.sort[rates.subscriptions.index(name)][0]]
        shares = [share(name, kind.source) for name in turned]
        kept = max(shares) if turned else 1 / every
        found[kind] = rates.a_day(kind) * min(kept, 1.0)
    quiet: dict[str, float] = defaultdict(float)
    missing: dict[str, float] = defaultdict(float)
    for kind in rates.counts:
        missing[kind.source] += rates.a_day(kind) / every - found[kind]
        if not any(turned for turned, _ in kind.sort):
            quiet[kind.source] += found[kind]
    for kind in rates.counts:
        if not any(turned for turned, _ in kind.sort) and quiet[kind.source]:
            found[kind] *= max(0.0, 1 + missing[kind.source] / quiet[kind.source])
    return found


def _shares(rates: Rates, turns: Mapping[str, Counter[str]]) -> Callable[[str, str], float]:
    """Of a state's turns by a source now, how many it makes then; where scopes are no sources, as of all."""
    now: dict[str, Counter[str]] = {name: Counter() for name in turns}
    for kind, count in rates.counts.items():
        for name in turns:
            if kind.sort[rates.subscriptions.index(name)][0]:
                now[name][kind.source] += count
    sources = {kind.source for kind in rates.counts}

    def share(name: str, source: str) -> float:
        if turns[name].keys() <= sources:
            return turns[name][source] / now[name][source]
        return turns[name].total() / now[name].total()

    return share


# Bands.


def _tunable(definition: Definition, names: Sequence[str]) -> Iterator[tuple[str, Tunable]]:
    for name in names:
        try:
            yield name, tunable(definition.checked, name)
        except UsageError:
            continue  # it has no band, so it stays as it is


def _rows(found: Tunable, events: Sequence[Event]) -> Rows:
    topic = found.condition.topic
    mine = [event for event in events if event.topic == topic.name]
    return gathered([Measure(found)(from_events(topic, mine))])


def _stretches(found: Tunable, events: Sequence[Event]) -> dict[str | None, list[Stretch]]:
    """When the state held, by scope."""
    rows = _rows(found, events)
    return dict(_by_scope(rows, as_it_stands(rows, found, rows.span()[1])))


def _by_scope(rows: Rows, known: Known) -> Iterator[tuple[str | None, list[Stretch]]]:
    for i, key in enumerate(rows.keys.all().to_pylist()):
        some = range(int(known.ends[i]), int(known.ends[i + 1]))
        yield shown(key) if key else None, [(int(known.start[k]), int(known.end[k])) for k in some]


class Found(NamedTuple):
    """What a state does with a band."""

    band: Band
    turns: Counter[str]
    """How often it starts or ends, by scope."""
    detection: Detection


class _Tried:
    """A state with bands of several widths, over readings of which some were left out."""

    def __init__(
        self, found: Tunable, events: Sequence[Event], known: Mapping[str | None, list[Stretch]]
    ) -> None:
        self._found, self._rows = found, _rows(found, events)
        self._until = self._rows.span()[1]
        self._known = labelled(self._rows, known)
        bands = [self.band(wider) for wider in WIDER]
        self._exits = tuple(dict.fromkeys(exit for _, exit in bands))
        grid = Grid((bands[0][0],), self._exits, (found.guard,))
        self._counts = judged(Trial(self._rows, found, self._known, self._until), grid)

    def band(self, wider: float) -> Band:
        """Entrance and exit; the exit moves."""
        enter, exit = self._found.enter, self._found.exit
        if enter is None or exit is None or enter.of != exit.of:
            return (None if enter is None else enter.value), (None if exit is None else exit.value)
        return enter.value, enter.value + (exit.value - enter.value) * wider

    def found(self, wider: float) -> Found:
        return Found(self.band(wider), self._turns(wider), self._detection(wider))

    def _detection(self, wider: float) -> Detection:
        counts = self._counts[0, self._exits.index(self.band(wider)[1]), 0]
        known, length = self._known.count, self._known.length
        late = (int(counts[DELAY]) + length) / known / SECOND if known else 0.0
        excess = (int(counts[HOLDING]) - int(counts[SHARED])) / max(1, known) / SECOND
        return Detection(known, int(counts[REACHED]), late, excess)

    def _turns(self, wider: float) -> Counter[str]:
        enter, exit = self.band(wider)
        moved = replace(
            self._found, enter=_moved(self._found.enter, enter), exit=_moved(self._found.exit, exit)
        )
        some = _by_scope(self._rows, as_it_stands(self._rows, moved, self._until))
        return Counter(
            {str(scope): sum(1 + (end < self._until) for _, end in stretches) for scope, stretches in some}
        )


def _moved(threshold: Threshold | None, value: float | None) -> Threshold | None:
    return threshold if threshold is None or value is None else replace(threshold, value=value)


def _thinned(events: Sequence[Event], every: int) -> list[Event]:
    """Of each source every so many readings one."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for event in events:
        if seen[event.source, event.topic] % every == 0:
            kept.append(event)
        seen[event.source, event.topic] += 1
    return kept


def at_rest(outlook: Outlook) -> float | None:
    """Days that a node lasts to which nothing happens: no plan lasts longer."""
    battery = outlook.plan.setup.battery_j
    return None if battery is None else battery / (outlook.rest * A_DAY)
