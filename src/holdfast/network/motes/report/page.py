"""The report of a study as a Markdown page: setup, results and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ....model.instant import show_duration
from ..results import Form, StudyResults, write
from .axis import title_of
from .style import format_estimate, format_number

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
"""The measures shown for each point [D64], with their titles. A delivery is a notification received by a
subscriber; in a scenario without subscribers, it is a network message.
"""

SUBSCRIPTION: Mapping[str, str] = {
    "expected": "to be told",
    "delivered": "told",
    "loss": "lost",
    "unexpected": "wrong",
    "delay_ms": "delay (ms)",
    "messages": "messages",
    "energy_mj": "energy (mJ)",
}
"""The measures shown for each subscription, with their titles."""

_BESIDE = 6
"""The greatest number of points that a table shows as columns. With more points, points are rows."""


def report(results: StudyResults, folder: Path, form: Form = "parquet") -> list[Path]:
    """Write tables, figures and the page into a folder; return the files, the page first."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = write(results, folder, form)
    figures = _draw(results, folder) if find_spec("matplotlib") else []
    scenario = folder / "scenario.yaml"
    scenario.write_text(results.study.text, encoding="utf-8")
    page = folder / "report.md"
    blocks = _blocks(results, figures, [*tables, scenario])
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return [page, *figures, *tables, scenario]


def _draw(results: StudyResults, folder: Path) -> list[Path]:
    """Draw the figures of the report; return their files."""
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


def _blocks(results: StudyResults, figures: Sequence[Path], files: Sequence[Path]) -> Iterable[str]:
    """Yield the parts of the page. A blank line separates them."""
    study, points = results.study, range(len(results.study.points))
    runs = f"{len(study.seeds)} run{'s' * (len(study.seeds) > 1)}"
    interval = " ± half of the 95 % interval (Student)" if len(study.seeds) > 1 else ""
    yield f"# {study.name}"
    yield _setting(results)
    yield "## Results"
    yield f"Means of {runs} (seeds {_list_seeds(study.seeds)}){interval}, without the warm-up."
    yield "\n".join(summary(results))
    if results.runs[0].subscriptions:
        yield "### Subscriptions"
        heading, *parts = (f"| {' | '.join(cells)} |" for cells in subscriptions(results))
        yield "\n".join([heading, "|---" * (len(study.parameters) + 1 + len(SUBSCRIPTION)) + "|", *parts])
    yield "### What became of the messages"
    fates = [_fates(results, point) for point in points]
    rows = {name: [fate.get(name, 0) for fate in fates] for name in _union(fates)}
    yield "\n".join(_table(results, rows))
    yield "### What the energy was used for (mJ)"
    causes = [_causes(results, point) for point in points]
    used = {name: [format_number(cause.get(name, 0.0), 4) for cause in causes] for name in _union(causes)}
    yield "\n".join(_table(results, used))
    for figure in figures:
        yield f"![{figure.stem}]({figure.name})"
    yield "## Files"
    yield ", ".join(f"`{file.name}`" for file in files)
    if not figures:
        yield "There are no figures: they need matplotlib (`pip install 'holdfast[figures]'`)."
    yield "## Scenario"
    yield f"```yaml\n{study.text.rstrip()}\n```"


def _setting(results: StudyResults) -> str:
    """Return a sentence with the settings that are common to all points."""
    case = results.study.points[0].case
    scenario, swept = case.scenario, {name.split(".")[0] for name in results.study.parameters}
    named = ("links", "mac", "routing", *(["protocol"] if scenario.subscribers else []))
    parts = {name: getattr(scenario, name).kind for name in named}
    words = [f"{name} {kind}" for name, kind in parts.items() if name not in swept]
    count = len(case.topology_for(results.study.seeds[0]))
    nodes = [f"{count} nodes"] if "nodes" not in swept else []
    platform = f"{case.platform.name} at rest with {results.runs[0].measures['rest']}"
    settings = [*nodes, *words, scenario.radio.chip, platform]
    return f"{', '.join(settings)}; {show_duration(scenario.duration)}."


def summary(results: StudyResults) -> Iterable[str]:
    """Yield the lines of a Markdown table with the measures of every point."""
    found = [results.summary(point) for point in range(len(results.study.points))]
    rows = {
        title: [format_estimate(row_values.get(name)) for row_values in found]
        for name, title in MEASURES.items()
        if any(name in row_values for row_values in found)
    }
    return _table(results, rows)


def subscriptions(results: StudyResults) -> Iterable[list[str]]:
    """Yield the cells of a heading, then a row for each subscription of every point."""
    yield [*results.study.parameters, "subscription", *SUBSCRIPTION.values()]
    for point in range(len(results.study.points)):
        for name, found in results.subscriptions(point).items():
            measures = [format_estimate(found.get(measure)) for measure in SUBSCRIPTION]
            yield [*results.settings(point).values(), name, *measures]


def _table(results: StudyResults, rows: Mapping[str, Sequence[object]]) -> Iterable[str]:
    """Yield the lines of a Markdown table with points as columns, or as rows if there are many."""
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


def _fates(results: StudyResults, point: int) -> dict[str, int]:
    """Return the number of messages of all runs by outcome. The outcomes add up to the number of sent
    messages.
    """
    found: Counter[str] = Counter()
    for run in results.of(point):
        found["sent"] += run.measures["sent"]
        found["delivered"] += run.measures["delivered"]
        found["still on their way"] += run.measures["in_flight"]
        for why, count in run.measures["dropped"].items():
            found[f"dropped: {why}"] += count
    return dict(found)


def _causes(results: StudyResults, point: int) -> dict[str, float]:
    """Return the energy of all nodes by cause, averaged over the runs."""
    runs = results.of(point)
    found: Counter[str] = Counter()
    for run in runs:
        for cause, millijoules in run.measures["energy_by_cause_mj"].items():
            found[cause] += millijoules / len(runs)
    return dict(found)


def _union(row_values: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for one in row_values for name in one))


def _list_seeds(seeds: Sequence[int]) -> str:
    """Format seeds as a range or a list.

    >>> _list_seeds([1, 2, 3]), _list_seeds([7]), _list_seeds([1, 5])
    ('1 to 3', '7', '1, 5')
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
