"""The three experiments: more subscribers, denser networks, a larger ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..experiment import Claim, Experiment, Progress, Result
from ..journal import place
from ..study import Kept, conduct
from .claim import about_density, about_epsilon, about_subscribers
from .measure import APPROACHES, Layout, Outcomes, denser, growing, looser
from .outcome import Outcome
from .quad import Quad
from .report import curves, parameters, rows, tables
from .scene import Scene, Setting
from .sweep import Sweep

CODE = (
    "holdfast_lab/experiments/qps",
    "holdfast/protocols/qps",
    "holdfast/runtimes/sensornet/field.py",
    "holdfast/sim/field.py",
    "holdfast/sim/routing",
)
"""The sources on which a run depends."""

USUAL = Setting(256.0, 500, 75, (64.0, 64.0), (128.0, 128.0))
LARGE = Setting(512.0, 2000, 100, (16.0, 16.0), (32.0, 32.0))

COUNTS, FEW_COUNTS = (2, 10, 25, 50, 75, 100, 125, 150, 175, 200), (2, 25, 50, 100, 150, 200)
NODES, FEW_NODES = (150, 200, 300, 400, 500, 600, 700, 800, 900, 1000), (150, 200, 300, 500, 700, 1000)
EPSILONS = tuple(round(1 + 0.2 * i, 1) for i in range(10))


@dataclass(frozen=True)
class Exhibit:
    """What is drawn beyond the rows."""

    sweep: Sweep
    maps: Mapping[float, Any] | None = None
    """By ε: where nodes and brokers of one layout stand, and who sends to whom."""


def _subscribers(_: Path | None, full: bool, progress: Progress) -> Result:
    counts = COUNTS if full else FEW_COUNTS
    setting = USUAL._replace(subscribers=max(counts))
    layouts = 30 if full else 6
    cells = {f"layout {seed + 1} of {layouts}": [Layout(0, seed)] for seed in range(layouts)}
    found = _conducted("qps-subscribers", partial(growing, setting, counts), cells, full, progress)
    runs = {
        (name, float(count)): [found[Layout(0, seed)][f"{name} {count}"] for seed in range(layouts)]
        for name in APPROACHES
        for count in counts
    }
    varied = {"subscribers": f"{counts}: those of a layout come one after the other"}
    sweep = Sweep([float(count) for count in counts], runs)
    return _result("qps-subscribers", (setting, layouts, varied), sweep, about_subscribers(sweep))


def _density(_: Path | None, full: bool, progress: Progress) -> Result:
    nodes, layouts = (NODES, 30) if full else (FEW_NODES, 6)
    cells = _cells([float(many) for many in nodes], layouts)
    found = _conducted("qps-density", partial(denser, USUAL), cells, full, progress)
    sweep = _swept([float(many) for many in nodes], layouts, found)
    varied = {"nodes": f"{nodes}, anywhere with equal chance, drawn again until all are connected"}
    return _result("qps-density", (USUAL, layouts, varied), sweep, about_density(sweep))


def _epsilon(_: Path | None, full: bool, progress: Progress) -> Result:
    layouts = 30 if full else 4
    found = _conducted("qps-epsilon", partial(looser, LARGE), _cells(EPSILONS, layouts), full, progress)
    sweep = _swept(EPSILONS, layouts, found)
    varied = {
        "ε": f"{EPSILONS}, best-effort and guaranteed",
        "CODD": "not part of this",
        "GHTD": "not part of this",
    }
    maps = {epsilon: _drawn(Scene(LARGE, 0), epsilon) for epsilon in (1.0, 1.2, 1.8)}
    return _result("qps-epsilon", (LARGE, layouts, varied), sweep, about_epsilon(sweep), maps)


def _cells(points: Sequence[float], layouts: int) -> dict[str, list[Layout]]:
    """A round for each layout, with all its points."""
    return {
        f"layout {seed + 1} of {layouts}": [Layout(point, seed) for point in points]
        for seed in range(layouts)
    }


def _conducted(
    name: str,
    measure: Callable[[Layout], Outcomes],
    cells: Mapping[str, Sequence[Layout]],
    full: bool,
    progress: Progress,
) -> dict[Layout, Outcomes]:
    """Every run; those of a full study are kept, and not made again."""
    kept = Kept(place(name, measure.__repr__(), CODE), _made) if full else None
    rounds = {doing: {layout: layout for layout in some} for doing, some in cells.items()}
    found = conduct(measure, rounds, progress, kept)
    return {Layout(*key): outcomes for key, outcomes in found.items()}


def _made(read: Any) -> Outcomes:
    return {name: Outcome(*values) for name, values in read.items()}


def _swept(points: Sequence[float], layouts: int, found: Mapping[Layout, Outcomes]) -> Sweep:
    names = dict.fromkeys(name for outcomes in found.values() for name in outcomes)
    return Sweep(
        points,
        {(n, p): [found[Layout(p, seed)][n] for seed in range(layouts)] for n in names for p in points},
    )


def _drawn(scene: Scene, epsilon: float) -> Any:
    """Where everybody stands in one layout, and who sends to whom."""
    made = Quad(scene, epsilon)
    for node in scene.subscribers:
        made.subscribe(node)
    places, brokers, arrows = scene.field.places, [], []
    for node, host in made.network.hosts.items():
        for (_, scope), role in host.state.logical.items():
            ends = [wishes.at for wishes in role.links.values() if wishes.registered()]
            if ends:
                brokers.append((scope.level, places[node]))
                arrows += [(places[node], end) for end in ends]
    return places, brokers, arrows


def _result(
    name: str,
    printed: tuple[Setting, int, Mapping[str, Any]],
    sweep: Sweep,
    claims: tuple[Claim, ...],
    maps: Mapping[float, Any] | None = None,
) -> Result:
    called = CALLED[name]
    return Result(name, parameters(*printed), rows(sweep, called), claims, Exhibit(sweep, maps))


CALLED = {"qps-subscribers": "subscribers", "qps-density": "nodes", "qps-epsilon": "ε"}
SHOWN = ("links", "load", "messages")
WITH_WAYS = ("links", "load", "messages", "hops", "subscribing")


def _experiment(name: str, title: str, run: Any, words: Sequence[str]) -> Experiment:
    return Experiment(name, title, run, tables(CALLED[name], words), curves(CALLED[name], words))


MORE_SUBSCRIBERS = _experiment(
    "qps-subscribers",
    "Quad-PubSub, CODD and GHTD with 2 to 200 subscribers  [SPS, Figure 4.13]",
    _subscribers,
    SHOWN,
)
DENSER = _experiment(
    "qps-density",
    "Quad-PubSub, CODD and GHTD among 150 to 1,000 nodes  [SPS, Figure 4.14]",
    _density,
    SHOWN,
)
LOOSER = _experiment(
    "qps-epsilon",
    "Quad-PubSub with ε from 1.0 to 2.8  [SPS, Figures 4.15 and 4.16]",
    _epsilon,
    WITH_WAYS,
)
