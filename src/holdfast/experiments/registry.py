"""Which experiments there are.  A module is loaded when its experiment is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ..errors import UsageError, did_you_mean
from .experiment import Experiment

MODULES = {
    "hop-model": "hop_model.run",
    "memoization": "memoization.run",
    "oem-validation": "oem_validation.run",
    "state-filter-table": "state_filter_table.run",
    "subsumption-study": "subsumption_study.run",
}
"""Name -> the module here whose ``EXPERIMENT`` it is."""


def load(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in MODULES:
        hint = did_you_mean(name, MODULES) or f"There is {', '.join(MODULES)}."
        raise UsageError(f"no experiment named '{name}'. {hint}")
    found: Experiment = import_module(f".{MODULES[name]}", __package__).EXPERIMENT
    return found


def chosen(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names, each once; without a name, all of them."""
    return [load(name) for name in dict.fromkeys(names) or MODULES]
