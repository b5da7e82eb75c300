"""The three experiments on Quad-PubSub: more subscribers, denser networks, a larger ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..experiment import Claim, Experiment, Progress, Result
from ..journal import place
from ..study import StoredRuns, conduct
from .claim import about_density, about_epsilon, about_subscribers
from .measure import APPROACHES, Outcomes, QpsLayout, denser, growing, looser
from .outcome import QpsOutcome
from .quad import Quad
from .report import curves, parameters, rows, tables
from .scene import QpsScene, QpsSetting
from .sweep import Sweep

CODE = (
    "holdfast_lab/experiments/qps",
    "holdfast/network/protocols/qps",
    "holdfast/network/motes/field.py",
    "holdfast/network/sim/field.py",
    "holdfast/network/sim/routing",
)
"""The sources that determine a run; a change repeats stored runs."""

USUAL = QpsSetting(256.0, 500, 75, (64.0, 64.0), (128.0, 128.0))
LARGE = QpsSetting(512.0, 2000, 100, (16.0, 16.0), (32.0, 32.0))

COUNTS, FEW_COUNTS = (2, 10, 25, 50, 75, 100, 125, 150, 175, 200), (2, 25, 50, 100, 150, 200)
NODES, FEW_NODES = (150, 200, 300, 400, 500, 600, 700, 800, 900, 1000), (150, 200, 300, 500, 700, 1000)
EPSILONS = tuple(round(1 + 0.2 * i, 1) for i in range(10))


@dataclass(frozen=True)
class QpsExhibit:
    """Data of the figure."""

    sweep: Sweep
    maps: Mapping[float, Any] | None = None
    """By ε: positions of nodes and brokers of one layout, and links between them."""


def _subscribers(_: Path | None, full: bool, progress: Progress) -> Result:
    counts = COUNTS if full else FEW_COUNTS
    setting = USUAL._replace(subscribers=max(counts))
    layouts = 30 if full else 6
    cells = _cells([0], layouts)
    found = _run_all("qps-subscribers", partial(growing, setting, counts), cells, full, progress)
    runs = {
        (name, float(count)): [found[QpsLayout(0, seed)][f"{name} {count}"] for seed in range(layouts)]
        for name in APPROACHES
        for count in counts
    }
    varied = {"subscribers": f"{counts}: those of a layout come one after the other"}
    sweep = Sweep([float(count) for count in counts], runs)
    return _result("qps-subscribers", (setting, layouts, varied), sweep, about_subscribers(sweep))


def _density(_: Path | None, full: bool, progress: Progress) -> Result:
    nodes, layouts = (NODES, 30) if full else (FEW_NODES, 6)
    cells = _cells([float(many) for many in nodes], layouts)
    found = _run_all("qps-density", partial(denser, USUAL), cells, full, progress)
    sweep = _collect_sweep([float(many) for many in nodes], layouts, found)
    varied = {"nodes": f"{nodes}, anywhere with equal chance, drawn again until all are connected"}
    return _result("qps-density", (USUAL, layouts, varied), sweep, about_density(sweep))


def _epsilon(_: Path | None, full: bool, progress: Progress) -> Result:
    layouts = 30 if full else 4
    found = _run_all("qps-epsilon", partial(looser, LARGE), _cells(EPSILONS, layouts), full, progress)
    sweep = _collect_sweep(EPSILONS, layouts, found)
    absent = dict.fromkeys(("CODD", "GHTD"), "not part of this")
    varied = {"ε": f"{EPSILONS}, best-effort and guaranteed", **absent}
    maps = {epsilon: _draw_layout(QpsScene(LARGE, 0), epsilon) for epsilon in (1.0, 1.2, 1.8)}
    return _result("qps-epsilon", (LARGE, layouts, varied), sweep, about_epsilon(sweep), maps)


def _cells(points: Sequence[float], layouts: int) -> dict[str, list[QpsLayout]]:
    """A round for each layout, with a cell for each point."""
    return {f"layout {s + 1} of {layouts}": [QpsLayout(p, s) for p in points] for s in range(layouts)}


def _run_all(
    name: str,
    measure: Callable[[QpsLayout], Outcomes],
    cells: Mapping[str, Sequence[QpsLayout]],
    full: bool,
    progress: Progress,
) -> dict[QpsLayout, Outcomes]:
    """Make all runs; those of a full study are stored and not repeated."""
    stored_runs = StoredRuns(place(name, measure.__repr__(), CODE), _made) if full else None
    rounds = {doing: {layout: layout for layout in some} for doing, some in cells.items()}
    found = conduct(measure, rounds, progress, stored_runs)
    return {QpsLayout(*key): outcomes for key, outcomes in found.items()}


def _made(read: Any) -> Outcomes:
    return {name: QpsOutcome(*values) for name, values in read.items()}


def _collect_sweep(points: Sequence[float], layouts: int, found: Mapping[QpsLayout, Outcomes]) -> Sweep:
    names = dict.fromkeys(name for outcomes in found.values() for name in outcomes)
    seeds = range(layouts)
    runs = {(n, p): [found[QpsLayout(p, seed)][n] for seed in seeds] for n in names for p in points}
    return Sweep(points, runs)


def _draw_layout(scene: QpsScene, epsilon: float) -> Any:
    """Return the positions of nodes and brokers of one layout, and links between them."""
    made = Quad(scene, epsilon)
    for node in scene.subscribers:
        made.subscribe(node)
    places, brokers, arrows = scene.field.places, [], []
    for node, host in made.network.hosts.items():
        for (_, scope), role in host.state.logical.items():
            ends = [wishes.at for wishes in role.links.values() if wishes.registered_area()]
            if ends:
                brokers.append((scope.level, places[node]))
                arrows += [(places[node], end) for end in ends]
    return places, brokers, arrows


def _result(
    name: str,
    printed: tuple[QpsSetting, int, Mapping[str, Any]],
    sweep: Sweep,
    claims: tuple[Claim, ...],
    maps: Mapping[float, Any] | None = None,
) -> Result:
    called = CALLED[name]
    return Result(name, parameters(*printed), rows(sweep, called), claims, QpsExhibit(sweep, maps))


TITLES = {
    "qps-subscribers": "Quad-PubSub, CODD and GHTD with 2 to 200 subscribers  [SPS, Figure 4.13]",
    "qps-density": "Quad-PubSub, CODD and GHTD among 150 to 1,000 nodes  [SPS, Figure 4.14]",
    "qps-epsilon": "Quad-PubSub with ε from 1.0 to 2.8  [SPS, Figures 4.15 and 4.16]",
}
CALLED = {"qps-subscribers": "subscribers", "qps-density": "nodes", "qps-epsilon": "ε"}
SHOWN = ("links", "load", "messages")
WITH_WAYS = ("links", "load", "messages", "hops", "subscribing")


def _experiment(name: str, run: Any, words: Sequence[str]) -> Experiment:
    return Experiment(name, TITLES[name], run, tables(CALLED[name], words), curves(CALLED[name], words))


MORE_SUBSCRIBERS = _experiment("qps-subscribers", _subscribers, SHOWN)
DENSER = _experiment("qps-density", _density, SHOWN)
LOOSER = _experiment("qps-epsilon", _epsilon, WITH_WAYS)
