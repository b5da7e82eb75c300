"""The distribution of energy consumption over the network. [§6.2.3, Figures 54 to 56; D65]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.motes.report.style import new_figure
from holdfast.network.motes.run import SimulationRun
from holdfast.network.protocols.dds.level import FULL
from holdfast.network.sim.energy import TRANSMIT
from holdfast.network.sim.metrics import relative

from ..experiment import Drawing, Judged
from . import place, setups
from .air import CLEAR, FITTED
from .air import show_link as printed_air
from .measure import RESTS, Measured, Point, by_node, point
from .report import Design, verdict
from .study import Study
from .tinydds_modes import MODES, STEP

THESIS = {"DefTDDS": 23, "BLTDDS": 18, "HyTDDS": 18}
FULL_BELOW = 0.05
"""Batteries are shown in steps of 5 %; a node that has used less than one step of the hottest node counts as
full."""
CLOSE = 3

RULES = {
    "full-nodes": "When the hottest node is exhausted 23 of 49 nodes still have full batteries with "
    "DefTDDS, 18 with BLTDDS and 18 with HyTDDS. Rule: in the fitted air, in one of the placements, under "
    "one of the rest states or by own frames, the mean number of nodes that have used less than 5 % of what "
    f"the hottest has is within {CLOSE} of the thesis' for all three.",
}
OWN, SENDING = "own frames", "sending only"
"""Two other ways to charge radios: only for a node's own frames, or only for sending."""
WHERE = ((place.HASHED, FITTED), (place.BETWEEN, FITTED), (place.HASHED, CLEAR))
JUDGED = WHERE[:2]


def points(full: bool) -> list[Point]:
    return [
        point(
            {"rendezvous": where, "air": air, "mode": mode},
            setups.modes,
            mode,
            2 * SECOND,
            FULL,
            rendezvous=place.RENDEZVOUS[where],
            duration=(1000 if full else 300) * SECOND,
            step=STEP,
        )
        for where, air in WHERE
        for mode in MODES
    ]


def full_nodes(run: SimulationRun) -> Measured:
    """Return how many batteries are full when the first is empty.

    They are counted in both rest states, if only sending costs, and by frames that a node sends or receives
    for itself. Its processor works equally long for each of these frames, and for no other.
    """
    joules, now = by_node(run), run.network.now
    energies = [node.energy for node in run.network.nodes]
    sending = [sum(times[TRANSMIT] for times in each.radio.times(now).values()) for each in energies]
    own = [sum(each.mcu.times(now)[0].values()) for each in energies]
    return {
        **joules,
        **{f"full nodes, {rest}": _full(joules[f"nodes, {rest}"]) for rest in RESTS},
        f"full nodes, {OWN}": _full(own),
        f"full nodes, {SENDING}": _full(sending),
    }


def _full(used: Sequence[float]) -> int:
    return sum(each < FULL_BELOW * max(used) for each in used)


def claims(study: Study) -> Sequence[Judged]:
    ours = {
        (at, how): {
            mode: study.mean(f"full nodes, {how}", rendezvous=at[0], air=at[1], mode=mode) for mode in MODES
        }
        for at in WHERE
        for how in (*RESTS, OWN, SENDING)
    }
    judged = [found for (at, how), found in ours.items() if at in JUDGED and how != SENDING]
    hottest = {where: _hottest(study, where) for where in place.RENDEZVOUS}
    return [
        verdict(
            THESIS,
            {f"{', '.join(at)}, {how}": found for (at, how), found in ours.items()},
            any(all(abs(found[mode] - THESIS[mode]) <= CLOSE for mode in MODES) for found in judged),
            "Hottest nodes of DefTDDS: "
            + "; ".join(f"{where} {', '.join(map(str, nodes))}" for where, nodes in hottest.items())
            + ".",
            why_not="Listening at rest all nodes use nearly the same and none is full, so the thesis' "
            "figures belong to nodes that sleep, unlike its quarter for the processor. Sleeping, a node "
            "pays for what it hears as well as for what it carries, and on this grid nearly every node "
            "hears somebody. If sending alone is counted the numbers are of the thesis' size: its "
            "model seems not to have charged nodes for frames to others.",
        )
    ]


def _hottest(study: Study, where: str, most: int = 4) -> list[int]:
    used = _by_node(study, "sleeping", rendezvous=where, air=FITTED, mode="DefTDDS")
    return sorted(range(len(used)), key=lambda node: -used[node])[:most]


def _by_node(study: Study, rest: str, **point: str) -> list[float]:
    """Return the energy of each node in mJ, averaged over the seeds."""
    (key,) = study.where(**point)
    return [fmean(each) for each in zip(*(run[f"nodes, {rest}"] for run in study.runs[key]), strict=True)]


def parameters(full: bool) -> dict[str, str]:
    return {
        **place.describe(),
        "load": f"reliable, IPI 2 s, {1000 if full else 300} s; what discovery costs is spent once and "
        "weighs less the longer a run lasts",
        "full": "less than 5 % of what the node with the largest consumption has used (equation 6.2)",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
        **printed_air(STEP),
    }


def draw(study: Study) -> Drawing:
    """Draw relative consumption, sleeping at rest: a row for each placement, a column for each mode."""
    drawing = new_figure(12.6, 8.0)
    axes = drawing.subplots(2, 3)
    for row, (where, table) in enumerate(place.RENDEZVOUS.items()):
        for column, mode in enumerate(MODES):
            at = {"rendezvous": where, "air": FITTED, "mode": mode}
            shares = relative(_by_node(study, "sleeping", **at))
            _map(axes[row][column], shares, () if mode == "BLTDDS" else table)
            count = study.mean("full nodes, sleeping", **at)
            title = f"{mode}, RN {where}: {count:.1f} full (thesis {THESIS[mode]})"
            axes[row][column].set_title(title, fontsize=9)
    return drawing


ROLES: Mapping[str, tuple[int, ...]] = {
    "P": tuple(node for nodes in setups.PUBLISHERS.values() for node in nodes),
    "S": (setups.BASE_STATION, setups.LEFT_ACTUATOR, setups.RIGHT_ACTUATOR),
}


def _map(axes: Any, shares: Sequence[float], table: Sequence[int]) -> None:
    """Draw the grid, each node with its share; P publishes, S subscribes, R is a rendezvous node."""
    side, roles = setups.SIDE, {**ROLES, "R": table}
    axes.imshow([shares[i : i + side] for i in range(0, side**2, side)], cmap="OrRd", vmin=0, vmax=1)
    for node, used in enumerate(shares):
        row, column = divmod(node, side)
        letters = "".join(letter for letter, nodes in roles.items() if node in nodes)
        text = "\n".join(filter(None, (letters, f"{used:.0%}")))
        colour = "white" if used > 0.6 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks([])
    axes.set_yticks([])


EXPERIMENT = Design(
    "energy-map",
    "where energy is spent  [Energy-aware DDS, Figures 54 to 56]",
    points,
    parameters,
    RULES,
    claims,
    (
        *(f"{what}, {rest}" for rest in RESTS for what in ("full nodes", "mJ")),
        *(f"full nodes, {how}" for how in (OWN, SENDING)),
    ),
    lambda: (),
    extra=full_nodes,
    draw=draw,
).experiment
