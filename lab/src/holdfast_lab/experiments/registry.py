"""The registry of experiments. A module is imported when its experiment is requested."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from holdfast.errors import UsageError, did_you_mean

from .experiment import Experiment

MODULES = {
    "air-parts": "dds.air_parts",
    "arqos": "dds.arqos",
    "eatdds-lifetime": "dds.eatdds_lifetime",
    "energy-map": "dds.energy_map",
    "fsf-large-network": "fsf.four:LARGE_NETWORK",
    "fsf-large-sources": "fsf.four:LARGE_SOURCES",
    "fsf-medium": "fsf.four:MEDIUM",
    "fsf-small": "fsf.four:SMALL",
    "hop-model": "hop_model.run",
    "ifs": "dds.ifs",
    "journey-network": "journey_planner.placed",
    "journey-planner": "journey_planner.run",
    "memoization": "memoization.run",
    "middleware-cost": "dds.middleware_cost",
    "oem-validation": "oem_validation.run",
    "proximity": "proximity.run",
    "qps-density": "qps.three:DENSER",
    "qps-epsilon": "qps.three:LOOSER",
    "qps-physical": "qps.physical",
    "qps-subscribers": "qps.three:MORE_SUBSCRIBERS",
    "relate-spark": "relate_spark",
    "reliability-by-transition": "dds.by_transition",
    "rtdds-ipi": "dds.rtdds_ipi",
    "rtdds-partial": "dds.rtdds_partial",
    "rtdds-rate": "dds.rtdds_rate",
    "rtdds-rto": "dds.rtdds_rto",
    "state-filter-redwoods": "state_filter_table.run:UNDER_TREES",
    "sps-placement": "sps.placement",
    "state-filter-table": "state_filter_table.run:ON_THE_PASS",
    "state-on-mote": "dds.state_on_mote",
    "subsumption-study": "subsumption_study.run",
    "tinydds-modes": "dds.tinydds_modes",
    "traffic": "traffic.run",
}
"""The module of each experiment, with the name of the experiment in it unless that is ``EXPERIMENT``."""


def load(name: str) -> Experiment:
    """Return the experiment with a name."""
    if name not in MODULES:
        hint = did_you_mean(name, MODULES) or f"There is {', '.join(MODULES)}."
        raise UsageError(f"no experiment named '{name}'. {hint}")
    module, _, called = MODULES[name].partition(":")
    found: Experiment = getattr(import_module(f".{module}", __package__), called or "EXPERIMENT")
    return found


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """Return the experiments with these names, each once; without names, all experiments."""
    return [load(name) for name in dict.fromkeys(names) or MODULES]
