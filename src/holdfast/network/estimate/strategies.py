"""The strategies by which readings can reach subscribers, compared in one network.

A strategy is a protocol with settings. To compare a further one, add it to `strategies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...errors import HoldfastError, UsageError, did_you_mean
from ...model.event import Event
from ..motes.case import SimulationCase, plan_run
from ..motes.cbps import Cbps
from ..motes.dds import Dds
from ..motes.direct import Direct
from ..motes.fault import ScenarioError
from ..motes.play import cast, source_positions
from ..motes.qps import Qps
from ..motes.routing import Geographic
from ..motes.scenario import Protocol, Subscriber
from .forecast import Forecast, forecast
from .rates import Rates, rates

P = TypeVar("P", bound=Protocol)

SINK, SOURCE, SCOPES = "everything to the sink", "filters at the source", "brokers, nested scopes"
DDS = {
    "DDS, brokered": "DefTDDS",
    "DDS, brokerless": "BLTDDS",
    "DDS, hybrid": "HyTDDS",
    "DDS, energy-aware": "EATDDS",
}
QUADS = "Quad-PubSub"


@dataclass(frozen=True)
class Strategy:
    """A protocol in the network with its forecast, or with the reason why it cannot run there."""

    name: str
    case: SimulationCase
    forecast: Forecast | None
    without: Mapping[str, Forecast | None]
    """For each subscription, the forecast without it; ``None`` if it is the only subscription."""
    why_not: str = ""
    note: str = ""

    def adds(self, sub: str) -> tuple[float, float]:
        """Return the joules and frames per day that one subscription adds to the others."""
        assert self.forecast is not None
        other = self.without[sub]
        if other is None:
            whole = self.forecast.idle + self.forecast.of_readings()
            return float(whole.joules.sum()), whole.frames
        joules = float((self.forecast.joules() - other.joules()).sum())
        return round(joules, 9), round(self.forecast.frames - other.frames, 6)


def strategies(case: SimulationCase) -> dict[str, SimulationCase]:
    """Return the network with each protocol, by the name of the strategy. The settings of the network's own
    protocol are preserved.
    """
    own = case.scenario.protocol
    dds, cbps, qps = _as(own, Dds()), _as(own, Cbps()), _as(own, Qps())
    found: dict[str, Protocol] = {SINK: Direct(), SOURCE: Direct(filters="source"), SCOPES: cbps}
    found |= {name: replace(dds, mode=mode) for name, mode in DDS.items()}  # type: ignore[arg-type]
    cases = {
        name: replace(case, scenario=replace(case.scenario, protocol=protocol))
        for name, protocol in found.items()
    }
    routing = case.scenario.routing if isinstance(case.scenario.routing, Geographic) else Geographic()
    cases[QUADS] = replace(case, scenario=replace(case.scenario, protocol=qps, routing=routing))
    return cases


def _as(own: Protocol, other: P) -> P:
    return own if isinstance(own, type(other)) else other


def only_subscription(case: SimulationCase, seed: int, only: str | None) -> SimulationCase:
    """Return the network with one subscription only, or unchanged if ``only`` is ``None``."""
    if only is None:
        return case
    names = {sub.name for sub in plan_run(case, seed).subscriptions}
    if only not in names:
        hint = did_you_mean(only, names) or f"There is {', '.join(sorted(names)) or 'none'}."
        raise UsageError(f"--subscription {only}: nobody in this network wants that. {hint}")
    return _with(case, seed, {only})


def _with(case: SimulationCase, seed: int, names: set[str]) -> SimulationCase:
    topology, subscriptions = case.topology_for(seed), plan_run(case, seed).subscriptions
    subscribers = tuple(
        Subscriber(node=topology.names[sub.node], to=sub.name, start=sub.start, stop=sub.stop)
        for sub in subscriptions
        if sub.name in names
    )
    return replace(case, scenario=replace(case.scenario, subscribers=subscribers))


def compare_strategies(case: SimulationCase, seed: int, events: Sequence[Event]) -> Iterator[Strategy]:
    """Yield each strategy with its forecast, and with the forecasts without each subscription."""
    source_positions(cast(case, events), seed)
    plan = plan_run(cast(case, events), seed)
    whole = rates(events, case.definition, plan.subscriptions)
    names = tuple(dict.fromkeys(sub.name for sub in plan.subscriptions))
    for name, variant in strategies(case).items():
        note = "over geographic routing" if variant.scenario.routing != case.scenario.routing else ""
        try:
            found = _forecast(variant, seed, events, whole)
            without: dict[str, Forecast | None] = dict.fromkeys(names)
            for sub in names if len(names) > 1 else ():
                others = _with(variant, seed, {*names} - {sub})
                without[sub] = _forecast(others, seed, events, whole)
        except ScenarioError as error:
            yield Strategy(name, variant, None, {}, error.message)
        except HoldfastError as error:
            yield Strategy(name, variant, None, {}, str(error))
        else:
            yield Strategy(name, variant, found, without, note=note)


def forecast_own_protocol(case: SimulationCase, seed: int, events: Sequence[Event], sub: str) -> Forecast:
    """Forecast the network with its own protocol, for one subscription."""
    case = only_subscription(case, seed, sub)
    source_positions(cast(case, events), seed)
    subscriptions = plan_run(cast(case, events), seed).subscriptions
    return forecast(cast(case, events), seed, rates(events, case.definition, subscriptions))


def _forecast(case: SimulationCase, seed: int, events: Sequence[Event], whole: Rates) -> Forecast:
    names = tuple(dict.fromkeys(sub.name for sub in plan_run(case, seed).subscriptions if not sub.plain))
    return forecast(cast(case, events), seed, whole.of(names))
