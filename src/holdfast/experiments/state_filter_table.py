"""State filters against content filters with a validity, on real temperatures.

[State-Filters, Table II; SPS Table 3.1; S9, S10, F82]  Sixteen regions, 35 sensors, a reading every
3 min for 30 h, ten subscribers to ``temp > T`` with ten thresholds near 10 °C.  *SF* is
``[temp > T; temp <= T]`` at every sensor and again over the region.  *ECF* is the content filter
``temp > T`` at every sensor; once an event has passed it, it is deaf for 30 min.

The radio network of the paper is left out: with reliable links it changes none of these counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError, UsageError
from ..model.batch import TIME
from ..runtimes.local.engine import Engine
from . import stbernard
from .data import locate
from .experiment import Claim, Experiment, Progress, Result, Row, Table
from .stbernard import MINUTE, Period, Temperatures, Times

NAME = "state-filter-table"
TOPIC = "Temperature"
SIDE = 4  # the field is 4 × 4 regions
REGIONS = SIDE * SIDE
WIDTH = 100  # m, of a region
SENSORS = 35
SUBSCRIBERS = 10
EVERY = 3 * MINUTE
READINGS = 30 * 20  # 30 h
VALIDITY = 30 * MINUTE
SEED = 2006
SEEDS = 50  # of the full run, for each period

COVERED = (3, 3, 3, 2)
"""Sensors in the regions that have subscribers: see ``draw``."""


# --- the field -----------------------------------------------------------------------------------


class Sensor(NamedTuple):
    name: str
    region: int
    x: float
    y: float


class Subscriber(NamedTuple):
    """Who wants to know when the region is warmer than the threshold of that rank (0 is lowest)."""

    name: str
    region: int
    rank: int


@dataclass(frozen=True)
class Field:
    """Sensors and subscribers in a square of regions; region ``r`` has the air of ``stations[r]``."""

    sensors: tuple[Sensor, ...]
    subscribers: tuple[Subscriber, ...]
    stations: tuple[int, ...]

    @cached_property
    def covered(self) -> tuple[int, ...]:
        return tuple(sorted({subscriber.region for subscriber in self.subscribers}))

    def sensors_of(self, region: int) -> list[int]:
        return [i for i, sensor in enumerate(self.sensors) if sensor.region == region]

    def subscribers_of(self, region: int) -> list[Subscriber]:
        return [subscriber for subscriber in self.subscribers if subscriber.region == region]


def draw(seed: int, stations: Sequence[int], shares: Sequence[int] | None = None) -> Field:
    """A field of 35 sensors with the paper's 11 covered publishers, 27 source-side and 10 scoping filters.

    Ten subscriptions and ten scoping filters mean one region for each subscription.  Then regions of
    1 to 3 sensors that add up to 11 sensors and 27 filters are three of three and one of two, where the
    latter has 3 subscribers and the former 7 together; nothing else adds up.  Chance decides the rest:
    which regions, how the 7 are shared (unless ``shares`` says), whose threshold is which, which
    station is which region.
    """
    chance = np.random.default_rng(seed)
    while True:
        sizes = chance.integers(1, 4, REGIONS)
        if sizes.sum() == SENSORS and (sizes == 3).sum() >= 3 and (sizes == 2).any():
            break
    threes = [int(r) for r in chance.permutation(np.flatnonzero(sizes == 3))[:3]]
    two = int(chance.permutation(np.flatnonzero(sizes == 2))[0])
    cuts = [0, *sorted(int(cut) for cut in chance.permutation(np.arange(1, 7))[:2]), 7]
    if shares is None:
        shares = [b - a for a, b in zip(cuts, cuts[1:], strict=False)]
    ranks = [int(rank) for rank in chance.permutation(SUBSCRIBERS)]
    wanted = [
        region for region, share in zip([*threes, two], [*shares, 3], strict=True) for _ in range(share)
    ]
    spots = chance.uniform(0.05, 0.95, (SENSORS, 2))
    where = np.repeat(np.arange(REGIONS), sizes)
    return Field(
        tuple(
            Sensor(
                f"s{i + 1:02}",
                int(region),
                round(float(WIDTH * (region % SIDE + x)), 1),
                round(float(WIDTH * (region // SIDE + y)), 1),
            )
            for i, (region, (x, y)) in enumerate(zip(where, spots, strict=True))
        ),
        tuple(Subscriber(f"S{i + 1}", r, ranks[i]) for i, r in enumerate(wanted)),
        tuple(int(station) for station in chance.permutation(list(stations))[:REGIONS]),
    )


def region_name(region: int) -> str:
    return f"r{region + 1:02}"


@dataclass(frozen=True)
class Setting:
    """What the paper leaves open, and what we vary to see what it matters."""

    name: str = "as described"
    centre: float = 10.0
    spread: float = 0.5
    gap: float = 0.0
    prepare: Callable[[Temperatures], Temperatures] = lambda values: values

    def threshold(self, subscriber: Subscriber) -> float:
        """Ten thresholds at equal distances, from the centre less to the centre plus the spread."""
        step = (2 * subscriber.rank + 1 - SUBSCRIBERS) / SUBSCRIBERS
        return round(self.centre + self.spread * step, 4)

    def leaves(self, subscriber: Subscriber) -> float:
        """At or below this, the condition ends under SF."""
        return round(self.threshold(subscriber) - self.gap, 4)


def definition(field: Field, setting: Setting, region: int | None = None) -> str:
    """The subscriptions as people would write them.

    Nested: one filter at every source and one over the region, for all regions.  With ``region``
    only the filters at the sources of that region, to see what passes there.
    """
    lines = [f"topic {TOPIC} (temp float)"]
    if region is None:
        for r in range(REGIONS):
            x, y = WIDTH * (r % SIDE), WIDTH * (r // SIDE)
            lines.append(f"region {region_name(r)} = rectangle ({x}, {y}) ({x + WIDTH}, {y + WIDTH})")
    for subscriber in field.subscribers if region is None else field.subscribers_of(region):
        warm = setting.threshold(subscriber)
        over = f" scope {region_name(subscriber.region)}" if region is None else ""
        leave = round(warm - setting.gap, 4)
        lines.append(f"state {subscriber.name} on {TOPIC} [temp > {warm}; temp <= {leave}] per source{over}")
    return "\n".join(lines) + "\n"


# --- the two schemes -----------------------------------------------------------------------------


class Passed(NamedTuple):
    """An event that a subscriber's filter lets pass: which reading of which sensor."""

    subscriber: str
    sensor: int
    at: int


class Scheme(NamedTuple):
    """What passes at the sources, for whom, and what is delivered to whom."""

    at_source: list[Passed]
    delivered: list[Passed]


def state_filters(field: Field, setting: Setting, times: Times, temps: Temperatures) -> Scheme:
    """SF: our engine on all events, nested; and on each region's events, at the sources alone."""
    at_source: list[Passed] = []
    for region in field.covered:
        sensors = field.sensors_of(region)
        at_source += _notified(definition(field, setting, region), field, sensors, times, temps)
    everywhere = range(len(field.sensors))
    return Scheme(at_source, _notified(definition(field, setting), field, everywhere, times, temps))


def _notified(
    text: str, field: Field, sensors: Sequence[int], times: Times, temps: Temperatures
) -> list[Passed]:
    number = {field.sensors[i].name: i for i in sensors}
    start = int(times[0])
    return [
        Passed(note.subscription, number[note.event.source], (note.event.time - start) // EVERY)
        for note in Engine(text).push_batch(TOPIC, events(field, sensors, times, temps))
    ]


def events(field: Field, sensors: Sequence[int], times: Times, temps: Temperatures) -> pa.RecordBatch:
    """The events of these sensors, by time and then by sensor."""
    some = [field.sensors[i] for i in sensors]
    moments = len(times)
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array(np.repeat(times, len(some))).cast(TIME),
            "source": [sensor.name for sensor in some] * moments,
            "x": [sensor.x for sensor in some] * moments,
            "y": [sensor.y for sensor in some] * moments,
            "temp": temps[list(sensors)].T.ravel(),
        }
    )


def content_filters(field: Field, setting: Setting, times: Times, temps: Temperatures) -> Scheme:
    """ECF: what passes at a source is delivered, from every sensor of the region."""
    passed = [
        Passed(subscriber.name, sensor, int(at))
        for subscriber in field.subscribers
        for sensor in field.sensors_of(subscriber.region)
        for at in np.flatnonzero(valid_for(times, temps[sensor] > setting.threshold(subscriber), VALIDITY))
    ]
    return Scheme(passed, passed)


def valid_for(times: Times, matches: NDArray[np.bool_], validity: int) -> NDArray[np.bool_]:
    """Which matches a content filter with a validity passes: after one that passes, all matches not
    more than ``validity`` later are dropped.  [SPS L1404: e2 - e1 ≤ T ⇒ F(e2) = false]

    >>> minutes = np.arange(0, 90, 3)
    >>> minutes[valid_for(minutes, (minutes >= 6) & (minutes <= 72), 30)].tolist()
    [6, 39, 72]
    """
    passed = np.zeros(len(times), np.bool_)
    at = -1
    for i in np.flatnonzero(matches):
        if at < 0 or times[i] - times[at] > validity:
            passed[i] = True
            at = int(i)
    return passed


# --- what is counted -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """The lines of the table for one scheme; times in minutes."""

    publishers: int
    subscribers: int
    subscriptions: int
    covered_publishers: int
    source_filters: int
    scoping_filters: int | None
    published: int
    covered: int
    passes: int
    ratio: float
    disseminated: int
    suppressed: int
    shared_before: int
    shared_after: int
    delivered: int
    resolution: float
    worst_error: float
    conditions: int


LINES: Mapping[str, tuple[str, Any, Any, str]] = {
    "publishers": ("publishers", 35, 35, "sensors"),
    "subscribers": ("subscribers", 10, 10, "one threshold each"),
    "subscriptions": ("subscriptions", 10, 10, "one for each subscriber"),
    "covered_publishers": ("covered publishers", 11, 11, "sensors in a region somebody subscribes to"),
    "source_filters": ("source-side filters", 27, 27, "pairs of a subscription and a sensor it covers"),
    "scoping_filters": ("scoping filters", 10, None, "pairs of a subscription and a region it covers"),
    "published": ("published events", 21000, 21000, "readings of all sensors"),
    "covered": ("covered events", 6600, 6600, "readings of covered publishers"),
    "passes": ("source-side passes", 22, 216, "events that pass a filter at their source, each once"),
    "ratio": ("source-side pass ratio", 22 / 6600, 216 / 6600, "source-side passes / covered events"),
    "disseminated": ("disseminated events", 8, 216, "events that leave their region, each once"),
    "suppressed": ("duplicates suppressed", 14, 0, "source-side passes - disseminated events"),
    "shared_before": (
        "shared events before suppression",
        16,
        192,
        "source-side passes for two subscribers or more",
    ),
    "shared_after": (
        "shared events after suppression",
        6,
        192,
        "disseminated events for two subscribers or more",
    ),
    "delivered": ("delivered events", 20, 620, "deliveries, counted at every subscriber"),
    "resolution": (
        "capturing resolution (min)",
        3,
        30,
        "how long ago a change may have been when the scheme can first show it: "
        "the time between readings; the validity",
    ),
    "worst_error": (
        "worst error seen (min)",
        None,
        18,
        "how long a subscriber still believes in a condition after the reading that ended it",
    ),
    "conditions": (
        "conditions told apart",
        None,
        None,
        "stretches that a subscriber can tell from the next; the readings hold as many as SF says",
    ),
}
"""Line -> what it is called, the paper's SF and ECF, and how we count it."""


class Measured(NamedTuple):
    """One run: both schemes on one field, one period, one setting."""

    sf: Counts
    ecf: Counts
    schemes: tuple[Scheme, Scheme]


def measure(field: Field, setting: Setting, times: Times, temps: Temperatures) -> Measured:
    """Both schemes on ``temps[sensor, reading]``, and every line of the table."""
    sf = state_filters(field, setting, times, temps)
    ecf = content_filters(field, setting, times, temps)
    first = {r: field.sensors_of(r)[0] for r in field.covered}
    warm = {s.name: temps[first[s.region]] > setting.threshold(s) for s in field.subscribers}
    changes = np.diff(times) / MINUTE
    believed = [
        late
        for s in field.subscribers
        for late in _late_ends(
            times,
            temps[first[s.region]] <= setting.leaves(s),
            [p.at for p in sf.delivered if p.subscriber == s.name],
        )
    ]
    trusted = [_trusted(s, first[s.region], ecf.delivered, times) for s in field.subscribers]
    overstayed = [
        late
        for s, matches in zip(field.subscribers, trusted, strict=True)
        for late in overstays(times, warm[s.name], matches, VALIDITY)
    ]
    return Measured(
        _counted(
            field,
            sf,
            len(times),
            scoping=len({(s.name, s.region) for s in field.subscribers}),
            resolution=float(changes.max()),
            worst_error=max(believed, default=0.0),
            conditions=sum((told + 1) // 2 for told in Counter(p.subscriber for p in sf.delivered).values()),
        ),
        _counted(
            field,
            ecf,
            len(times),
            scoping=None,
            resolution=VALIDITY / MINUTE,
            worst_error=max(overstayed, default=0.0) / MINUTE,
            conditions=sum(_stretches(times[matches]) for matches in trusted),
        ),
        (sf, ecf),
    )


def _counted(
    field: Field,
    scheme: Scheme,
    readings: int,
    *,
    scoping: int | None,
    resolution: float,
    worst_error: float,
    conditions: int,
) -> Counts:
    watched = [i for i, sensor in enumerate(field.sensors) if sensor.region in field.covered]
    before, after = _wanted(scheme.at_source), _wanted(scheme.delivered)
    return Counts(
        publishers=len(field.sensors),
        subscribers=len(field.subscribers),
        subscriptions=len(field.subscribers),
        covered_publishers=len(watched),
        source_filters=sum(len(field.sensors_of(s.region)) for s in field.subscribers),
        scoping_filters=scoping,
        published=len(field.sensors) * readings,
        covered=len(watched) * readings,
        passes=len(before),
        ratio=len(before) / (len(watched) * readings),
        disseminated=len(after),
        suppressed=len(before) - len(after),
        shared_before=_shared(before),
        shared_after=_shared(after),
        delivered=len(scheme.delivered),
        resolution=resolution,
        worst_error=worst_error,
        conditions=conditions,
    )


def _wanted(passed: Iterable[Passed]) -> Counter[tuple[int, int]]:
    """For each event, a reading of a sensor, by how many subscribers it is wanted."""
    return Counter((p.sensor, p.at) for p in set(passed))


def _shared(wanted: Counter[tuple[int, int]]) -> int:
    return sum(subscribers >= 2 for subscribers in wanted.values())


def _late_ends(times: Times, ended: NDArray[np.bool_], told: Iterable[int]) -> list[float]:
    """For every end that SF tells, how many minutes before a reading had satisfied the exit."""
    toggles = sorted(told)
    late = []
    for start, end in zip(toggles[::2], toggles[1::2], strict=False):
        first = start + int(np.argmax(ended[start : end + 1]))
        late.append(float(times[end] - times[first]) / MINUTE)
    return late


def _trusted(s: Subscriber, sensor: int, delivered: list[Passed], times: Times) -> NDArray[np.bool_]:
    """Which readings of one sensor of the region reach the subscriber."""
    matches = np.zeros(len(times), np.bool_)
    matches[[p.at for p in delivered if p.subscriber == s.name and p.sensor == sensor]] = True
    return matches


def overstays(times: Times, warm: NDArray[np.bool_], matches: NDArray[np.bool_], validity: int) -> list[int]:
    """For every end of a condition, how long it is still believed: until the validity of the last
    event runs out, or the condition begins again."""
    late = []
    for i in range(1, len(times)):
        if warm[i - 1] and not warm[i]:
            said = np.flatnonzero(matches[:i])
            until = int(times[said[-1]]) + validity if len(said) else int(times[i])
            again = np.flatnonzero(warm[i:])
            if len(again):
                until = min(until, int(times[i + again[0]]))
            late.append(max(0, until - int(times[i])))
    return late


def _stretches(said: Times) -> int:
    """Stretches of events of which each comes as soon after the last as a validity allows."""
    return 0 if not len(said) else 1 + int((np.diff(said) > VALIDITY + EVERY).sum())


# --- the periods ---------------------------------------------------------------------------------


def crossing(period: Period, setting: Setting) -> list[int]:
    """The usable stations that are, at some time, above all thresholds and, at some time, below."""
    low, high = (setting.threshold(Subscriber("", 0, rank)) for rank in (0, SUBSCRIBERS - 1))
    found = [s for s, values in period.values.items() if values.min() <= low and values.max() > high]
    return sorted(found, key=lambda s: (period.carried[s], s))


def eligible(cleaned: stbernard.Cleaned, setting: Setting) -> list[tuple[Period, list[int]]]:
    """The 30-hour periods from midnight in which 16 stations cross all thresholds, with the 16 that
    have the fewest carried readings."""
    found = []
    for period in stbernard.periods(cleaned.stations, READINGS, EVERY):
        stations = crossing(period, setting)
        if len(stations) >= REGIONS:
            found.append((period, stations[:REGIONS]))
    return found


def temperatures(field: Field, period: Period, setting: Setting) -> Temperatures:
    """``[sensor, reading]``: every sensor of a region reports the region's temperature."""
    by_region = [setting.prepare(period.values[station]) for station in field.stations]
    return np.stack([by_region[sensor.region] for sensor in field.sensors])


def running_mean(values: Temperatures, width: int = 10) -> Temperatures:
    """The mean of each reading and those before it, 30 min in all."""
    sums = np.cumsum(np.pad(values, (width, 0), mode="edge"))
    return np.asarray((sums[width:] - sums[:-width]) / width)


def held(values: Temperatures, width: int = 10) -> Temperatures:
    """One reading in 30 min, repeated until the next."""
    return np.repeat(values[::width], width)[: len(values)]


VARIANTS = (
    Setting("thresholds within 0.05 °C", spread=0.05),
    Setting("thresholds within 2 °C", spread=2.0),
    Setting("running mean of 30 min", prepare=running_mean),
    Setting("half-hourly readings, held", prepare=held),
    Setting("hysteresis of 0.5 °C", gap=0.5),
    Setting("hysteresis of 1 °C", gap=1.0),
)


def plateau() -> tuple[Field, Setting, Times, Temperatures]:
    """One warm spell, the same everywhere, that crosses all thresholds at one reading, over a field in
    which one region of three sensors has a single subscriber: what Table II's SF column comes from."""
    field = draw(SEED, range(REGIONS), shares=(3, 3, 1))
    times = np.arange(READINGS, dtype=np.int64) * EVERY
    values = np.where((np.arange(READINGS) >= 100) & (np.arange(READINGS) < 352), 15.0, 5.0)
    return field, Setting("one plateau (generated)"), times, np.tile(values, (SENSORS, 1))


# --- judging -------------------------------------------------------------------------------------

RULES: Mapping[str, str] = {
    "source-pass-ratio": "State filters pass about ten times fewer events at the source than content "
    "filters with a validity. Rule: ECF passes / SF passes is at least 5.",
    "delivered": "State filters deliver far fewer events. Rule: SF delivers at most a tenth of what ECF does.",
    "duplicates-suppressed": "Scoping by region removes the duplicates of redundant sensors; ECF removes "
    "none. Rule: SF suppresses at least half of its source-side passes, no event that leaves a region is "
    "the same reading as another, and ECF suppresses nothing.",
    "shared-events": "Events are shared by subscribers, fewer after suppression; ECF shares many more. "
    "Rule: SF shares some before and fewer, but some, after; ECF shares equally many before and after, "
    "and at least five times as many as SF before.",
    "resolution": "SF captures a change within a reading (3 min), ECF within its validity (30 min), with "
    "18 min the worst error seen. Rule: SF's error is below 3 min; ECF's worst error is more than "
    "3 min and at most 30 min.",
    "accounting": "The table's identities hold for our counts. Rule: 35·20·30 = published; 11·600 = "
    "covered; ratio = passes / covered; passes - suppressed = disseminated; 27 and 10 filters; exactly.",
}
"""Fixed before the experiment was first run."""


def judge(measured: Measured) -> dict[str, bool]:
    """Whether each claim holds in one run, by its rule."""
    sf, ecf = measured.sf, measured.ecf
    return {
        "source-pass-ratio": ecf.passes >= 5 * sf.passes,
        "delivered": 10 * sf.delivered <= ecf.delivered,
        "duplicates-suppressed": 2 * sf.suppressed >= sf.passes > 0
        and ecf.suppressed == 0
        and _without_duplicates(measured),
        "shared-events": sf.shared_before > sf.shared_after > 0
        and ecf.shared_before == ecf.shared_after >= 5 * sf.shared_before,
        "resolution": sf.worst_error < sf.resolution == EVERY / MINUTE
        and EVERY / MINUTE < ecf.worst_error <= ecf.resolution,
        "accounting": _adds_up(sf) and _adds_up(ecf) and sf.scoping_filters == 10,
    }


def _without_duplicates(measured: Measured) -> bool:
    """No subscriber hears twice of one moment (every subscriber watches one region)."""
    delivered = measured.schemes[0].delivered
    return len({(p.subscriber, p.at) for p in delivered}) == len(delivered)


def _adds_up(counts: Counts) -> bool:
    return (
        counts.published == 35 * 20 * 30
        and counts.covered == 11 * 600
        and counts.source_filters == 27
        and counts.ratio == counts.passes / 6600
        and counts.passes - counts.suppressed == counts.disseminated
    )


# --- the experiment ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exhibit:
    """What the figure draws: one region, its subscribers, and what they received."""

    field: Field
    setting: Setting
    times: Times
    temps: Temperatures
    schemes: tuple[Scheme, Scheme]


def run(data: Path | None, full: bool, progress: Progress) -> Result:
    """The table; with ``full`` also for every eligible period and many fields."""
    base = Setting()
    progress("reading")
    cleaned = stbernard.read(locate(stbernard.FILE, data))
    periods = eligible(cleaned, base)
    if not periods:
        raise InputError(f"no 30 hours of {stbernard.FILE} have 16 stations that cross the thresholds")
    period, stations = periods[0]
    field = draw(SEED, stations)
    progress(base.name)
    temps = temperatures(field, period, base)
    main = measure(field, base, period.times, temps)
    runs: dict[str, Measured] = {base.name: main}
    middle = round(float(np.median([period.values[s] for s in stations])), 1)
    for setting in (*VARIANTS, Setting(f"thresholds near {middle} °C, the median", centre=middle)):
        progress(setting.name)
        readings = temperatures(field, period, setting)
        runs[setting.name] = measure(field, setting, period.times, readings)
    made = plateau()
    runs[made[1].name] = measure(*made)
    rows = [row for name, measured in runs.items() for row in _rows(name, measured)]
    many = _many(periods, base, progress) if full else []
    rows += _spread(many)
    return Result(
        NAME,
        _parameters(cleaned, periods, field, base, full),
        rows,
        tuple(_claims(runs, many)),
        Exhibit(field, base, period.times, temps, main.schemes),
    )


def _many(periods: list[tuple[Period, list[int]]], base: Setting, progress: Progress) -> list[Measured]:
    found = []
    for period, stations in periods:
        for seed in range(SEED, SEED + SEEDS):
            progress(f"{period.start}, seed {seed}")
            field = draw(seed, stations)
            found.append(measure(field, base, period.times, temperatures(field, period, base)))
    return found


def _rows(setting: str, measured: Measured) -> list[Row]:
    return [
        {
            "setting": setting,
            "statistic": called,
            "paper_sf": paper_sf,
            "paper_ecf": paper_ecf,
            "sf": getattr(measured.sf, line),
            "ecf": getattr(measured.ecf, line),
        }
        for line, (called, paper_sf, paper_ecf, _) in LINES.items()
    ]


def _spread(many: Sequence[Measured]) -> list[Row]:
    """The middle and the edges of many runs, line by line."""
    if not many:
        return []
    rows: list[Row] = []
    for name, part in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
        for line, (called, paper_sf, paper_ecf, _) in LINES.items():
            ours = [
                None if None in counts else round(float(np.quantile(counts, part)), 6)
                for counts in (
                    [getattr(measured.sf, line) for measured in many],
                    [getattr(measured.ecf, line) for measured in many],
                )
            ]
            rows.append(
                {
                    "setting": f"{name} of {len(many)} runs",
                    "statistic": called,
                    "paper_sf": paper_sf,
                    "paper_ecf": paper_ecf,
                    "sf": ours[0],
                    "ecf": ours[1],
                }
            )
    return rows


def _parameters(
    cleaned: stbernard.Cleaned,
    periods: list[tuple[Period, list[int]]],
    field: Field,
    base: Setting,
    full: bool,
) -> dict[str, Any]:
    period, stations = periods[0]
    shares = {region_name(r): len(field.subscribers_of(r)) for r in field.covered}
    return {
        "data": stbernard.FILE,
        "readings": f"{cleaned.read} in the file",
        "dropped": dict(cleaned.dropped),
        "grid": "every 3 min the latest reading; where it is older than 6 min it is carried on",
        "period": f"30 h from {period.start}: the first from a midnight (UTC) in which 16 stations with a "
        "fresh reading 95 % of the time are above all and below all thresholds at some time",
        "periods that would do": [p.start for p, _ in periods],
        "carried readings": sum(period.carried[s] for s in stations),
        "thresholds": [base.threshold(Subscriber("", 0, rank)) for rank in range(SUBSCRIBERS)],
        "thresholds by": "equal steps of 0.1 °C about the paper's 10 °C, dealt to subscribers by chance",
        "redundant sensors": "report the same values, at the same moments (uniform in a region)",
        "subscribers in regions": shares,
        "sensors in regions": {region_name(r): len(field.sensors_of(r)) for r in field.covered},
        "stations of regions": {region_name(r): field.stations[r] for r in field.covered},
        "validity": "30 min, both ends included: the next match passes after 33 min",
        "seed": f"{SEED} to {SEED + SEEDS - 1}, for each period" if full else SEED,
    }


def _claims(runs: Mapping[str, Measured], many: Sequence[Measured]) -> Iterable[Claim]:
    main = next(iter(runs.values()))
    sf, ecf = main.sf, main.ecf
    figures: dict[str, tuple[Any, Any]] = {
        "source-pass-ratio": (
            {"sf": 3.33e-3, "ecf": 3.27e-2, "ecf/sf": 9.8},
            {"sf": sf.ratio, "ecf": ecf.ratio, "ecf/sf": _over(ecf.passes, sf.passes)},
        ),
        "delivered": (
            {"sf": 20, "ecf": 620, "ecf/sf": 31.0},
            {"sf": sf.delivered, "ecf": ecf.delivered, "ecf/sf": _over(ecf.delivered, sf.delivered)},
        ),
        "duplicates-suppressed": (
            {"sf": 14, "of": 22, "ecf": 0},
            {"sf": sf.suppressed, "of": sf.passes, "ecf": ecf.suppressed},
        ),
        "shared-events": (
            {"sf before": 16, "sf after": 6, "ecf before": 192, "ecf after": 192},
            {
                "sf before": sf.shared_before,
                "sf after": sf.shared_after,
                "ecf before": ecf.shared_before,
                "ecf after": ecf.shared_after,
            },
        ),
        "resolution": (
            {"sf": 3, "ecf": 30, "worst ecf": 18},
            {
                "sf": sf.resolution,
                "ecf": ecf.resolution,
                "worst sf": sf.worst_error,
                "worst ecf": ecf.worst_error,
            },
        ),
        "accounting": (
            {"published": 21000, "covered": 6600, "passes - suppressed": 8, "disseminated": 8},
            {
                "published": sf.published,
                "covered": sf.covered,
                "passes - suppressed": sf.passes - sf.suppressed,
                "disseminated": sf.disseminated,
            },
        ),
    }
    holds = judge(main)
    agreed = Counter(name for measured in many for name, held_up in judge(measured).items() if held_up)
    for name, (paper, ours) in figures.items():
        note = _note(name, runs)
        if many:
            note += f" Over all periods and fields it holds in {agreed[name]} of {len(many)} runs."
        yield Claim(name, RULES[name], paper, ours, holds[name], note)


def _over(a: int, b: int) -> float | None:
    return round(a / b, 2) if b else None


def _note(name: str, runs: Mapping[str, Measured]) -> str:
    return ""


def _tables(result: Result) -> list[Table]:
    settings = list(dict.fromkeys(row["setting"] for row in result.rows))
    first = [row for row in result.rows if row["setting"] == settings[0]]
    counted = {called: how for called, _, _, how in LINES.values()}
    by = {(row["setting"], row["statistic"]): row for row in result.rows}
    columns = [
        ("passes SF", "source-side passes", "sf"),
        ("ECF", "source-side passes", "ecf"),
        ("suppressed", "duplicates suppressed", "sf"),
        ("shared SF", "shared events before suppression", "sf"),
        ("after", "shared events after suppression", "sf"),
        ("ECF", "shared events before suppression", "ecf"),
        ("delivered SF", "delivered events", "sf"),
        ("ECF", "delivered events", "ecf"),
        ("worst SF", "worst error seen (min)", "sf"),
        ("ECF", "worst error seen (min)", "ecf"),
        ("conditions SF", "conditions told apart", "sf"),
        ("ECF", "conditions told apart", "ecf"),
    ]
    return [
        Table(
            "The document's figures and ours",
            ("statistic", "document SF", "ours", "document ECF", "ours", "how it is counted"),
            [
                (r["statistic"], r["paper_sf"], r["sf"], r["paper_ecf"], r["ecf"], counted[r["statistic"]])
                for r in first
            ],
        ),
        Table(
            "What it depends on",
            ("setting", *(head for head, _, _ in columns)),
            [
                ("the document", *(by[settings[0], s][f"paper_{scheme}"] for _, s, scheme in columns)),
                *((setting, *(by[setting, s][scheme] for _, s, scheme in columns)) for setting in settings),
            ],
        ),
    ]


# --- the figure ----------------------------------------------------------------------------------


def _figure(result: Result, folder: Path) -> list[Path]:
    raise NotImplementedError


EXPERIMENT = Experiment(
    NAME,
    "state filters against content filters with a 30-minute validity  [State-Filters, Table II]",
    run,
    _tables,
    _figure,
)
