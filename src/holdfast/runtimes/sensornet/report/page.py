"""The report of a study: what was run, what came out, and the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ....model.instant import show_duration
from ..results import Form, Results, write
from .axis import title_of
from .numbers import rounded, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES: Mapping[str, str] = {
    "expected": "for subscribers",
    "received": "received by subscribers",
    "received_ratio": "received, of what was for subscribers",
    "received_delay_ms": "delay to subscribers (ms)",
    "received_delay_p95_ms": "delay to subscribers, 95th percentile (ms)",
    "sent": "network messages sent (for each node they are for)",
    "delivered": "network messages delivered",
    "delivery_ratio": "network messages delivered, of those sent",
    "delay_ms": "delay of network messages (ms)",
    "delay_p95_ms": "delay of network messages, 95th percentile (ms)",
    "hops": "hops of network messages",
    "throughput_bps": "throughput (bit/s)",
    "transmissions": "transmissions",
    "transmissions_per_delivery": "transmissions per delivery",
    "collisions": "signals lost in collisions",
    "energy_mj": "energy of all nodes, TEC (mJ)",
    "energy_per_delivery_mj": "energy per delivery (mJ)",
    "packets_per_joule": "deliveries per joule, PPJ",
    "most_used_mj": "energy of the busiest node (mJ)",
    "lifetime_s": "until the first battery is empty, NLT (s)",
    "wasted_mj": "left in all batteries, WE (mJ)",
    "alive": "nodes alive at the end",
}
"""What is told of each point [D64], and how it is called.  A delivery is what a subscriber received; in a
scenario without subscribers it is a network message."""

SUBSCRIPTION: Mapping[str, str] = {
    "expected": "to be told",
    "delivered": "told",
    "loss": "lost",
    "unexpected": "wrong",
    "delay_ms": "delay (ms)",
    "messages": "messages",
    "energy_mj": "energy (mJ)",
}
"""What is told of each subscription, and how it is called."""

_BESIDE = 6
"""How many points stand side by side in a table; if there are more, one below the other."""


def report(results: Results, folder: Path, form: Form = "parquet") -> list[Path]:
    """Write tables, figures and the page; the files, the page first."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = write(results, folder, form)
    figures = _draw(results, folder) if find_spec("matplotlib") else []
    scenario = folder / "scenario.yaml"
    scenario.write_text(results.study.text, encoding="utf-8")
    page = folder / "report.md"
    page.write_text("\n".join(_lines(results, figures, [*tables, scenario])) + "\n", encoding="utf-8")
    return [page, *figures, *tables, scenario]


def _draw(results: Results, folder: Path) -> list[Path]:
    from .curves import curves
    from .maps import maps
    from .timeline import timeline

    figures: dict[str, Figure] = {}
    if len(results.study.points) > 1:
        figures["sweep"] = curves(results)
    figures |= {"timeline": timeline(results), "map": maps(results)}
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
    return [folder / f"{name}.png" for name in figures]


def _lines(results: Results, figures: Sequence[Path], files: Sequence[Path]) -> Iterable[str]:
    study, points = results.study, range(len(results.study.points))
    yield f"# {study.name}"
    yield ""
    yield _setting(results)
    yield ""
    yield "## Results"
    yield ""
    runs = f"{len(study.seeds)} run{'s' * (len(study.seeds) > 1)}"
    interval = " ± half of the 95 % interval (Student)" if len(study.seeds) > 1 else ""
    yield f"Means of {runs} (seeds {_listed(study.seeds)}){interval}, without the warm-up."
    yield ""
    yield from summary(results)
    if results.runs[0].subscriptions:
        yield ""
        yield "### Subscriptions"
        yield ""
        heading, *told = subscriptions(results)
        yield f"| {' | '.join(heading)} |"
        yield "|---" * len(heading) + "|"
        for cells in told:
            yield f"| {' | '.join(cells)} |"
    yield ""
    yield "### What became of the messages"
    yield ""
    fates = [_fates(results, point) for point in points]
    yield from _table(results, {name: [fate.get(name, 0) for fate in fates] for name in _union(fates)})
    yield ""
    yield "### What the energy was used for (mJ)"
    yield ""
    causes = [_causes(results, point) for point in points]
    rows = {name: [rounded(cause.get(name, 0.0), 4) for cause in causes] for name in _union(causes)}
    yield from _table(results, rows)
    for figure in figures:
        yield ""
        yield f"![{figure.stem}]({figure.name})"
    yield ""
    yield "## Files"
    yield ""
    yield ", ".join(f"`{file.name}`" for file in files)
    if not figures:
        yield ""
        yield "There are no figures: they need matplotlib (`pip install 'holdfast[figures]'`)."
    yield ""
    yield "## Scenario"
    yield ""
    yield f"```yaml\n{study.text.rstrip()}\n```"


def _setting(results: Results) -> str:
    """What all points have in common, in a sentence; the rest is in the file."""
    case = results.study.points[0].case
    scenario, swept = case.scenario, {name.split(".")[0] for name in results.study.parameters}
    named = ("links", "mac", "routing", *(["protocol"] if scenario.subscribers else []))
    parts = {name: getattr(scenario, name).kind for name in named}
    words = [f"{name} {kind}" for name, kind in parts.items() if name not in swept]
    count = len(case.placed(results.study.seeds[0]))
    nodes = [f"{count} nodes"] if "nodes" not in swept else []
    told = [*nodes, *words, f"{scenario.radio.chip}", f"{case.platform.name} at rest with {_rest(results)}"]
    return f"{', '.join(told)}; {show_duration(scenario.duration)}."


def _rest(results: Results) -> str:
    return str(results.runs[0].measures["rest"])


def summary(results: Results) -> Iterable[str]:
    """The measures of every point, as a table."""
    found = [results.summary(point) for point in range(len(results.study.points))]
    rows = {
        title: [shown(some.get(name)) for some in found]
        for name, title in MEASURES.items()
        if any(name in some for some in found)
    }
    return _table(results, rows)


def subscriptions(results: Results) -> Iterable[list[str]]:
    """A heading, and a row for each subscription of every point."""
    yield [*results.study.parameters, "subscription", *SUBSCRIPTION.values()]
    for point in range(len(results.study.points)):
        for name, found in results.subscriptions(point).items():
            measures = [shown(found.get(measure)) for measure in SUBSCRIPTION]
            yield [*results.settings(point).values(), name, *measures]


def _table(results: Results, rows: Mapping[str, Sequence[object]]) -> Iterable[str]:
    """Points side by side; if there are many, one below the other."""
    titles = [title_of(results, point) for point in range(len(results.study.points))]
    if len(titles) > _BESIDE:
        yield f"| | {' | '.join(rows)} |"
        yield "|---" * (len(rows) + 1) + "|"
        for i, title in enumerate(titles):
            yield f"| {title} | {' | '.join(str(cells[i]) for cells in rows.values())} |"
        return
    yield f"| | {' | '.join(titles)} |"
    yield "|---" * (len(titles) + 1) + "|"
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(map(str, cells))} |"


def _fates(results: Results, point: int) -> dict[str, int]:
    """How many messages of all runs came to which end; they add up to what was sent."""
    found: Counter[str] = Counter()
    for run in results.of(point):
        found["sent"] += run.measures["sent"]
        found["delivered"] += run.measures["delivered"]
        found["still on their way"] += run.measures["in_flight"]
        for why, count in run.measures["dropped"].items():
            found[f"dropped: {why}"] += count
    return dict(found)


def _causes(results: Results, point: int) -> dict[str, float]:
    """The energy of all nodes by what it was used for, on average over the runs."""
    runs = results.of(point)
    found: Counter[str] = Counter()
    for run in runs:
        for cause, millijoules in run.measures["energy_by_cause_mj"].items():
            found[cause] += millijoules / len(runs)
    return dict(found)


def _union(some: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for one in some for name in one))


def _listed(seeds: Sequence[int]) -> str:
    """
    >>> _listed([1, 2, 3]), _listed([7]), _listed([1, 5])
    ('1 to 3', '7', '1, 5')
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
