"""The scenarios of ``compare``, and their results as text, JSON and a figure.

The scenarios are the ideal engine, a live engine with late readings, and networks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ..errors import counted
from ..files.difference import Alarm, Difference, Place, Report, difference, pair_reports, savings
from ..model.event import Event, standing
from ..model.instant import MINUTE, SECOND, Duration, show_duration, show_instant

if TYPE_CHECKING:
    from ..definition.app import App
    from ..model.space import Point
    from ..network.motes.play import PlayResult

MOST = 20
"""The most alarms listed on a terminal."""
DRAWN = 40
"""The most rows of a figure."""


@dataclass(frozen=True)
class ComparedScenario:
    """The notifications of one scenario, compared with the ideal ones.

    ``joules`` is the energy that the scenario used, or ``None``.
    """

    name: str
    seed: int
    notifications: list[Report]
    """All notifications, with the time at which each became known."""
    against: list[Difference]
    """The difference from the ideal, for each subscriber."""
    joules: float | None = None
    late: int = 0
    """The number of readings rejected as late."""

    @property
    def counts(self) -> dict[str, float]:
        """The number of alarms by fate, summed over all subscribers."""
        counts = [found.counts() for found in self.against]
        return {name: sum(count[name] for count in counts) for name in counts[0]}

    @property
    def missed(self) -> float:
        """The number of alarms whose own start was not reported."""
        return self.counts["lost"] + self.counts["merged"]

    @property
    def delays(self) -> list[Duration]:
        return sorted(delay for found in self.against for delay in found.delays())


@dataclass(frozen=True)
class Comparison:
    """The results of all scenarios for one history."""

    events: Sequence[Event]
    ideal: list[Report]
    scenarios: Sequence[ComparedScenario]


def locate(events: Iterable[Event], at: Mapping[str, Point]) -> list[Event]:
    """Return readings with the positions of the nodes that publish them."""
    return [replace(event, location=tuple(at[event.source]), place=None) for event in events]


def ideal(app: App, events: Iterable[Event]) -> list[Report]:
    """Return the notifications of an engine that receives every reading in time, each with its event time."""
    from ..runtimes.local.engine import Engine

    return [(notification.event.time, notification) for notification in Engine(app).run(events)]


def live(
    app: App, events: Sequence[Event], ideal: list[Report], lateness: Duration, seed: int
) -> ComparedScenario:
    """Return the result of an engine that receives each reading late, by a random time up to ``lateness``."""
    from ..definition.check import correcting
    from ..network.sim.chance import stream
    from ..runtimes.local.engine import Engine

    draw, engine = stream(seed, "lateness"), Engine(app)
    arrivals = sorted(
        ((event.time + int(draw.random() * lateness), i) for i, event in enumerate(events)),
    )
    notifications = [
        (known_at, notification) for known_at, i in arrivals for notification in engine.push(events[i])
    ]
    notifications += [(arrivals[-1][0], notification) for notification in engine.finish()]
    notifications = _final_notifications(notifications, {one.name for one in correcting(app)})
    name = f"live, up to {show_duration(lateness)} late" if lateness else "live, in time"
    return ComparedScenario(
        name, seed, notifications, [difference(ideal, notifications)], late=sum(engine.late_counts.values())
    )


def _final_notifications(notifications: list[Report], correcting_conditions: Collection[str]) -> list[Report]:
    """Return the notifications that are valid in the end.

    A correction replaces the notifications that it corrects.
    """
    known = {notification.what: known_at for known_at, notification in notifications}
    rest = standing(
        notification
        for _, notification in notifications
        if notification.subscription in correcting_conditions
    )
    return [
        *(
            (known_at, notification)
            for known_at, notification in notifications
            if notification.subscription not in correcting_conditions
        ),
        *((known[notification.what], notification) for notification in rest),
    ]


def network(
    settings: Mapping[str, Any], seed: int, played: PlayResult, ideal: list[Report], events: Sequence[Event]
) -> ComparedScenario:
    """Return the result of a network. Each subscriber's notifications are compared with the alarms it
    subscribed to.
    """
    from ..network.motes.study import label

    until = max(event.time for event in events)
    wishes: dict[Any, list[Report]] = {wish: [] for wish in played.subscriptions}
    for wish, known_at, notification in played.notifications:
        wishes[wish].append((known_at, notification))
    against = [
        difference([one for one in ideal if one[1].subscription == wish.name], notifications, until)
        for wish, notifications in wishes.items()
    ]
    name = ", ".join(label(value) for value in settings.values()) or "network"
    notifications = [(known_at, notification) for _, known_at, notification in played.notifications]
    return ComparedScenario(name, seed, notifications, against, played.outcome.measures["energy_mj"] / 1e3)


# --- as text ---

HEADING = (
    "world",
    "alarms",
    "told",
    "shifted",
    "merged",
    "lost",
    "doubled",
    "no end",
    "false",
    "delay",
    "joules",
)


def summary_lines(answer: Comparison) -> Iterator[str]:
    """Yield a line for each scenario, the savings and their price, and the alarms with a wrong
    notification.
    """
    from ..network.motes.report.terminal import align

    events, conditions = answer.events, {notification.subscription for _, notification in answer.ideal}
    span = max(event.time for event in events) - min(event.time for event in events)
    sources = len({event.source for event in events})
    yield (
        f"{counted(len(events), 'reading')} of {counted(sources, 'source')} over "
        f"{show_duration(max(MINUTE, span // MINUTE * MINUTE))}; "
        f"{counted(_alarms(answer.ideal), 'alarm')} of {', '.join(sorted(conditions))}"
    )
    by_name = _by_name(answer.scenarios)
    yield from align([HEADING, *(_row(name, runs) for name, runs in by_name.items())])
    yield from _prices(by_name)
    changed = list(_wrong_alarms(answer.scenarios))
    if changed:
        yield "not told as they are:"
        yield from changed[:MOST]
        if len(changed) > MOST:
            yield f"  and {len(changed) - MOST:,} more: --json has them all"


def _alarms(ideal: Iterable[Report]) -> int:
    return sum(map(len, pair_reports(ideal).values()))


def _by_name(scenarios: Sequence[ComparedScenario]) -> dict[str, list[ComparedScenario]]:
    found: dict[str, list[ComparedScenario]] = {}
    for scenario in scenarios:
        found.setdefault(scenario.name, []).append(scenario)
    return found


def _row(name: str, runs: Sequence[ComparedScenario]) -> list[str]:
    """Return the cells of a table row: means over the runs of a scenario with different seeds."""
    fields = ("alarms", "told", "shifted", "merged", "lost", "doubled", "unended", "false")
    numbers = [fmean(scenario.counts[field] for scenario in runs) for field in fields]
    delays = sorted(delay for scenario in runs for delay in scenario.delays)
    joules = [scenario.joules for scenario in runs if scenario.joules is not None]
    return [
        name,
        *(f"{number:,.4g}" for number in numbers),
        f"{median(delays) / SECOND:.3g} s" if delays else "–",
        f"{fmean(joules):,.4g}" if joules else "–",
    ]


def _prices(by_name: Mapping[str, Sequence[ComparedScenario]]) -> Iterator[str]:
    """Yield what each scenario saves compared with the most expensive one.

    Each line also has the alarms that the scenario misses for that.
    """
    costs = {
        name: {
            "joules": fmean(w.joules for w in runs if w.joules is not None),
            "missed": fmean(w.missed for w in runs),
        }
        for name, runs in by_name.items()
        if runs[0].joules is not None
    }
    if len(costs) < 2:
        return
    costliest = max(costs, key=lambda name: costs[name]["joules"])
    for name, cost in costs.items():
        if name == costliest:
            continue
        price = savings(costs[costliest], cost)
        if not price["saved"]:
            continue
        missed = price["missed"]
        what = (
            "and misses no more" if missed == 0
            else f"and misses {-missed:.3g} fewer" if missed < 0
            else f"and misses {missed:.3g} more: {price['missed_per_joule']:.3g} for each joule"
        )  # fmt: skip
        share = price["saved"] / costs[costliest]["joules"]
        yield f"{name} saves {price['saved']:.4g} J beside {costliest} ({share:.1%}) {what}"


def _wrong_alarms(scenarios: Sequence[ComparedScenario]) -> Iterator[str]:
    for scenario in scenarios:
        for found in scenario.against:
            for alarm in found.alarms:
                if (what := _fate(alarm)) is not None:
                    yield f"  {_when(alarm)}: {what} ({scenario.name}, seed {scenario.seed})"
            for (subscription, scope), intervals in found.false.items():
                for interval in intervals:
                    at = show_instant(interval.start)
                    run = f"{scenario.name}, seed {scenario.seed}"
                    yield f"  {subscription} {scope or ''} {at}: made up ({run})"


def _when(alarm: Alarm) -> str:
    return f"{alarm.subscription} {alarm.scope or ''} {show_instant(alarm.start)}".replace("  ", " ")


def _fate(alarm: Alarm) -> str | None:
    """Return how the notifications of an alarm were wrong; ``None`` if they were right."""
    words: list[str] = [] if alarm.fate == "told" else [alarm.fate]
    words += [f"its start told {alarm.doubled + 1} times"] if alarm.doubled else []
    words += ["its end never told"] if alarm.unended else []
    return ", ".join(words) or None


# --- as JSON ---


def to_json(answer: Comparison) -> str:
    """Return all scenarios as JSON, each with the fate of every alarm."""
    found = {
        "readings": len(answer.events),
        "sources": len({event.source for event in answer.events}),
        "alarms": _alarms(answer.ideal),
        "worlds": [_scenario_row(scenario) for scenario in answer.scenarios],
    }
    return json.dumps(found, indent=2, ensure_ascii=False)


def _scenario_row(scenario: ComparedScenario) -> dict[str, Any]:
    return {
        "world": scenario.name,
        "seed": scenario.seed,
        **scenario.counts,
        "late": scenario.late,
        "joules": scenario.joules,
        "each": [_alarm(alarm) for found in scenario.against for alarm in found.alarms],
        "made_up": [
            {"subscription": subscription, "scope": scope, "start": show_instant(interval.start)}
            for found in scenario.against
            for (subscription, scope), intervals in found.false.items()
            for interval in intervals
        ],
    }


def _alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        "subscription": alarm.subscription,
        "scope": alarm.scope,
        "start": show_instant(alarm.start),
        "end": None if alarm.end is None else show_instant(alarm.end),
        "fate": alarm.fate,
        "delay": _seconds(alarm.delay),
        "doubled": alarm.doubled,
        "end_delay": _seconds(alarm.end_delay),
        "unended": alarm.unended,
    }


def _seconds(length: Duration | None) -> float | None:
    return None if length is None else length / SECOND


# --- as a picture ---


def draw(answer: Comparison, path: Path) -> None:
    """Write a bar chart of active conditions in each scenario.

    It shows the conditions in which scenarios differ. If there are none, it shows all conditions that were
    active.
    """
    from ..network.motes.report.style import new_figure, tidy
    from ..plot import HOLDS, OFF, bar

    notifications_by_name = {"ideal": answer.ideal} | {
        name: runs[0].notifications for name, runs in _by_name(answer.scenarios).items()
    }
    found = {name: pair_reports(notifications) for name, notifications in notifications_by_name.items()}
    places = (_differing(answer.scenarios) or list(found["ideal"]))[: max(1, DRAWN // len(found))]
    end = max(event.time for event in answer.events)
    figure = new_figure(9, 0.9 + 0.24 * len(found) * len(places))
    panel = figure.subplots()
    rows = [(place, name) for place in places for name in found]
    for at, (place, name) in enumerate(rows):
        held = [bar(each.start, end if each.end is None else each.end) for each in found[name].get(place, ())]
        panel.broken_barh(
            held, (at - 0.35, 0.7), facecolors=OFF if name == "ideal" else HOLDS, edgecolors=HOLDS
        )
    panel.set_yticks(range(len(rows)), [f"{' '.join(filter(None, place))}: {name}" for place, name in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.xaxis_date(tz=UTC)
    tidy(panel, "what held, and what was told of it")
    figure.savefig(path, dpi=110)


def _differing(scenarios: Sequence[ComparedScenario]) -> list[Place]:
    """Return the conditions and scopes with a wrong notification, the earliest first."""
    alarms = [alarm for scenario in scenarios for found in scenario.against for alarm in found.alarms]
    changed = sorted((a for a in alarms if _fate(a) is not None), key=lambda alarm: alarm.start)
    return list(dict.fromkeys((alarm.subscription, alarm.scope) for alarm in changed))
