"""Quad-PubSub's physical layer: roles by remaining energy or by hash, failures, and hand-overs.

[SPS §4.3.6, §4.3.7] The thesis describes this layer without an evaluation, and quotes results of others.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.motes.report.style import COLOURS, new_figure, tidy
from holdfast.network.sim.statistics import Estimate, estimate

from ..experiment import Drawing, Experiment, Judged, Progress, Result, Table, to_claims
from ..journal import place
from ..study import StoredRuns, conduct, singly
from .report import as_map, draw_levels
from .scene import QpsScene
from .sweep import line
from .three import CODE
from .tiring import BATTERY, POSITION, SETTING, by_energy, failing, handing, life, snapshots

NAME = "qps-physical"
TITLE = "Quad-PubSub's physical layer: roles by energy, failures, hand-overs  [SPS §4.3.6]"
CHECKS = (15, 30, 60, 120)
"""The intervals between checks of suitability, in seconds."""
MINUTES = 8.0
"""The duration of the runs with failures and with counted hand-overs."""
LITERATURE = 0.947

RULES = {
    "lifetime": "with roles by remaining energy the first node dies later than with hashing alone: in the "
    "mean, and in three of four layouts",
    "failures": "while nodes fail in cycles of about six minutes, at least as large a share of events comes "
    "as the literature quotes for a geographic hash table",
    "handover-linear": "messages of hand-over and heartbeats grow in a line with how often suitability is "
    "looked at: a line explains 95 % of the variance of the means",
    "no-loss": "hand-overs lose nothing: every event of the lifetime runs comes, once",
}


def _measure(seed: int) -> dict[str, Any]:
    """Make all runs of one layout."""
    lives = {"position": life(seed, POSITION), "energy": life(seed, by_energy())}
    handed = [handing(seed, check * SECOND, MINUTES) for check in CHECKS]
    return {**lives, "failing": failing(seed, MINUTES), "handing": handed}


def _run(_: Path | None, full: bool, progress: Progress) -> Result:
    layouts = 30 if full else 4
    stored_runs = StoredRuns(place(NAME, _measure.__name__, CODE), dict) if full else None
    cells = singly(range(layouts), lambda s: f"layout {s + 1} of {layouts}")
    runs = list(conduct(_measure, cells, progress, stored_runs).values())
    lives = {by: [run[by] for run in runs] for by in ("position", "energy")}
    shares = [run["failing"][0] for run in runs]
    costs = [sure(estimate([run["handing"][i] for run in runs])) for i in range(len(CHECKS))]
    rows = [
        {
            "roles by": by,
            "minutes": _format_estimate(sure(estimate([each[0] for each in some]))),
            "share delivered": round(min(each[1] for each in some), 4),
            "handed over": round(fmean(each[2] for each in some), 1),
        }
        for by, some in lives.items()
    ]
    rows += [
        {
            "failing": "share delivered",
            "mean": _format_estimate(sure(estimate(shares)), 4),
            "least": round(min(shares), 4),
            "brokers that failed": round(fmean(run["failing"][1] for run in runs), 1),
        }
    ]
    sent = [_format_estimate(cost) for cost in costs]
    rows += [{"check s": s, "transmissions a minute": t} for s, t in zip(CHECKS, sent, strict=True)]
    claims = to_claims(RULES, _verdicts(lives, shares, [cost.mean for cost in costs]))
    parameters = {
        "field": f"{SETTING.side:g} × {SETTING.side:g}, {SETTING.nodes} nodes",
        "subscribers": SETTING.subscribers,
        "battery": f"{BATTERY} transmissions a node",
        "failures": "nodes without clients are up for 360 s in the mean, then down for 60 s",
        "layouts": layouts,
        "minutes": MINUTES,
    }
    return Result(NAME, parameters, rows, claims, (costs, snapshots(0)))


def sure(found: Estimate | None) -> Estimate:
    """Return an estimate that exists because values were measured."""
    assert found is not None
    return found


def _format_estimate(found: Estimate, digits: int = 1) -> str:
    half = "" if found.half is None else f" ± {found.half:.{digits}f}"
    return f"{found.mean:.{digits}f}{half}"


def _verdicts(lives: dict[str, list[Any]], shares: list[float], costs: list[float]) -> list[Judged]:
    one, other = ([each[0] for each in lives[by]] for by in ("position", "energy"))
    later = sum(b > a for a, b in zip(one, other, strict=True))
    ratio, share = fmean(other) / fmean(one), fmean(shares)
    _, fit = line([1 / check for check in CHECKS], costs)
    whole = all(each[1] == 1.0 for each in lives["energy"])
    return [
        Judged(
            "none",
            f"{ratio:.2f} times as long; later in {later} of {len(one)} layouts",
            ratio > 1 and later >= 0.75 * len(one),
        ),
        Judged(f"{LITERATURE:.1%}", f"{share:.1%}", share >= LITERATURE),
        Judged("linear", f"{fit:.3f} of the variance", fit >= 0.95),
        Judged("no loss, no duplicate", "all" if whole else "not all", whole),
    ]


def _tables(result: Result) -> list[Table]:
    rows = result.rows
    costs = [tuple(row.values()) for row in rows[3:]]
    return [
        Table.of_rows("until the first node is empty", rows[:2]),
        Table("nodes fail", ("", "mean", "least", "brokers that failed"), [tuple(rows[2].values())]),
        Table("hand-overs and heartbeats", ("looked every s", "transmissions a minute"), costs),
    ]


def _draw(result: Result) -> Drawing:
    """Draw maps of roles and transmissions over time, and the cost of checks."""
    costs, maps = result.exhibit
    figure = new_figure(4.2 * (len(maps) + 1), 4.4)
    panels = figure.subplots(1, len(maps) + 1)
    places = QpsScene(SETTING, 0).field.places
    for panel, (minutes, sent, roles) in zip(panels, maps, strict=False):
        style = {"cmap": "Greys", "s": 16, "vmin": 0, "vmax": BATTERY, "edgecolors": "0.75"}
        panel.scatter(*zip(*places, strict=True), c=sent, linewidths=0.5, **style)
        brokers = [(scope.level, places[node]) for scope, node in roles.items()]
        draw_levels(panel, brokers, markersize=7, fillstyle="none")
        place = {"xytext": (4, 3), "textcoords": "offset points"}
        for scope, node in roles.items():
            panel.annotate(f"{scope.column},{scope.row}", places[node], fontsize=6, **place)
        as_map(panel, f"after {minutes:.0f} min")
    panel = panels[-1]
    often = [60 / check for check in CHECKS]
    means, halves = [cost.mean for cost in costs], [cost.half or 0 for cost in costs]
    panel.errorbar(often, means, halves, color=COLOURS[0], marker="o", capsize=2)
    panel.set_xlabel("looked at, times a minute")
    panel.set_ylim(bottom=0)
    tidy(panel, "transmissions a minute")
    return figure


EXPERIMENT = Experiment(NAME, TITLE, _run, _tables, _draw)
