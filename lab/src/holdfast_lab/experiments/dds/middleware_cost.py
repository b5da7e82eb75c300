"""What the middleware costs against an application without.  [Chapter 3, Figures 22, 23, 25; D62, D67]"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND

from ..experiment import Judged
from . import setups
from .air import CLEAR, NOISY, TINYOS, TINYOS_FOR_DYMO, printed
from .measure import RESTS, Point, point
from .report import Design, Line, Panel, experiment
from .study import Study

AIRS = (CLEAR, NOISY)
IPIS = (2, 4, 6, 8, 10)
LINKS = {"acknowledge": TINYOS_FOR_DYMO, "do not": TINYOS}
"""DYMO sees broken links by acknowledgements; what was lost it sends again.  Without them nobody does."""
ARMS = ("baseline", "TinyDDS")
STEP = 100 / 3
INITIAL_MJ = 21_600_000 * 16
"""2000 mAh at 3 V in each of 16 nodes."""

RULES = {
    "pdr-10%-lower": "With the middleware PDR is nearly 10 % lower. Rule: the mean over all IPIs is lower "
    "by 0.05 to 0.15 in the clear air, with links that acknowledge.",
    "delay-60-80ms": "The middleware adds 60 ms (IPI 10) to 80 ms (IPI 2). Rule: in the clear air it adds "
    "45 to 75 ms at IPI 10 and 60 to 100 ms at IPI 2.",
    "energy": "The middleware uses 1.24 % of the initial energy where the baseline uses 0.87 %, at IPI 2: "
    "a ratio of 1.43. Rule: the ratio of the means at IPI 2 in the clear air is within 0.15 of 1.43, under "
    "one of the rest states.",
}


def points(full: bool) -> list[Point]:
    return [
        point(
            {"air": air, "links": links, "arm": arm, "IPI s": ipi},
            setups.middleware_cost,
            arm == "TinyDDS",
            ipi * SECOND,
            duration=(5000 if full else 1000) * SECOND,
            step=STEP,
            mac=mac,
        )
        for air in AIRS
        for links, mac in LINKS.items()
        for arm in ARMS
        for ipi in IPIS
    ]


def claims(study: Study) -> Sequence[Judged]:
    return [_pdr(study), _delay(study), _energy(study)]


def _at(air: str, arm: str, ipi: int, links: str = "acknowledge") -> dict[str, Any]:
    return {"air": air, "links": links, "arm": arm, "IPI s": ipi}


def _pdr(study: Study) -> Judged:
    def lower(air: str, links: str) -> float:
        return fmean(
            study.mean("PDR", **_at(air, "baseline", ipi, links))
            - study.mean("PDR", **_at(air, "TinyDDS", ipi, links))
            for ipi in IPIS
        )

    bare = {air: {arm: study.mean("PDR", **_at(air, arm, 6, "do not")) for arm in ARMS} for air in AIRS}
    return Judged(
        0.1,
        {f"lower by, {air}, links {links}": lower(air, links) for air in AIRS for links in LINKS},
        0.05 <= lower(CLEAR, "acknowledge") <= 0.15,
        "Where links do not acknowledge, PDR at IPI 6 is "
        f"{bare[CLEAR]['baseline']:.2f} and {bare[CLEAR]['TinyDDS']:.2f} (with the middleware) in the clear "
        f"air, {bare[NOISY]['baseline']:.2f} and {bare[NOISY]['TinyDDS']:.2f} in the noisy one; the thesis "
        "has 0.76.",
        {
            False: "Two publishers with a message in two seconds or fewer do not load a channel of 250 "
            "kbit/s, and DYMO sends again what a link did not acknowledge, so everything arrives in both "
            "arms. The thesis' baseline lost about as much at every rate, so its links and not its load were "
            "the cause. Where links do not acknowledge, DYMO does not notice that it has chosen one over two "
            "steps of the grid, which brings a frame now and then, and PDR depends on the route that was "
            "found."
        },
    )


def _delay(study: Study) -> Judged:
    added = {
        air: {
            ipi: study.mean("EED ms", **_at(air, "TinyDDS", ipi))
            - study.mean("EED ms", **_at(air, "baseline", ipi))
            for ipi in IPIS
        }
        for air in AIRS
    }
    clear = added[CLEAR]
    base = study.mean("EED ms", **_at(CLEAR, "baseline", 2))
    return Judged(
        {"IPI 2": 80, "IPI 10": 60},
        {f"added ms, {air}, IPI {ipi}": added[air][ipi] for air in AIRS for ipi in (2, 10)},
        45 <= clear[10] <= 75 and 60 <= clear[2] <= 100,
        f"The baseline needs about {base / 3:.0f} ms for each of its three hops.",
        {
            False: "What the middleware adds here is the way by the rendezvous node (node 0): four hops in "
            "place of three. By the thesis' own 20 ms a hop (200 ms for five hops and back) that would be 20 "
            "ms; 60 to 80 ms must be processing and queues in its nodes, which a simulation of radios does "
            "not have. The first message of a publisher waits for its route, which weighs more the fewer "
            "there are: so the baseline's mean grows with IPI."
        },
    )


def _energy(study: Study) -> Judged:
    ratios = {
        f"{rest}, {air}, IPI {ipi}": study.mean(f"mJ, {rest}", **_at(air, "TinyDDS", ipi))
        / study.mean(f"mJ, {rest}", **_at(air, "baseline", ipi))
        for rest in RESTS
        for air in AIRS
        for ipi in (2, 10)
    }
    radio_only = {
        air: study.mean("radio mJ, sleeping", **_at(air, "TinyDDS", 2))
        / study.mean("radio mJ, sleeping", **_at(air, "baseline", 2))
        for air in AIRS
    }
    used = study.mean("mJ, listening", **_at(CLEAR, "TinyDDS", 2)) / INITIAL_MJ
    return Judged(
        1.43,
        ratios,
        any(abs(ratios[f"{rest}, {CLEAR}, IPI 2"] - 1.43) <= 0.15 for rest in RESTS),
        f"Listening, the middleware uses {used:.2%} of the batteries in this run; sleeping, the ratio of the "
        f"radios alone is {radio_only[CLEAR]:.2f}. The thesis' 37 % is the difference of its percentages, "
        "1.24 - 0.87, times 100.",
        {
            False: "With radios that listen, energy is time, in both arms alike, and no traffic of any "
            "middleware can make it 1.43 times as much. With nodes that sleep between frames the ratio is "
            "that of frames and of sampling at 4 Hz, which both arms do."
        },
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": f"Chapter 3: 4 × 4 nodes, publishers 1 and 4, base station 15, {5000 if full else 1000} s "
        "(the thesis gives no duration); processors sample at 4 Hz, 2 ms each time, and send the mean",
        "baseline": "publishers send straight to node 15; no middleware",
        "TinyDDS": "DefTDDS at best effort; the rendezvous node is 0, equation 6.1 taken literally; ten "
        "subscriptions",
        "routing": "on demand, as DYMO, in both arms",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
        **printed(STEP, TINYOS_FOR_DYMO),
    }


def panels(_: Study) -> list[Panel]:
    lines = [
        Line(f"{arm}, {air}", {"air": air, "links": "acknowledge", "arm": arm})
        for air in AIRS
        for arm in ARMS
    ]
    bare = [
        Line(f"{arm}, noisy, no acknowledgements", {"air": NOISY, "links": "do not", "arm": arm})
        for arm in ARMS
    ]
    return [
        Panel("Figure 22: delivered", "PDR", "IPI s", [*lines[:2], *bare], paper=((6, 0.76),)),
        Panel("Figure 23: delay", "EED ms", "IPI s", lines, "ms"),
        Panel("Figure 25: energy, sleeping at rest", "mJ, sleeping", "IPI s", lines, "mJ"),
        Panel("Figure 25: energy, listening at rest", "mJ, listening", "IPI s", lines, "mJ"),
    ]


EXPERIMENT = experiment(
    Design(
        "middleware-cost",
        "what a middleware costs  [Energy-aware DDS, Figures 22, 23 and 25]",
        points,
        parameters,
        RULES,
        claims,
        ("PDR", "EED ms", "frames", "mJ, sleeping", "mJ, listening"),
        panels,
    )
)
