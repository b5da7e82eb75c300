"""Search for the changes that give a network a required lifetime: wider bands, fewer readings, another
strategy.

The search rates a plan by the detection that it loses. The reference is the set of active intervals of each
state, computed from all readings with the original definition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...definition.tune import Threshold, Tunable, tunable
from ...errors import UsageError
from ...kernels.vary import DELAY, HOLDING, REACHED, SHARED
from ...lang.expressions.key_text import readable_key
from ...model.batch import from_events
from ...model.event import Event
from ...model.instant import SECOND
from ...plan.advise.judge import KnownTruth, Trial, VariantGrid, as_it_stands, judge, labels_of
from ...plan.advise.rows import Interval, Measure, MeasuredRows, collect_rows
from ..motes.conditions import ScenarioDefinition
from .forecast import A_DAY, Forecast
from .rates import Rates, ReadingKind
from .strategies import Strategy

EVERY_NTH = (1, 2, 3, 5, 10, 20, 30, 60)
"""The sampling rates to try: a rate of ``n`` uses every n-th reading of each source."""
WIDER = (1.0, 1.5, 2.0, 3.0, 4.0)
"""The factors to try for the width of a band. Only the exit moves, away from the entrance."""


Band = tuple[float | None, float | None]
"""The thresholds of a state's entrance and exit; ``None`` where a state has no such threshold."""


@dataclass(frozen=True)
class Detection:
    """The quality of the detection of a state's active intervals."""

    known: int
    met: int
    late: float
    """The mean delay in seconds; an undetected interval counts with its whole length."""
    excess: float
    """The time in seconds, per interval, for which the state is wrongly reported active."""

    @property
    def share(self) -> float:
        return self.met / self.known if self.known else 1.0


@dataclass(frozen=True)
class SavingPlan:
    """A set of changes to a network, with the resulting lifetime and detection."""

    strategy: str
    every: int
    wider: float
    bands: Mapping[str, Band]
    """The thresholds of each state that has a tunable band."""
    days: float
    node: int
    joules: float
    """The energy of all nodes together, per day."""
    detection: Mapping[str, Detection]

    @property
    def loss(self) -> tuple[float, float]:
        """Return a key for comparing plans: the share of undetected intervals, then the mean seconds of wrong
        state. A smaller key is better.
        """
        detections = self.detection.values()
        known = sum(each.known for each in detections) or 1
        wrong = sum((each.late + each.excess) * each.known for each in detections) / known
        return 1 - sum(each.met for each in detections) / known, wrong

    @property
    def changes(self) -> tuple[int, float]:
        return self.every, self.wider


class Budget:
    """The saving plans for all strategies of a network, computed from a history."""

    def __init__(self, ways: Sequence[Strategy], rates: Rates, definition: ScenarioDefinition) -> None:
        self._strategies = [strategy for strategy in ways if strategy.forecast is not None]
        self._rates = rates
        self._bands = dict(_tunable(definition, rates.subscriptions))
        self._known = {name: _intervals(found, rates.events) for name, found in self._bands.items()}

    def plans(self) -> Iterator[SavingPlan]:
        """Yield a plan for every combination of strategy, sampling rate and band width."""
        for every in EVERY_NTH:
            events = _every_nth(self._rates.events, every)
            if len({event.time for event in events}) < 2:
                return
            bands = self._bands.items()
            trials = {name: _BandTrial(found, events, self._known[name]) for name, found in bands}
            for wider in WIDER if trials else (1.0,):
                found = {name: tried.found(wider) for name, tried in trials.items()}
                for strategy in self._strategies:
                    assert strategy.forecast is not None
                    yield _plan(strategy, strategy.forecast, every, wider, found)


def fitting(plans: Sequence[SavingPlan], days: float) -> list[SavingPlan]:
    """Return the best plan of each strategy that lasts at least ``days``. Plans compare by least loss, then
    by least change, then by longest lifetime.
    """
    lasting = [plan for plan in plans if plan.days >= days]
    lasting.sort(key=lambda plan: (plan.loss, plan.changes, -plan.days))
    best: dict[str, SavingPlan] = {}
    for plan in lasting:
        best.setdefault(plan.strategy, plan)
    return list(best.values())


def _plan(
    strategy: Strategy, forecast: Forecast, every: int, wider: float, found: Mapping[str, BandResult]
) -> SavingPlan:
    """Build the plan for one strategy, sampling rate and band factor. Raise a `UsageError` if no node has a
    battery.
    """
    a_day = _rates(forecast.rates, every, {name: result.turns for name, result in found.items()})
    lasts = forecast.days(a_day)
    if lasts is None:
        raise UsageError("no battery of this network ends: say with energy.battery what a node has")
    bands = {name: result.band for name, result in found.items()}
    detection = {name: _over(forecast, name, result.detection) for name, result in found.items()}
    joules = float(forecast.joules(a_day).sum())
    return SavingPlan(strategy.name, every, wider, bands, *lasts, joules, detection)


def _over(forecast: Forecast, name: str, detection: Detection) -> Detection:
    """Return the detection at the subscriber. The network adds delay and loses messages."""
    arrival = forecast.delay(name)
    if arrival is None:
        return detection
    seconds, chance = arrival
    return replace(detection, met=round(detection.met * chance), late=detection.late + seconds)


def _rates(rates: Rates, every: int, turns: Mapping[str, Counter[str]]) -> dict[ReadingKind, float]:
    """Return the readings per day of each kind under a plan. State changes are counted; the numbers of other
    readings shrink in proportion.
    """
    share = _shares(rates, turns)
    found: dict[ReadingKind, float] = {}
    for kind in rates.counts:
        changing = [name for name in turns if kind.sort[rates.subscriptions.index(name)][0]]
        shares = [share(name, kind.source) for name in changing]
        remaining = max(shares) if changing else 1 / every
        found[kind] = rates.a_day(kind) * min(remaining, 1.0)
    quiet: dict[str, float] = defaultdict(float)
    missing: dict[str, float] = defaultdict(float)
    for kind in rates.counts:
        missing[kind.source] += rates.a_day(kind) / every - found[kind]
        if not any(changing for changing, _ in kind.sort):
            quiet[kind.source] += found[kind]
    for kind in rates.counts:
        if not any(changing for changing, _ in kind.sort) and quiet[kind.source]:
            found[kind] *= max(0.0, 1 + missing[kind.source] / quiet[kind.source])
    return found


def _shares(rates: Rates, turns: Mapping[str, Counter[str]]) -> Callable[[str, str], float]:
    """Return a function for the share of a source's state changes that remain under a plan. Where scopes are
    not sources, the share is computed over all sources.
    """
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


def _tunable(definition: ScenarioDefinition, names: Sequence[str]) -> Iterator[tuple[str, Tunable]]:
    for name in names:
        try:
            yield name, tunable(definition.checked, name)
        except UsageError:
            continue  # it has no band, so it stays as it is


def _rows(found: Tunable, events: Sequence[Event]) -> MeasuredRows:
    topic = found.condition.topic
    topic_events = [event for event in events if event.topic == topic.name]
    return collect_rows([Measure(found)(from_events(topic, topic_events))])


def _intervals(found: Tunable, events: Sequence[Event]) -> dict[str | None, list[Interval]]:
    """Return the active intervals of the state in the readings, by scope."""
    rows = _rows(found, events)
    return dict(_by_scope(rows, as_it_stands(rows, found, rows.span()[1])))


def _by_scope(rows: MeasuredRows, known: KnownTruth) -> Iterator[tuple[str | None, list[Interval]]]:
    for i, key in enumerate(rows.keys.all().to_pylist()):
        indices = range(int(known.ends[i]), int(known.ends[i + 1]))
        intervals = [(int(known.start[k]), int(known.end[k])) for k in indices]
        yield readable_key(key) if key else None, intervals


class BandResult(NamedTuple):
    """The evaluation of a state with one band."""

    band: Band
    turns: Counter[str]
    """The number of remaining starts and ends of the state, by scope."""
    detection: Detection


class _BandTrial:
    """A state, evaluated with bands of several widths on a sample of the readings."""

    def __init__(
        self, found: Tunable, events: Sequence[Event], known: Mapping[str | None, list[Interval]]
    ) -> None:
        self._found, self._rows = found, _rows(found, events)
        self._until = self._rows.span()[1]
        self._known = labels_of(self._rows, known)
        bands = [self.band(wider) for wider in WIDER]
        self._exits = tuple(dict.fromkeys(exit for _, exit in bands))
        grid = VariantGrid((bands[0][0],), self._exits, (found.guard,))
        self._counts = judge(Trial(self._rows, found, self._known, self._until), grid)

    def band(self, wider: float) -> Band:
        """Return entrance and exit for a band that is ``wider`` times as wide; only the exit moves."""
        enter, exit = self._found.enter, self._found.exit
        if enter is None or exit is None or enter.of != exit.of:
            return (None if enter is None else enter.value), (None if exit is None else exit.value)
        return enter.value, enter.value + (exit.value - enter.value) * wider

    def found(self, wider: float) -> BandResult:
        return BandResult(self.band(wider), self._turns(wider), self._detection(wider))

    def _detection(self, wider: float) -> Detection:
        counts = self._counts[0, self._exits.index(self.band(wider)[1]), 0]
        known, length = self._known.count, self._known.length
        late = (int(counts[DELAY]) + length) / known / SECOND if known else 0.0
        excess = (int(counts[HOLDING]) - int(counts[SHARED])) / max(1, known) / SECOND
        return Detection(known, int(counts[REACHED]), late, excess)

    def _turns(self, wider: float) -> Counter[str]:
        enter, exit = self.band(wider)
        found = self._found
        thresholds = _with_value(found.enter, enter), _with_value(found.exit, exit)
        changed = replace(found, enter=thresholds[0], exit=thresholds[1])
        detections = _by_scope(self._rows, as_it_stands(self._rows, changed, self._until))
        ends = {str(scope): [end for _, end in intervals] for scope, intervals in detections}
        return Counter({scope: sum(1 + (end < self._until) for end in ends[scope]) for scope in ends})


def _with_value(threshold: Threshold | None, value: float | None) -> Threshold | None:
    return threshold if threshold is None or value is None else replace(threshold, value=value)


def _every_nth(events: Sequence[Event], every: int) -> list[Event]:
    """Return the first, then every ``every``-th reading of each source and topic."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for event in events:
        if seen[event.source, event.topic] % every == 0:
            kept.append(event)
        seen[event.source, event.topic] += 1
    return kept


def at_rest(forecast: Forecast) -> float | None:
    """Return the lifetime in days of a node without activity: the upper bound of all plans. ``None`` without
    a battery.
    """
    battery = forecast.plan.setup.battery_j
    return None if battery is None else battery / (forecast.rest * A_DAY)
