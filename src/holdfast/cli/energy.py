"""Output of ``explain --network --input``: the energy that a network needs for a definition, by strategy."""

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
    from ..network.estimate.budget import SavingPlan
    from ..network.estimate.forecast import Forecast
    from ..network.estimate.strategies import Strategy
    from ..network.motes.case import SimulationCase
    from ..network.motes.study import Study

CROWDED = 0.02
"""From this share of airtime on, frames delay and destroy one another, which is not estimated."""
ABOUT = 0.98
"""Plans that reach this share of the longest lifetime count as equally good."""
LABELLED = 40
"""The most nodes for which a map writes numbers."""


class EnergyOptions(NamedTuple):
    """Options of the command: one subscription only, a required lifetime in µs, and the seed of the links."""

    subscription: str | None
    must_last: Duration | None
    seed: int | None


def read_study(network: Path, definition: Path, lets: Mapping[str, Any]) -> Study:
    from ..network.motes.study import read

    return read(network, definition, lets)


def require_enough(events: Sequence[Event]) -> None:
    """Raise ``InputError`` if no source has enough readings for an estimate. Warn if the history is shorter
    than a day.
    """
    from ..network.estimate.rates import A_FEW, most_of_one, span

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
    options: EnergyOptions,
    lets: Mapping[str, Any],
    as_json: bool,
    figure: Path | None,
) -> str:
    """Return the output of the command as text or JSON. Writes the map if ``figure`` is given."""
    if options.must_last == 0:
        raise UsageError("--must-last: every network lasts for nothing; say more, such as 400 d")
    require_enough(events)
    study = read_study(network, definition, lets)
    seed = study.seeds[0] if options.seed is None else options.seed
    found = StrategyComparison(study.points[0].case, events, seed, options.subscription)
    days = None if options.must_last is None else options.must_last / DAY
    if figure is not None:
        draw(found, figure)
    if as_json:
        return to_json(found, days)
    return "\n".join((*summary_lines(found), *(() if days is None else plan_lines(found, days))))


def joules_by_turns(
    definition: Path, network: Path, events: Sequence[Event], subscription: str, lets: Mapping[str, Any]
) -> Callable[[float], float]:
    """Return a function from a subscription's starts and ends per day to joules per day of a network.

    The network uses its own protocol.
    """
    from ..network.estimate.strategies import forecast_own_protocol

    require_enough(events)
    study = read_study(network, definition, lets)
    found = forecast_own_protocol(study.points[0].case, study.seeds[0], events, subscription)
    return lambda a_day: found.by_turns(subscription, a_day)


class StrategyComparison:
    """The strategies of a network, estimated for a history, and changes for a required lifetime."""

    def __init__(self, case: SimulationCase, events: Sequence[Event], seed: int, only: str | None) -> None:
        from ..network.estimate.strategies import compare_strategies, only_subscription, strategies

        self.case = only_subscription(case, seed, only)
        self.events = events
        self.strategies: list[Strategy] = []
        with progress(len(strategies(case))) as advance:
            for strategy in compare_strategies(self.case, seed, events):
                self.strategies.append(strategy)
                advance()
        if not self.able:
            raise UsageError(f"no way can be estimated in this network: {self.strategies[0].why_not}")

    @property
    def able(self) -> list[tuple[Strategy, Forecast]]:
        """The possible strategies with their forecasts. The strategy with the least energy at its busiest
        node is first.
        """
        found = [
            (strategy, strategy.forecast) for strategy in self.strategies if strategy.forecast is not None
        ]
        return sorted(found, key=lambda pair: float(pair[1].joules().max()))

    def plans(self, days: float) -> tuple[list[SavingPlan], SavingPlan]:
        """Return the plans that last ``days``, and the nearest plan.

        The nearest one has the least loss among the plans that last almost the longest.
        """
        from ..network.estimate.budget import Budget, fitting

        first = self.able[0][1]
        if first.days() is None:
            raise UsageError(
                "--must-last: no battery of this network ends: say with energy.battery what a node has"
            )
        plans = list(Budget(self.strategies, first.rates, self.case.definition).plans())
        longest = max(plan.days for plan in plans)
        return fitting(plans, days), fitting(plans, ABOUT * longest)[0]


# --- as text ---


def summary_lines(energy: StrategyComparison) -> Iterator[str]:
    """Yield a line for each strategy, then the cost of each subscription, and the assumptions."""
    _, first = energy.able[0]
    rates, rest = first.rates, energy.case.scenario.energy.rest
    readings = len(rates.events)
    yield (
        f"{readings:,} readings over {_span(rates.span)}, one in {rates.period():.3g} s of a source; "
        f"{len(first.plan.topology)} nodes; at rest: {rest}, {first.rest * 86400:.3g} J a day"
    )
    table = _table("way", "J a day", "of one node", "frames a day", "told", "delay", "first dies")
    for strategy, forecast in energy.able:
        table.add_row(*_row(strategy, forecast))
    yield from _render(table)
    yield from (
        f"{strategy.name}: cannot be here: {strategy.why_not}"
        for strategy in energy.strategies
        if strategy.forecast is None
    )
    yield from (f"{strategy.name}: {strategy.note}" for strategy in energy.strategies if strategy.note)
    yield from _subscriptions(energy)
    yield from _warnings(energy)


def _row(strategy: Strategy, forecast: Forecast) -> list[str]:
    joules, names = forecast.joules(), forecast.plan.topology.names
    deliveries = [
        found for name in forecast.rates.subscriptions if (found := forecast.delay(name)) is not None
    ]
    days = forecast.days()
    return [
        strategy.name,
        f"{joules.sum():,.4g}",
        f"{joules.max():,.4g} ({names[int(joules.argmax())]})",
        f"{forecast.frames:,.0f}",
        f"{min(share for _, share in deliveries):.1%}" if deliveries else "–",
        f"{max(delay for delay, _ in deliveries):.3g} s" if deliveries else "–",
        "–" if days is None else f"{days[0]:,.0f} d ({names[days[1]]})",
    ]


def _subscriptions(energy: StrategyComparison) -> Iterator[str]:
    """Yield a table of what one more subscription costs in addition to the others."""
    names = list(energy.able[0][0].without)
    table = _table("one more subscription adds", *names)
    for strategy, _ in energy.able:
        adds = [strategy.adds(name) for name in names]
        table.add_row(strategy.name, *(f"{joules:.3g} J, {frames:,.0f}" for joules, frames in adds))
    yield ""
    yield from _render(table)


def _warnings(energy: StrategyComparison) -> Iterator[str]:
    """Yield warnings about strategies whose frames interfere, which the estimate covers only partly."""
    crowded = [
        (strategy.name, forecast.is_simulated)
        for strategy, forecast in energy.able
        if forecast.busy > CROWDED
    ]
    if more := [name for name, is_simulated in crowded if not is_simulated]:
        yield (
            f"expect more than is said of {', '.join(more)}: many messages at a time collide, which is not "
            "estimated; 'holdfast sim' tells how much"
        )
    if later := [name for name, is_simulated in crowded if is_simulated]:
        yield (
            f"expect alarms by {', '.join(later)} later than is said, and some not at all: its air is busy; "
            "'holdfast sim' tells"
        )


def plan_lines(energy: StrategyComparison, days: float) -> Iterator[str]:
    """Yield the changes for a required lifetime in days, and what they cost in detection."""
    from ..network.estimate.budget import at_rest

    fits, longest = energy.plans(days)
    if not fits:
        resting = at_rest(energy.able[0][1])
        yield f"nothing that can be planned lasts {days:g} d; nearest: {_describe_plan(longest)}"
        if resting is not None and resting < days:
            yield (
                f"a node to which nothing happens lasts {resting:.4g} d: give it a larger battery, or let "
                "its radio sleep (mac: low-power-listening, energy.rest)"
            )
        return
    yield f"to last {days:g} d:"
    yield from (f"  {i}. {_describe_plan(plan)}" for i, plan in enumerate(fits, 1))


def _describe_plan(plan: SavingPlan) -> str:
    changed = [plan.strategy]
    changed += [f"every {_ordinal(plan.every)} reading"] if plan.every > 1 else []
    if plan.wider > 1:
        changed += [f"{name} [{enter:g}; {exit:g}]" for name, (enter, exit) in plan.bands.items()]
    lost = [
        f"{name}: {d.met:,} of {d.known:,} told, {d.late:.3g} s late, {d.excess:.3g} s too long"
        for name, d in plan.detection.items()
    ]
    return f"{', '.join(changed)}: {plan.days:,.0f} d, {plan.joules:,.4g} J a day; {'; '.join(lost)}"


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    for i, name in enumerate(names):
        table.add_column(name, justify="right" if i else "left")
    return table


def _render(table: Table) -> list[str]:
    console = Console(width=200, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def _span(length: Duration) -> str:
    if length >= 2 * DAY:
        return f"{length / DAY:.1f} d"
    return show_duration(max(SECOND, length // (60 * SECOND) * 60 * SECOND))


# --- as JSON ---


def to_json(energy: StrategyComparison, days: float | None) -> str:
    """Return every strategy with every node and subscription as JSON; with ``days``, also the plans for that
    lifetime.
    """
    found: dict[str, Any] = {"ways": [_strategy_row(strategy) for strategy in energy.strategies]}
    if days is not None:
        fits, longest = energy.plans(days)
        found |= {"must_last": days, "plans": [_plan(plan) for plan in fits], "nearest": _plan(longest)}
    return json.dumps(found, indent=2, ensure_ascii=False)


def _strategy_row(strategy: Strategy) -> dict[str, Any]:
    forecast = strategy.forecast
    if forecast is None:
        return {"way": strategy.name, "why_not": strategy.why_not}
    joules, names, days = forecast.joules(), forecast.plan.topology.names, forecast.days()
    return {
        "way": strategy.name,
        "note": strategy.note,
        "joules": float(joules.sum()),
        "rest": forecast.rest * 86400,
        "beacons": float(forecast.control.joules.sum()),
        "once": float(forecast.start.joules.sum()),
        "frames": forecast.frames,
        "busy": forecast.busy,
        "days": None if days is None else days[0],
        "first": None if days is None else names[days[1]],
        "nodes": [
            {"node": name, "x": float(at[0]), "y": float(at[1]), "joules": float(j)}
            for name, at, j in zip(names, forecast.plan.topology.positions, joules, strict=True)
        ],
        "subscriptions": [
            {
                "subscription": name,
                "turns": forecast.rates.turns(name) if name in forecast.rates.subscriptions else None,
                **dict(zip(("delay", "told"), _delay(forecast, name), strict=True)),
                **dict(zip(("adds_joules", "adds_frames"), strategy.adds(name), strict=True)),
            }
            for name in strategy.without
        ],
    }


def _delay(forecast: Forecast, name: str) -> tuple[float | None, float | None]:
    found = forecast.delay(name) if name in forecast.rates.subscriptions else None
    return (None, None) if found is None else found


def _plan(plan: SavingPlan) -> dict[str, Any]:
    return {
        "way": plan.strategy,
        "every": plan.every,
        "bands": {name: list(band) for name, band in plan.bands.items()},
        "days": plan.days,
        "joules": plan.joules,
        "detection": {name: asdict(found) | {"share": found.share} for name, found in plan.detection.items()},
    }


# --- as a picture ---


def draw(energy: StrategyComparison, path: Path) -> None:
    """Write a map of joules per node, with a panel for each strategy, on one scale."""
    from matplotlib.colors import LogNorm

    from ..network.motes.report.style import new_figure, tidy

    able = energy.able
    columns = min(4, len(able))
    rows = -(-len(able) // columns)
    figure: Figure = new_figure(3.1 * columns, 3.0 * rows)
    every = [forecast.joules() for _, forecast in able]
    low, high = min(float(j.min()) for j in every), max(float(j.max()) for j in every)
    scale = LogNorm(low * 0.999, high * 1.001)
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat[len(able) :]:
        panel.set_visible(False)
    for panel, (strategy, forecast), joules in zip(panels.flat, able, every, strict=False):
        places = forecast.plan.topology.positions
        dots = panel.scatter([p[0] for p in places], [p[1] for p in places], 60, joules, norm=scale)
        subscribers = {subscription.node for subscription in forecast.plan.subscriptions}
        panel.scatter(
            [places[n][0] for n in subscribers],
            [places[n][1] for n in subscribers],
            130,
            "none",
            edgecolors="k",
        )
        for place, node_joules in zip(places, joules, strict=True):
            if len(places) <= LABELLED:
                above = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "size": 6}
                panel.annotate(f"{node_joules:.3g}", place[:2], **above)
        panel.set_aspect("equal")
        panel.margins(0.15)
        tidy(panel, strategy.name)
    figure.colorbar(dots, ax=list(panels.flat), label="J a day", shrink=0.8)
    figure.savefig(path, dpi=110)
