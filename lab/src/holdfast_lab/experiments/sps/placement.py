"""Two applications, fire and congestion, with components at the user, at one node near the sensors, or placed
by the network.

[SPS §5.7; F71–F74, F78]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.motes.report.style import COLOURS, new_figure, tidy
from holdfast.network.sim.frame import NodeId

from ..experiment import Drawing, Experiment, Judged, Progress, Result, Table, to_claims
from .world import (
    CONGESTION,
    FIRE,
    Failing,
    SpsLayout,
    application,
    beside,
    by_hand,
    by_network,
    centrally,
    run,
)

NAME = "sps-placement"
TITLE = "Fire and congestion: components centrally, by hand, by the network  [SPS §5.7]"
WAYS = {"centrally": centrally, "by hand": by_hand, "by the network": by_network}
APPS = {"fire": (FIRE, "Fire"), "congestion": (CONGESTION, "TrafficCongestion")}
MILLIJOULES = 0.20
"""The energy of a hop in mJ: 40 bytes sent and received once by a CC2420 at 0 dBm on a MicaZ."""

PASSIVE, QUICK, ACTIVE, COPIED = "passive", "missed after 6 s", "active", "active, tables copied"
"""Kinds of replicas: as in the thesis; with fast detection; active from the start; and active with copied
tables of brokers.
"""

RULES = {
    "same": "wherever components stand, the user is told the same",
    "fewer-messages": "for both applications the network's placement needs fewer messages than the central "
    "one, and no more than the one by hand",
    "delay": "placing components in the network costs no more than one stabilization interval (3 s) of delay",
    "recovery": "when the host of a component fails, a replica begins near by: at most as much is lost as "
    "falls into the time until it is missed (30 s of the 360 s), in the mean",
}


def failures(layout: SpsLayout, host: NodeId) -> dict[str, Failing]:
    """Return the cases of a failing host: as in the thesis, and with each cause of loss removed."""
    twins = [beside(layout, host)]
    return {
        PASSIVE: Failing([host]),
        QUICK: Failing([host], beats=2 * SECOND),
        ACTIVE: Failing([host], twins=twins),
        COPIED: Failing([host], twins=twins, copies=True),
    }


def _run(_: Path | None, full: bool, progress: Progress) -> Result:
    layouts = 10 if full else 2
    rows: list[dict[str, Any]] = []
    lost: dict[str, list[float]] = {PASSIVE: [], QUICK: [], ACTIVE: [], COPIED: []}
    repeated = 0
    for app, (text, wanted) in APPS.items():
        whole = application(text, wanted)
        found: dict[str, list[Any]] = {way: [] for way in WAYS}
        for seed in range(layouts):
            progress(f"{app}, layout {seed + 1} of {layouts}")
            layout = SpsLayout(seed)
            for way, place in WAYS.items():
                found[way].append(run(*place(whole, layout), layout, seed))
            parts, hosts = by_hand(whole, layout)
            due = set(found["by hand"][-1].notified)
            for name, failing in failures(layout, hosts[wanted][0]).items():
                failed = run(parts, hosts, layout, seed, failing)
                lost[name].append(len(due - set(failed.notified)) / max(len(due), 1))
                repeated += failed.repeated if name == PASSIVE else 0
        notified = [[outcome.notified for outcome in some] for some in found.values()]
        for way, some in found.items():
            hops = fmean(each.hops for each in some)
            rows.append(
                {
                    "application": app,
                    "placed": way,
                    "messages": round(hops),
                    "joules": round(hops * MILLIJOULES / 1000, 3),
                    "delay s": round(fmean(each.delay for each in some), 2),
                    "told": sum(len(each.notified) for each in some),
                    "same": all(each == notified[0] for each in notified),
                }
            )
    parameters = {
        "layouts": layouts,
        "field": "100 nodes in 128 × 128, up to 12 sensors in (32, 32) – (80, 80)",
        "readings": "every 5 s for 6 min",
        "joules": f"{MILLIJOULES} mJ a hop",
    }
    return Result(NAME, parameters, rows, to_claims(RULES, _verdicts(rows, lost, repeated)))


def _verdicts(rows: list[dict[str, Any]], lost: Mapping[str, list[float]], repeated: int) -> list[Judged]:
    by = {(row["application"], row["placed"]): row for row in rows}
    sent = {app: [by[app, way]["messages"] for way in WAYS] for app in APPS}
    late = {app: by[app, "by the network"]["delay s"] - by[app, "centrally"]["delay s"] for app in APPS}
    fewer = all(network < central and network <= hand for central, hand, network in sent.values())
    share = {name: round(fmean(some), 3) for name, some in lost.items()}
    return [
        Judged(
            "equal",
            {app: by[app, "by the network"]["same"] for app in APPS},
            all(r["same"] for r in rows),
            why={
                False: "Consistency is best-effort: where readings travel far, some come after the "
                "stabilization interval, which follows what was measured; they are put in as they come, and "
                "the same congestion is told of another moment. With parts on the sensors' nodes none is."
            },
        ),
        Judged("fewer", sent, fewer),
        Judged(
            "none given", {app: round(d, 2) for app, d in late.items()}, all(d <= 3 for d in late.values())
        ),
        Judged(
            "replicated recovery",
            {"lost": share[PASSIVE], "repeated": repeated, "runs": len(lost[PASSIVE])},
            fmean(lost[PASSIVE]) <= 30 / 360,
            f"Missed after 6 s in place of 30: {share[QUICK]} lost. With a second host that works from the "
            f"start: {share[ACTIVE]}; if brokers also copy their tables: {share[COPIED]}.",
        ),
    ]


def _tables(result: Result) -> list[Table]:
    return [Table.of_rows("messages, joules, delay", result.rows)]


def _draw(result: Result) -> Drawing:
    figure = new_figure(7.0, 3.6)
    panels = figure.subplots(1, len(APPS))
    for panel, app in zip(panels, APPS, strict=True):
        mine = [row for row in result.rows if row["application"] == app]
        heights = [row["messages"] for row in mine]
        panel.bar([row["placed"] for row in mine], heights, color=COLOURS[: len(mine)])
        tidy(panel, f"{app}: messages")
    return figure


EXPERIMENT = Experiment(NAME, TITLE, _run, _tables, _draw)
