"""Count the lines of the table from passed and delivered events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..series import MINUTE, Temperatures, Times
from .field import EVERY, VALIDITY, Field, TableSetting
from .scheme import Passed, Scheme, content_filters, state_filters


@dataclass(frozen=True)
class Counts:
    """The lines of the table for one scheme; times are in minutes."""

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
"""For each line: its name, the paper's SF and ECF, and how we count it."""


class Spells(NamedTuple):
    """The lengths of spells above the thresholds, in minutes, and the ratio of ECF to SF events that follows:
    Σ⌈D / 33 min⌉ / 2K over K spells of length D.
    """

    number: int
    mean: float
    median: float
    ratio: float


class TableMeasurement(NamedTuple):
    """One run: both schemes on one field, period and setting."""

    sf: Counts
    ecf: Counts
    schemes: tuple[Scheme, Scheme]
    spells: Spells


def measure(field: Field, setting: TableSetting, times: Times, temps: Temperatures) -> TableMeasurement:
    """Run both schemes on ``temps[sensor, reading]`` and count all lines of the table."""
    sf = state_filters(field, setting, times, temps)
    ecf = content_filters(field, setting, times, temps)
    late_sf: list[int] = [0]
    late_ecf: list[int] = [0]
    sf_conditions = ecf_conditions = 0
    lengths: list[int] = []
    for subscriber in field.subscribers:
        sensor = field.sensors_of(subscriber.region)[0]  # all of the region report the same
        values, threshold = temps[sensor], setting.threshold(subscriber)
        toggles = sorted(p.at for p in sf.delivered if p.subscriber == subscriber.name)
        late_sf += late_ends(times, values <= setting.leaves(subscriber), toggles)
        sf_conditions += (len(toggles) + 1) // 2
        sent = sorted(p.at for p in ecf.delivered if p.subscriber == subscriber.name and p.sensor == sensor)
        late_ecf += overstays(times, values > threshold, sent, VALIDITY)
        ecf_conditions += count_runs(times[sent])
        lengths += above(values > threshold) * len(field.sensors_of(subscriber.region))
    return TableMeasurement(
        Counts(
            **_common_counts(field, sf, len(times)),
            scoping_filters=len({(s.name, s.region) for s in field.subscribers}),
            resolution=float(np.diff(times).max() / MINUTE),
            worst_error=max(late_sf) / MINUTE,
            conditions=sf_conditions,
        ),
        Counts(
            **_common_counts(field, ecf, len(times)),
            scoping_filters=None,
            resolution=VALIDITY / MINUTE,
            worst_error=max(late_ecf) / MINUTE,
            conditions=ecf_conditions,
        ),
        (sf, ecf),
        spells(lengths),
    )


def above(warm: NDArray[np.bool_]) -> list[int]:
    """Return the number of readings of each spell.

    >>> above(np.array([True, True, False, True]))
    [2, 1]
    """
    edges = np.diff(np.concatenate(([0], warm.astype(np.int8), [0])))
    return (np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)).tolist()


def spells(lengths: Sequence[int]) -> Spells:
    """Return the statistics of spells, given their numbers of readings."""
    if not lengths:
        return Spells(0, 0.0, 0.0, 0.0)
    minutes = np.array(lengths) * (EVERY / MINUTE)
    events = np.ceil(minutes / ((VALIDITY + EVERY) / MINUTE))
    ratio = float(events.sum()) / (2 * len(lengths))
    return Spells(len(lengths), float(minutes.mean()), float(np.median(minutes)), ratio)


def late_ends(times: Times, ended: NDArray[np.bool_], toggles: Sequence[int]) -> list[int]:
    """Return, for every end that SF reports, the time since the first reading that satisfied the exit."""
    late = []
    for start, end in zip(toggles[::2], toggles[1::2], strict=False):
        first = start + int(np.argmax(ended[start : end + 1]))
        late.append(int(times[end] - times[first]))
    return late


def overstays(times: Times, warm: NDArray[np.bool_], sent: Sequence[int], validity: int) -> list[int]:
    """Return, for every end of a condition, how long ECF still reports it: until the last event expires or
    the condition starts again.
    """
    late = []
    for end in np.flatnonzero(warm[:-1] & ~warm[1:]) + 1:
        last = max((at for at in sent if at < end), default=None)
        if last is not None:
            again = np.flatnonzero(warm[end:])
            begins = times[end + again[0]] if len(again) else times[last] + validity
            late.append(max(0, int(min(times[last] + validity, begins) - times[end])))
    return late


def count_runs(sent: Times) -> int:
    """Return the number of runs of ECF events in which each follows as soon as the validity allows."""
    return 0 if not len(sent) else 1 + int((np.diff(sent) > VALIDITY + EVERY).sum())


def _common_counts(field: Field, scheme: Scheme, readings: int) -> dict[str, Any]:
    """Count the lines that both schemes have in common."""
    watched = [i for i, sensor in enumerate(field.sensors) if sensor.region in field.coverage]
    before, after = _wanted_by(scheme.at_source), _wanted_by(scheme.delivered)
    return {
        "publishers": len(field.sensors),
        "subscribers": len(field.subscribers),
        "subscriptions": len(field.subscribers),
        "covered_publishers": len(watched),
        "source_filters": sum(len(field.sensors_of(s.region)) for s in field.subscribers),
        "published": len(field.sensors) * readings,
        "covered": len(watched) * readings,
        "passes": len(before),
        "ratio": len(before) / (len(watched) * readings),
        "disseminated": len(after),
        "suppressed": len(before.keys() - after.keys()),
        "shared_before": _shared(before),
        "shared_after": _shared(after),
        "delivered": len(scheme.delivered),
    }


def _wanted_by(passed: Iterable[Passed]) -> Counter[tuple[int, int]]:
    """Count the subscribers of each passed event."""
    return Counter((p.sensor, p.at) for p in set(passed))


def _shared(wanted: Counter[tuple[int, int]]) -> int:
    return sum(subscribers >= 2 for subscribers in wanted.values())
