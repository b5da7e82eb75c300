"""Full reliability at a high and at a low rate. [§4.2.2, Table 6]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds.level import FULL

from ..experiment import Judged
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import Point, point
from .report import CurveSpec, Design, Panel
from .study import Study

SCHEDULED, UNSCHEDULED = "fitted", "fitted, no IFS"
AIRS = {
    SCHEDULED: (FITTED, True),
    UNSCHEDULED: (FITTED, False),
    "clear": (CLEAR, True),
    "noisy": (NOISY, True),
}
"""The measured cases: a radio model, and whether publishers are scheduled. Chapter 4 schedules them
(L846)."""
SECONDS = {5: 500, 60: 7200}
TABLE: Mapping[str, Mapping[int, float]] = {
    "issued": {5: 2500, 60: 3000},
    "PDR": {5: 1.0, 60: 1.0},
    "EED ms": {5: 5172.0, 60: 243.0},
    "ReTx/msg": {5: 9.22, 60: 1.18},
    "DMR": {5: 0.0, 60: 0.0},
    "Rd/msg": {5: 0.68, 60: 0.42},
}
"""Table 6, by quantity and IPI."""
CLOSE = 0.25

COLUMNS = {
    "msgs": ("issued", "the number of messages"),
    "pdr": ("PDR", "the packet delivery ratio"),
    "delay": ("EED ms", "the delay"),
    "retx": ("ReTx/msg", "retransmissions for a packet"),
    "dropped": ("DMR", "dropped messages"),
    "rd": ("Rd/msg", "redundant receptions for a packet"),
}
EXACT = ("issued", "PDR", "DMR")

RULES = {
    id: f"Table 6, {title}, at one message in 5 s and in 60 s. Rule: the means in the fitted air, with IFS, "
    "are "
    + ("the printed values." if quantity in EXACT else "within 25 % of the printed values, in both rows.")
    + (" It follows from the set-up, so it cannot be judged." if id == "msgs" else "")
    for id, (quantity, title) in COLUMNS.items()
}


def points(_: bool) -> list[Point]:
    return [
        point(
            {"air": air, "IFS": ifs, "IPI s": ipi},
            setups.rtdds_load,
            25,
            ipi * SECOND,
            FULL,
            duration=seconds * SECOND,
            reliable=setups.acknowledging(air),
            ifs=ifs,
        )
        for air, ifs in AIRS.values()
        for ipi, seconds in SECONDS.items()
    ]


def claims(study: Study) -> Sequence[Judged]:
    return [_column(study, quantity) for quantity, _ in COLUMNS.values()]


def _column(study: Study, quantity: str) -> Judged:
    printed_values = TABLE[quantity]
    ours = {
        name: {ipi: study.mean(quantity, **{"air": air, "IFS": ifs, "IPI s": ipi}) for ipi in SECONDS}
        for name, (air, ifs) in AIRS.items()
    }
    judged, bare = ours[SCHEDULED], ours[UNSCHEDULED]
    close = 0.0 if quantity in EXACT else CLOSE
    return Judged(
        {f"IPI {ipi}": value for ipi, value in printed_values.items()},
        {f"{air}, IPI {ipi}": value for air in AIRS for ipi, value in ours[air].items()},
        None if quantity == "issued" else _near(judged, printed_values, close),
        f"In the fitted air {judged[5]:.4g} at IPI 5 and {judged[60]:.4g} at IPI 60; without IFS "
        f"{bare[5]:.4g} and {bare[60]:.4g}.",
        WHY.get(quantity, {}),
    )


def _near(found: Mapping[int, float], show_link: Mapping[int, float], close: float) -> bool:
    return all(abs(found[ipi] - value) <= close * value for ipi, value in show_link.items())


WHY: Mapping[str, Mapping[bool | None, str]] = {
    "issued": {None: "It is so by construction."},
    **{key: {True: "Writers retransmit without end, and rings do not fill."} for key in ("PDR", "DMR")},
}


def parameters(_: bool) -> dict[str, str]:
    return {
        "set-up": "Table 6: 5 × 10 nodes, 25 publishers drawn by the seed within three hops of the "
        "rendezvous node; 500 s at IPI 5, 7200 s at IPI 60 (the default run is the full one)",
        "level": "FRQoS, ring of 20, RTO 400 ms, IFS unless said otherwise",
        **show_link(setups.SPACING),
        **setups.ACKNOWLEDGED,
    }


def panels() -> list[Panel]:
    lines = [CurveSpec(name, {"air": air, "IFS": ifs}) for name, (air, ifs) in AIRS.items()]
    return [
        Panel(title, quantity, "IPI s", lines, unit, paper=tuple(TABLE[quantity].items()))
        for title, quantity, unit in (
            ("delay", "EED ms", "ms"),
            ("retransmissions for a packet", "ReTx/msg", ""),
            ("redundant for a packet", "Rd/msg", ""),
        )
    ]


EXPERIMENT = Design(
    "rtdds-rate",
    "high and low rates  [Energy-aware DDS, Table 6]",
    points,
    parameters,
    RULES,
    claims,
    ("issued", "PDR", "EED ms", "ReTx/msg", "DMR", "Rd/msg"),
    panels,
).experiment
