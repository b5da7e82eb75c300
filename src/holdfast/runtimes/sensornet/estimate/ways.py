"""The ways in which events may come to those who want to know, beside one another in one network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ....errors import HoldfastError, UsageError, did_you_mean
from ....model.event import Event
from ..case import Case, planned
from ..cbps import Cbps
from ..dds import Dds
from ..direct import Direct
from ..fault import Fault
from ..play import cast, stages
from ..qps import Qps
from ..routing import Geographic
from ..scenario import Protocol, Subscriber
from .outlook import Outlook, outlook
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
class Way:
    """A protocol in the network; what it takes, or why it cannot be."""

    name: str
    case: Case
    outlook: Outlook | None
    without: Mapping[str, Outlook | None]
    """For each subscription the same if nobody had it; nothing where nobody would want anything."""
    why_not: str = ""
    note: str = ""

    def adds(self, subscription: str) -> tuple[float, float]:
        """Joules and frames a day that one subscription takes beside the others."""
        assert self.outlook is not None
        other = self.without[subscription]
        if other is None:
            whole = self.outlook.idle + self.outlook.caused()
            return float(whole.joules.sum()), whole.frames
        joules = float((self.outlook.joules() - other.joules()).sum())
        return round(joules, 9), round(self.outlook.frames - other.frames, 6)


def ways(case: Case) -> dict[str, Case]:
    """The network with each protocol; what the scenario says of one of them is kept."""
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


def wanted(case: Case, seed: int, only: str | None) -> Case:
    """The network with nobody who wants anything else."""
    if only is None:
        return case
    names = {wish.name for wish in planned(case, seed).wishes}
    if only not in names:
        hint = did_you_mean(only, names) or f"There is {', '.join(sorted(names)) or 'none'}."
        raise UsageError(f"--subscription {only}: nobody in this network wants that. {hint}")
    return _with(case, seed, {only})


def _with(case: Case, seed: int, names: set[str]) -> Case:
    placed, wishes = case.placed(seed), planned(case, seed).wishes
    some = tuple(
        Subscriber(node=placed.names[wish.node], to=wish.name, start=wish.start, stop=wish.stop)
        for wish in wishes
        if wish.name in names
    )
    return replace(case, scenario=replace(case.scenario, subscribers=some))


def looked_at(case: Case, seed: int, events: Sequence[Event]) -> Iterator[Way]:
    """Each way with what it takes, and what each subscription adds."""
    stages(cast(case, events), seed)
    plan = planned(cast(case, events), seed)
    whole = rates(events, case.definition, plan.wishes)
    names = tuple(dict.fromkeys(wish.name for wish in plan.wishes))
    for name, variant in ways(case).items():
        note = "over geographic routing" if variant.scenario.routing != case.scenario.routing else ""
        try:
            found = _outlook(variant, seed, events, whole)
            without = {
                each: _outlook(_with(variant, seed, {*names} - {each}), seed, events, whole)
                if len(names) > 1
                else None
                for each in names
            }
        except Fault as error:
            yield Way(name, variant, None, {}, error.message)
        except HoldfastError as error:
            yield Way(name, variant, None, {}, str(error))
        else:
            yield Way(name, variant, found, without, note=note)


def by_itself(case: Case, seed: int, events: Sequence[Event], subscription: str) -> Outlook:
    """The network as its scenario has it, for one subscription."""
    case = wanted(case, seed, subscription)
    stages(cast(case, events), seed)
    wishes = planned(cast(case, events), seed).wishes
    return outlook(cast(case, events), seed, rates(events, case.definition, wishes))


def _outlook(case: Case, seed: int, events: Sequence[Event], whole: Rates) -> Outlook:
    wished = tuple(dict.fromkeys(wish.name for wish in planned(case, seed).wishes if not wish.plain))
    return outlook(cast(case, events), seed, whole.of(wished))
