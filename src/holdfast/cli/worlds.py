"""The worlds of ``compare``: the ideal, live with its lateness, and a network; and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ..errors import counted
from ..files.difference import Alarm, Difference, Heard, Place, between, difference, stretches
from ..model.event import Event, standing
from ..model.instant import MINUTE, SECOND, Duration, show_duration, show_instant

if TYPE_CHECKING:
    from ..lang.app import App
    from ..model.space import Point
    from ..runtimes.sensornet.play import Played

MOST = 20
"""How many alarms are listed one by one on a terminal."""
DRAWN = 40
"""How many rows a picture has at most."""


@dataclass(frozen=True)
class World:
    """What one world told, beside the ideal, and the joules that it took."""

    name: str
    seed: int
    heard: list[Heard]
    against: list[Difference]
    """For each who is told."""
    joules: float | None = None
    late: int = 0
    """How many readings came too late to count."""

    @property
    def counts(self) -> dict[str, float]:
        """Over all who are told."""
        each = [one.counts() for one in self.against]
        return {name: sum(some[name] for some in each) for name in each[0]}

    @property
    def missed(self) -> float:
        """Alarms of whose own start nobody was told."""
        return self.counts["lost"] + self.counts["merged"]

    @property
    def delays(self) -> list[Duration]:
        return sorted(delay for one in self.against for delay in one.delays())


@dataclass(frozen=True)
class Answer:
    """All of them over one history."""

    events: Sequence[Event]
    ideal: list[Heard]
    worlds: Sequence[World]


def placed(events: Iterable[Event], at: Mapping[str, Point]) -> list[Event]:
    """Readings where the nodes stand that say them."""
    return [replace(event, location=tuple(at[event.source]), place=None) for event in events]


def ideal(app: App, events: Iterable[Event]) -> list[Heard]:
    """What the definition says of the readings, known at the moment of which it is said."""
    from ..runtimes.local.engine import Engine

    return [(said.event.time, said) for said in Engine(app).run(events)]


def live(app: App, events: Sequence[Event], ideal: list[Heard], lateness: Duration, seed: int) -> World:
    """What an engine tells to which each reading comes late, by anything up to ``lateness``."""
    from ..lang.check import correcting
    from ..runtimes.local.engine import Engine
    from ..sim.chance import stream

    draw, engine = stream(seed, "lateness"), Engine(app)
    arrivals = sorted(
        ((event.time + int(draw.random() * lateness), i) for i, event in enumerate(events)),
    )
    heard = [(came, said) for came, i in arrivals for said in engine.push(events[i])]
    heard += [(arrivals[-1][0], said) for said in engine.finish()]
    heard = _standing(heard, {one.name for one in correcting(app)})
    name = f"live, up to {show_duration(lateness)} late" if lateness else "live, in time"
    return World(name, seed, heard, [difference(ideal, heard)], late=sum(engine.late_counts.values()))


def _standing(heard: list[Heard], corrected: Collection[str]) -> list[Heard]:
    """What was heard; of conditions that correct what they have told what stands, and when it was known."""
    known = {said.what: came for came, said in heard}
    rest = standing(said for _, said in heard if said.subscription in corrected)
    return [
        *((came, said) for came, said in heard if said.subscription not in corrected),
        *((known[said.what], said) for said in rest),
    ]


def network(
    settings: Mapping[str, Any], seed: int, played: Played, ideal: list[Heard], events: Sequence[Event]
) -> World:
    """What the subscribers of a network were told, each beside the alarms that it asked for."""
    from ..runtimes.sensornet.study import label

    until = max(event.time for event in events)
    wishes: dict[Any, list[Heard]] = {wish: [] for wish in played.wishes}
    for wish, came, said in played.told:
        wishes[wish].append((came, said))
    against = [
        difference([one for one in ideal if one[1].subscription == wish.name], heard, until)
        for wish, heard in wishes.items()
    ]
    name = ", ".join(label(value) for value in settings.values()) or "network"
    heard = [(came, said) for _, came, said in played.told]
    return World(name, seed, heard, against, played.outcome.measures["energy_mj"] / 1e3)


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


def spoken(answer: Answer) -> Iterator[str]:
    """A line for each world, what is saved at which price, and alarms that were not told as they are."""
    from ..runtimes.sensornet.report.terminal import aligned

    events, conditions = answer.events, {said.subscription for _, said in answer.ideal}
    span = max(event.time for event in events) - min(event.time for event in events)
    sources = len({event.source for event in events})
    yield (
        f"{counted(len(events), 'reading')} of {counted(sources, 'source')} over "
        f"{show_duration(max(MINUTE, span // MINUTE * MINUTE))}; "
        f"{counted(_alarms(answer.ideal), 'alarm')} of {', '.join(sorted(conditions))}"
    )
    ways = _ways(answer.worlds)
    yield from aligned([HEADING, *(_row(name, some) for name, some in ways.items())])
    yield from _prices(ways)
    changed = list(_changed(answer.worlds))
    if changed:
        yield "not told as they are:"
        yield from changed[:MOST]
        if len(changed) > MOST:
            yield f"  and {len(changed) - MOST:,} more: --json has them all"


def _alarms(ideal: Iterable[Heard]) -> int:
    return sum(map(len, stretches(ideal).values()))


def _ways(worlds: Sequence[World]) -> dict[str, list[World]]:
    found: dict[str, list[World]] = {}
    for world in worlds:
        found.setdefault(world.name, []).append(world)
    return found


def _row(name: str, some: Sequence[World]) -> list[str]:
    """The means over the seeds."""
    fields = ("alarms", "told", "shifted", "merged", "lost", "doubled", "unended", "false")
    numbers = [fmean(world.counts[field] for world in some) for field in fields]
    delays = sorted(delay for world in some for delay in world.delays)
    joules = [world.joules for world in some if world.joules is not None]
    return [
        name,
        *(f"{number:,.4g}" for number in numbers),
        f"{median(delays) / SECOND:.3g} s" if delays else "–",
        f"{fmean(joules):,.4g}" if joules else "–",
    ]


def _prices(ways: Mapping[str, Sequence[World]]) -> Iterator[str]:
    """What each way saves beside the one that takes most, and what is missed for it."""
    costs = {
        name: {
            "joules": fmean(w.joules for w in some if w.joules is not None),
            "missed": fmean(w.missed for w in some),
        }
        for name, some in ways.items()
        if some[0].joules is not None
    }
    if len(costs) < 2:
        return
    dear = max(costs, key=lambda name: costs[name]["joules"])
    for name, cost in costs.items():
        if name == dear:
            continue
        price = between(costs[dear], cost)
        if not price["saved"]:
            continue
        missed = price["missed"]
        what = (
            "and misses no more" if missed == 0
            else f"and misses {-missed:.3g} fewer" if missed < 0
            else f"and misses {missed:.3g} more: {price['missed_per_joule']:.3g} for each joule"
        )  # fmt: skip
        share = price["saved"] / costs[dear]["joules"]
        yield f"{name} saves {price['saved']:.4g} J beside {dear} ({share:.1%}) {what}"


def _changed(worlds: Sequence[World]) -> Iterator[str]:
    for world in worlds:
        for one in world.against:
            for alarm in one.alarms:
                if (what := _fate(alarm)) is not None:
                    yield f"  {_when(alarm)}: {what} ({world.name}, seed {world.seed})"
            for (subscription, scope), some in one.false.items():
                for stretch in some:
                    at = show_instant(stretch.start)
                    yield f"  {subscription} {scope or ''} {at}: made up ({world.name}, seed {world.seed})"


def _when(alarm: Alarm) -> str:
    return f"{alarm.subscription} {alarm.scope or ''} {show_instant(alarm.start)}".replace("  ", " ")


def _fate(alarm: Alarm) -> str | None:
    """What became of an alarm that was not told as it is."""
    words: list[str] = [] if alarm.fate == "told" else [alarm.fate]
    words += [f"its start told {alarm.doubled + 1} times"] if alarm.doubled else []
    words += ["its end never told"] if alarm.unended else []
    return ", ".join(words) or None


# --- as JSON ---


def to_json(answer: Answer) -> str:
    """All worlds, each with what became of every alarm."""
    found = {
        "readings": len(answer.events),
        "sources": len({event.source for event in answer.events}),
        "alarms": _alarms(answer.ideal),
        "worlds": [_world(world) for world in answer.worlds],
    }
    return json.dumps(found, indent=2, ensure_ascii=False)


def _world(world: World) -> dict[str, Any]:
    return {
        "world": world.name,
        "seed": world.seed,
        **world.counts,
        "late": world.late,
        "joules": world.joules,
        "each": [_alarm(alarm) for one in world.against for alarm in one.alarms],
        "made_up": [
            {"subscription": subscription, "scope": scope, "start": show_instant(stretch.start)}
            for one in world.against
            for (subscription, scope), some in one.false.items()
            for stretch in some
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


def draw(answer: Answer, path: Path) -> None:
    """What held in each world, one below the other, where they differ; else where anything held."""
    from ..plot import HOLDS, OFF, bar
    from ..runtimes.sensornet.report.style import new_figure, tidy

    told = {"ideal": answer.ideal} | {name: some[0].heard for name, some in _ways(answer.worlds).items()}
    found = {name: stretches(heard) for name, heard in told.items()}
    places = (_differing(answer.worlds) or list(found["ideal"]))[: max(1, DRAWN // len(found))]
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


def _differing(worlds: Sequence[World]) -> list[Place]:
    """Where an alarm was not told as it is, the earliest first."""
    alarms = [alarm for world in worlds for one in world.against for alarm in one.alarms]
    changed = sorted((a for a in alarms if _fate(a) is not None), key=lambda alarm: alarm.start)
    return list(dict.fromkeys((alarm.subscription, alarm.scope) for alarm in changed))
