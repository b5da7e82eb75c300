"""The retransmission timeout, over different numbers of hops. [§4.2.2, Figure 31; D20, D21]"""

from __future__ import annotations

from holdfast.model.instant import MILLISECOND, SECOND

from ..experiment import Judged
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import Point, point
from .report import CurveSpec, Design, Panel, judge_each, verdict
from .study import Study

RTOS = (200, 400, 600, 800, 1000)
HOPS = (2, 4, 6, 8, 10)
AIRS = (FITTED, CLEAR, NOISY)

RULES = {
    "no-drops-200-400": "With RTO 200 and 400 ms no message is dropped, up to ten hops. Rule: in every run "
    "of these points in the fitted air DMR is 0.",
    "six-hops-100%": "Up to six hops every RTO gives a PDR of 100 % without drops, with delays in "
    "milliseconds. Rule: in every run up to six hops in the fitted air PDR is 1 and DMR 0, and mean "
    "delays are below 1000 ms.",
    "400-fewer-retx": "With 400 ms there are fewer retransmissions for a message than with 200 ms, at "
    "equal PDR. Rule: at ten hops in the fitted air the mean is lower by more than both standard "
    "deviations together, and PDRs differ by less than 0.01.",
}


def points(full: bool) -> list[Point]:
    return [
        point(
            {"air": air, "hops": hops, "RTO ms": rto},
            setups.rtdds_rto,
            rto * MILLISECOND,
            hops // 2,
            duration=(500 if full else 150) * SECOND,
            reliable=setups.acknowledging(air, rto * MILLISECOND),
        )
        for air in AIRS
        for hops in (HOPS if full else HOPS[::2])
        for rto in (RTOS if full or air == FITTED else RTOS[:2] + RTOS[-1:])
    ]


def _no_drops(study: Study) -> Judged:
    def largest(air: str) -> float:
        return max(study.every("DMR", lambda at: at["air"] == air and at["RTO ms"] <= 400))

    worst = {air: largest(air) for air in AIRS}
    slow = {air: study.mean("DMR", **{"air": air, "hops": 10, "RTO ms": 1000}) for air in AIRS}
    needed = study.mean("ReTx/msg", **{"air": FITTED, "hops": 10, "RTO ms": 400})
    return verdict(
        0,
        {f"largest DMR, {air}": dmr for air, dmr in worst.items()},
        worst[FITTED] == 0,
        f"With 1000 ms at ten hops DMR is {slow[FITTED]:.2f} in the fitted air, {slow[CLEAR]:.2f} in the "
        f"clear and {slow[NOISY]:.2f} in the noisy one. With 400 ms a message needs {needed:.1f} "
        "retransmissions in the fitted air.",
        why_not="Ten hops need more of them than the six at most by which the air was fitted, and 400 ms "
        "for each are longer than the second until the next message: the ring fills. With 200 ms it "
        "fills in a few runs. In the clear and the noisy air nothing is dropped.",
        why="As the thesis says, a writer that waits as long for an acknowledgement as it has until "
        "the next message cannot catch up. In the clear air nothing is lost, so no timeout matters.",
    )


def _six_hops(study: Study) -> Judged:
    def near(air: str, quantity: str) -> list[float]:
        return study.every(quantity, lambda at: at["air"] == air and at["hops"] <= 6)

    def slowest(air: str) -> float:
        return max(study.means("EED ms", lambda at: at["air"] == air and at["hops"] <= 6))

    found = {
        air: {"PDR": min(near(air, "PDR")), "DMR": max(near(air, "DMR")), "delay ms": slowest(air)}
        for air in AIRS
    }
    judged = found[FITTED]
    at_400 = study.mean("EED ms", **{"air": FITTED, "hops": 6, "RTO ms": 400})
    return verdict(
        {"PDR": 1, "DMR": 0, "delay": "ms"},
        {f"{air}, worst": worst for air, worst in found.items()},
        judged["PDR"] == 1 and judged["DMR"] == 0 and judged["delay ms"] < 1000,
        f"In the fitted air the delay at six hops is {at_400:.0f} ms with a timeout of 400 ms, and "
        f"{judged['delay ms']:,.0f} ms at the slowest.",
        why_not="Each loss costs a timeout, and messages wait behind it: the delay grows with the timeout.",
    )


def _fewer(study: Study) -> Judged:
    def at(air: str, rto: int, quantity: str) -> tuple[float, float]:
        where = {"air": air, "hops": 10, "RTO ms": rto}
        return study.mean(quantity, **where), study.deviation(quantity, **where)

    (short, s), (long, t) = (at(FITTED, rto, "ReTx/msg") for rto in (200, 400))
    early, late = (at(FITTED, rto, "PDR")[0] for rto in (200, 400))
    trip = study.mean("EED ms", **{"air": CLEAR, "hops": 10, "RTO ms": 200})
    return verdict(
        "400 ms lower than 200 ms",
        {f"{air}, {rto} ms": at(air, rto, "ReTx/msg")[0] for air in AIRS for rto in (200, 400)},
        short - long > s + t and abs(early - late) < 0.01,
        f"In the fitted air it is lower by {short - long:.2f}; the standard deviations are {s:.2f} and "
        f"{t:.2f}, the PDRs {early:.3f} and {late:.3f}. In the clear air, where nothing is sent twice, a "
        f"message needs {trip:.0f} ms for ten hops; the thesis says that five hops and back took 200 ms at "
        "least.",
        why_not="Links are drawn anew with each seed and differ by more than the timeouts do; and at a "
        "message a second the longer timeout fills the ring, so that PDRs are not equal.",
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "Table 5, FRQoS-RTO: 5 × 10 nodes, 2 publishers, one message of 20 bytes a second each, "
        f"{500 if full else 150} s",
        "hops": "end to end; half of them to the rendezvous node, half from there to the base station",
        "level": "FRQoS, ring of 20, IFS as in all of chapter 4",
        **show_link(setups.SPACING),
        **setups.ACKNOWLEDGED,
    }


def panels() -> list[Panel]:
    lines = [
        CurveSpec(f"RTO {rto} ms, {air}", {"air": air, "RTO ms": rto})
        for air in AIRS
        for rto in ((200, 400, 1000) if air == FITTED else (400,))
    ]
    return [
        Panel("a: delivered", "PDR", "hops", lines),
        Panel("b: retransmissions for a message", "ReTx/msg", "hops", lines),
        Panel("c: delay", "EED ms", "hops", lines, "ms"),
        Panel("d: dropped at the ring", "DMR", "hops", lines),
    ]


EXPERIMENT = Design(
    "rtdds-rto",
    "retransmission timeout and hops  [Energy-aware DDS, Figure 31]",
    points,
    parameters,
    RULES,
    judge_each(_no_drops, _six_hops, _fewer),
    ("PDR", "ReTx/msg", "EED ms", "DMR"),
    panels,
).experiment
