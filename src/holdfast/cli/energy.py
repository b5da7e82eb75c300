"""``explain --network --input``: what a network will take for a definition, way by way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

from ..errors import InputError, UsageError
from ..model.instant import DAY, SECOND, Duration, show_duration
from .options import warning
from .simulate import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..model.event import Event
    from ..runtimes.sensornet.case import Case
    from ..runtimes.sensornet.estimate.budget import Plan
    from ..runtimes.sensornet.estimate.outlook import Outlook
    from ..runtimes.sensornet.estimate.ways import Way
    from ..runtimes.sensornet.study import Study

CROWDED = 0.02
"""From this share of time on the air on, frames wait for and destroy one another, which is not estimated."""
ABOUT = 0.98
"""Plans that last so much of the longest are about as good."""
LABELLED = 40
"""Up to so many nodes each has its number beside it on the map."""


class Asked(NamedTuple):
    """What somebody wants to know: of one subscription alone, how long it must last, with which links."""

    subscription: str | None
    must_last: Duration | None
    seed: int | None


def read_study(network: Path, definition: Path, lets: Mapping[str, Any]) -> Study:
    from ..runtimes.sensornet.study import read

    return read(network, definition, lets)


def require_enough(events: Sequence[Event]) -> None:
    """A history says something of a day if a source spoke often enough in it, and all if it has a day."""
    from ..runtimes.sensornet.estimate.rates import A_FEW, most_of_one, span

    if (most := most_of_one(events)) < A_FEW:
        raise InputError(
            f"the history is too short: no source has more than {most} readings; how often something "
            f"happens in a day is told from {A_FEW} on"
        )
    if (length := span(events)) < DAY:
        warning(f"the history covers {_span(length)}: every hour of a day is taken to be like it")


def answer(
    definition: Path,
    network: Path,
    events: Sequence[Event],
    asked: Asked,
    lets: Mapping[str, Any],
    as_json: bool,
    figure: Path | None,
) -> str:
    """What each way takes; in words or as JSON, and on a map."""
    if asked.must_last == 0:
        raise UsageError("--must-last: every network lasts for nothing; say more, such as 400 d")
    require_enough(events)
    study = read_study(network, definition, lets)
    seed = study.seeds[0] if asked.seed is None else asked.seed
    found = Energy(study.points[0].case, events, seed, asked.subscription)
    days = None if asked.must_last is None else asked.must_last / DAY
    if figure is not None:
        draw(found, figure)
    if as_json:
        return to_json(found, days)
    return "\n".join((*spoken(found), *(() if days is None else planned(found, days))))


def of_turns(
    definition: Path, network: Path, events: Sequence[Event], subscription: str, lets: Mapping[str, Any]
) -> Callable[[float], float]:
    """Joules a day of a network with its own protocol, by how often a day a subscription starts or ends."""
    from ..runtimes.sensornet.estimate.ways import by_itself

    require_enough(events)
    study = read_study(network, definition, lets)
    found = by_itself(study.points[0].case, study.seeds[0], events, subscription)
    return lambda a_day: found.by_turns(subscription, a_day)


class Energy:
    """The ways of a network for a history; with a number of days, plans that last as long."""

    def __init__(self, case: Case, events: Sequence[Event], seed: int, only: str | None) -> None:
        from ..runtimes.sensornet.estimate.ways import looked_at, wanted, ways

        self.case = wanted(case, seed, only)
        self.events = events
        self.ways: list[Way] = []
        with progress(len(ways(case))) as advance:
            for way in looked_at(self.case, seed, events):
                self.ways.append(way)
                advance()
        if not self.able:
            raise UsageError(f"no way can be estimated in this network: {self.ways[0].why_not}")

    @property
    def able(self) -> list[tuple[Way, Outlook]]:
        """The ways that can be, the thriftiest first."""
        found = [(way, way.outlook) for way in self.ways if way.outlook is not None]
        return sorted(found, key=lambda pair: float(pair[1].joules().max()))

    def plans(self, days: float) -> tuple[list[Plan], Plan]:
        """Those that last so long, and the nearest: of those that last about longest what loses least."""
        from ..runtimes.sensornet.estimate.budget import Budget, fitting

        first = self.able[0][1]
        if first.days() is None:
            raise UsageError(
                "--must-last: no battery of this network ends: say with energy.battery what a node has"
            )
        some = list(Budget(self.ways, first.rates, self.case.definition).plans())
        longest = max(one.days for one in some)
        return fitting(some, days), fitting(some, ABOUT * longest)[0]


# --- as text ---


def spoken(energy: Energy) -> Iterator[str]:
    """A line for each way; what each subscription adds; what is assumed."""
    _, first = energy.able[0]
    rates, rest = first.rates, energy.case.scenario.energy.rest
    readings = len(rates.events)
    yield (
        f"{readings:,} readings over {_span(rates.span)}, one in {rates.period():.3g} s of a source; "
        f"{len(first.plan.placed)} nodes; at rest: {rest}, {first.rest * 86400:.3g} J a day"
    )
    shown = _table("way", "J a day", "of one node", "frames a day", "told", "delay", "first dies")
    for way, one in energy.able:
        shown.add_row(*_row(way, one))
    yield from _printed(shown)
    yield from (f"{way.name}: cannot be here: {way.why_not}" for way in energy.ways if way.outlook is None)
    yield from (f"{way.name}: {way.note}" for way in energy.ways if way.note)
    yield from _subscriptions(energy)
    yield from _crowded(energy)


def _row(way: Way, one: Outlook) -> list[str]:
    joules, names = one.joules(), one.plan.placed.names
    told = [found for name in one.rates.subscriptions if (found := one.delay(name)) is not None]
    days = one.days()
    return [
        way.name,
        f"{joules.sum():,.4g}",
        f"{joules.max():,.4g} ({names[int(joules.argmax())]})",
        f"{one.frames:,.0f}",
        f"{min(share for _, share in told):.1%}" if told else "–",
        f"{max(delay for delay, _ in told):.3g} s" if told else "–",
        "–" if days is None else f"{days[0]:,.0f} d ({names[days[1]]})",
    ]


def _subscriptions(energy: Energy) -> Iterator[str]:
    """What one more subscription takes, beside the others."""
    names = list(energy.able[0][0].without)
    shown = _table("one more subscription adds", *names)
    for way, _ in energy.able:
        adds = [way.adds(name) for name in names]
        shown.add_row(way.name, *(f"{joules:.3g} J, {frames:,.0f}" for joules, frames in adds))
    yield ""
    yield from _printed(shown)


def _crowded(energy: Energy) -> Iterator[str]:
    """Where frames will meet, of which not all is estimated."""
    crowded = [(way.name, one.is_aired) for way, one in energy.able if one.busy > CROWDED]
    if more := [name for name, is_aired in crowded if not is_aired]:
        yield (
            f"expect more than is said of {', '.join(more)}: many messages at a time collide, which is not "
            "estimated; 'holdfast sim' tells how much"
        )
    if later := [name for name, is_aired in crowded if is_aired]:
        yield (
            f"expect alarms by {', '.join(later)} later than is said, and some not at all: its air is busy; "
            "'holdfast sim' tells"
        )


def planned(energy: Energy, days: float) -> Iterator[str]:
    """What has to change so that the network lasts, and what that costs in detection."""
    from ..runtimes.sensornet.estimate.budget import at_rest

    fits, longest = energy.plans(days)
    if not fits:
        resting = at_rest(energy.able[0][1])
        yield f"nothing that can be planned lasts {days:g} d; nearest: {_said(longest)}"
        if resting is not None and resting < days:
            yield (
                f"a node to which nothing happens lasts {resting:.4g} d: give it a larger battery, or let "
                "its radio sleep (mac: low-power-listening, energy.rest)"
            )
        return
    yield f"to last {days:g} d:"
    yield from (f"  {i}. {_said(plan)}" for i, plan in enumerate(fits, 1))


def _said(plan: Plan) -> str:
    changed = [plan.way]
    changed += [f"every {_ordinal(plan.every)} reading"] if plan.every > 1 else []
    if plan.wider > 1:
        changed += [f"{name} [{enter:g}; {exit:g}]" for name, (enter, exit) in plan.bands.items()]
    lost = [
        f"{name}: {one.met:,} of {one.known:,} told, {one.late:.3g} s late, {one.excess:.3g} s too long"
        for name, one in plan.detection.items()
    ]
    return f"{', '.join(changed)}: {plan.days:,.0f} d, {plan.joules:,.4g} J a day; {'; '.join(lost)}"


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _table(*names: str) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="")
    for i, name in enumerate(names):
        shown.add_column(name, justify="right" if i else "left")
    return shown


def _printed(table: Table) -> list[str]:
    console = Console(width=200, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def _span(length: Duration) -> str:
    if length >= 2 * DAY:
        return f"{length / DAY:.1f} d"
    return show_duration(max(SECOND, length // (60 * SECOND) * 60 * SECOND))


# --- as JSON ---


def to_json(energy: Energy, days: float | None) -> str:
    """Every way with every node and subscription; every plan that lasts, and the nearest."""
    found: dict[str, Any] = {"ways": [_way(way) for way in energy.ways]}
    if days is not None:
        fits, longest = energy.plans(days)
        found |= {"must_last": days, "plans": [_plan(plan) for plan in fits], "nearest": _plan(longest)}
    return json.dumps(found, indent=2, ensure_ascii=False)


def _way(way: Way) -> dict[str, Any]:
    one = way.outlook
    if one is None:
        return {"way": way.name, "why_not": way.why_not}
    joules, names, days = one.joules(), one.plan.placed.names, one.days()
    return {
        "way": way.name,
        "note": way.note,
        "joules": float(joules.sum()),
        "rest": one.rest * 86400,
        "beacons": float(one.control.joules.sum()),
        "once": float(one.start.joules.sum()),
        "frames": one.frames,
        "busy": one.busy,
        "days": None if days is None else days[0],
        "first": None if days is None else names[days[1]],
        "nodes": [
            {"node": name, "x": float(at[0]), "y": float(at[1]), "joules": float(j)}
            for name, at, j in zip(names, one.plan.placed.positions, joules, strict=True)
        ],
        "subscriptions": [
            {
                "subscription": name,
                "turns": one.rates.turns(name) if name in one.rates.subscriptions else None,
                **dict(zip(("delay", "told"), _delay(one, name), strict=True)),
                **dict(zip(("adds_joules", "adds_frames"), way.adds(name), strict=True)),
            }
            for name in way.without
        ],
    }


def _delay(one: Outlook, name: str) -> tuple[float | None, float | None]:
    found = one.delay(name) if name in one.rates.subscriptions else None
    return (None, None) if found is None else found


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "way": plan.way,
        "every": plan.every,
        "bands": {name: list(band) for name, band in plan.bands.items()},
        "days": plan.days,
        "joules": plan.joules,
        "detection": {name: asdict(one) | {"share": one.share} for name, one in plan.detection.items()},
    }


# --- as a picture ---


def draw(energy: Energy, path: Path) -> None:
    """Joules of each node on the map, a panel for each way, all in one scale."""
    from matplotlib.colors import LogNorm

    from ..runtimes.sensornet.report.style import new_figure, tidy

    able = energy.able
    columns = min(4, len(able))
    rows = -(-len(able) // columns)
    figure: Figure = new_figure(3.1 * columns, 3.0 * rows)
    every = [one.joules() for _, one in able]
    low, high = min(float(j.min()) for j in every), max(float(j.max()) for j in every)
    scale = LogNorm(low * 0.999, high * 1.001)
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat[len(able) :]:
        panel.set_visible(False)
    for panel, (way, one), joules in zip(panels.flat, able, every, strict=False):
        places = one.plan.placed.positions
        dots = panel.scatter([p[0] for p in places], [p[1] for p in places], 60, joules, norm=scale)
        wants = {wish.node for wish in one.plan.wishes}
        panel.scatter(
            [places[n][0] for n in wants], [places[n][1] for n in wants], 130, "none", edgecolors="k"
        )
        for place, spent in zip(places, joules, strict=True):
            if len(places) <= LABELLED:
                above = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "size": 6}
                panel.annotate(f"{spent:.3g}", place[:2], **above)
        panel.set_aspect("equal")
        panel.margins(0.15)
        tidy(panel, way.name)
    figure.colorbar(dots, ax=list(panels.flat), label="J a day", shrink=0.8)
    figure.savefig(path, dpi=110)
