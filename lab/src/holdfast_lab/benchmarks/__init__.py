"""Measurements, each as a ratio against named peers in the same run on the same data.

Seconds differ from machine to machine and from minute to minute; ratios less.
"""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from holdfast.errors import UsageError, did_you_mean

BENCHMARKS = {
    "advise": "a thousand variants of a state over history: beside one replay",
    "agents": "agents in one broker: bytes for each, readings and messages a second",
    "alarms": "guards and silence: µs per event, a million keys as time goes on, beside a query by hand",
    "broker": "one broker on TCP: messages per second and µs per message, beside Mosquitto",
    "components": "congestion per road: events per second in columns, beside the reference and Polars",
    "correlate": "correlations of five attributes: seconds for 100 and 10,000, beside joins on Spark",
    "kernel": "state filters in this process: events per second, µs per event, bytes per key",
    "live": "a live query on Spark with 10,000 keys and a million: seconds and bytes of a batch",
    "match": "content matching: ms per event against up to a million subscriptions, beside brute force",
    "replay": "replay in one process, of DataFrames, from a cold start, of many keys, beside Polars and SQL",
    "serve": "holdfast serve behind Mosquitto: messages per second beside a consumer that does nothing, p99",
    "shards": "a shard of these, without Spark: ms and bytes of a batch, kind by kind",
    "sim": "the simulated network: transmissions per second by size and density, beside simpy",
    "spark": "replay and live on Spark: seconds beside window queries, state APIs, Polars and DuckDB",
    "states": "correlations of states: seconds and bytes beside the same over raw readings, and brute force",
}
"""Every benchmark by name: a module of this package with ``run(progress) -> list[Row]``."""


@dataclass(frozen=True)
class Row:
    """One measurement, none of what failed; ``goal`` is what we want it to be, ``met`` whether it is."""

    what: str
    value: float | None
    unit: str
    goal: str | None = None
    met: bool | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def times(what: str, value: float, *, least: float | None = None, most: float | None = None) -> Row:
    """A ratio, and whether it is as large or as small as we want."""
    if least is not None:
        return Row(what, value, "×", f"≥ {least:g} ×", value >= least)
    if most is not None:
        return Row(what, value, "×", f"≤ {most:g} ×", value <= most)
    return Row(what, value, "×")


def failure_row(what: str, reason: str) -> Row:
    """A peer that could not be measured."""
    return Row(what, None, "", detail={"failed": reason})


def run(names: list[str], progress: Callable[[str], None]) -> dict[str, Any]:
    """Run benchmarks by name, all of them if none is named."""
    for name in names:
        if name not in BENCHMARKS:
            hint = did_you_mean(name, BENCHMARKS) or f"There is {', '.join(BENCHMARKS)}."
            raise UsageError(f"no benchmark named '{name}'. {hint}")
    return {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]},
        "benchmarks": {
            name: [vars(row) for row in import_module(f".{name}", __name__).run(progress)]
            for name in names or BENCHMARKS
        },
    }


def sets_to_measure(sets: Iterable[str]) -> list[str]:
    """Those of the sets of data that ``HOLDFAST_BENCH_SETS`` names, with commas between them; all where it
    names none."""
    names = os.environ.get("HOLDFAST_BENCH_SETS") or ""
    known, wanted = list(sets), [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise UsageError(f"HOLDFAST_BENCH_SETS={names}: no '{name}', there is {', '.join(known)}")
    return wanted or known


class Timing(NamedTuple):
    """The best of some repetitions, and how far the worst was from it."""

    best: float
    worst: float
    result: Any


def measure_time(
    job: Callable[[], Any], repeat: int = 5, clock: Callable[[], float] = time.perf_counter
) -> Timing:
    """Run a job some times; collect garbage between, not during."""
    seconds, result = [], None
    for _ in range(repeat):
        gc.collect()
        gc.disable()
        try:
            start = clock()
            result = job()
            seconds.append(clock() - start)
        finally:
            gc.enable()
    return Timing(min(seconds), max(seconds), result)
