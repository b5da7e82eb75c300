"""With a broker, without one, and with one for discovery only.  [Chapter 6, Figures 43 to 53; D40–D45]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.protocols.dds.deployment import ModeName
from holdfast.protocols.dds.level import BEST_EFFORT, FULL
from holdfast.sim.chance import stream

from ..experiment import Judged
from . import place, setups
from .air import CLEAR, NOISY
from .air import printed as printed_air
from .measure import RESTS, Point, point
from .place import BETWEEN, HASHED
from .report import Design, Line, Panel, experiment
from .study import Study

MODES: tuple[ModeName, ...] = ("DefTDDS", "BLTDDS", "HyTDDS")
IPIS = (2, 4, 6, 8, 10)
LEVELS = {"reliable": FULL, "best effort": BEST_EFFORT}
PLACES = ((HASHED, CLEAR), (HASHED, NOISY), (BETWEEN, CLEAR))
"""Which placements are measured in which air; the first is what equation 6.1 says, and judged."""
JOINING = "joining"
"""The level of short runs in which subscribers come while samples flow."""
STEP = 100 / 6

RULES = {
    "discovery-messages-order": "BLTDDS needs by far the most discovery messages, HyTDDS slightly more "
    "than DefTDDS. Rule: at every IPI, in all placements and airs, BL > 5 × Hy and Hy > Def.",
    "discovery-time-order": "DefTDDS is discovered first, BLTDDS soon after, HyTDDS last. Rule: at every "
    "IPI, with rendezvous nodes as equation 6.1 has them, in the clear air, the means are in this order.",
    "no-loss-BL-Hy": "With reliable QoS at heavy load DefTDDS loses messages; BLTDDS and HyTDDS lose none. "
    "Rule: at IPI 2 the mean PDR of BL and Hy is 0.999 at least and that of Def below 0.99, in one of the "
    "placements or airs.",
    "energy-third": "With reliable QoS BLTDDS and HyTDDS use nearly a third less than DefTDDS. Rule: at "
    "IPI 2 both save from 20 to 45 %, with rendezvous nodes as equation 6.1 has them, in the clear air, "
    "under one of the rest states.",
    "mcu-quarter": "The processor uses nearly a quarter of what the radio uses, and nearly the same at "
    "every load. Rule: listening at rest, with reliable QoS, the ratio is from 0.2 to 0.3 for every mode "
    "and IPI, and the processor's energy at IPI 2 and 10 differs by less than 5 %.",
}


def points(full: bool) -> list[Point]:
    data = [(at, mode, level, ipi) for at in PLACES for mode in MODES for level in LEVELS for ipi in IPIS]
    some = [each for each in data if full or each[-1] in (2, 10)]
    discovery = [(at, mode, JOINING, ipi) for at in PLACES for mode in MODES for ipi in IPIS]
    return [_point(*each, 1000 if full else 200) for each in some + discovery]


def _point(at: tuple[str, str], mode: ModeName, level: str, ipi: int, seconds: int) -> Point:
    joins = level == JOINING
    make = joining if joins else partial(setups.modes, level=LEVELS[level])
    return point(
        _at(mode, ipi, level, at),
        make,
        mode,
        ipi * SECOND,
        rendezvous=place.RENDEZVOUS[at[0]],
        duration=(60 if joins else seconds) * SECOND,
        step=STEP,
    )


def joining(mode: ModeName, ipi: int, seed: int, **more: Any) -> setups.Setup:
    """Subscribers come one after the other while publishers are at work, each at a moment of its own."""
    setup = setups.modes(mode, ipi, FULL, seed=seed, **more)
    chance = stream(seed, "joining")
    come = {
        node: setup.start + (i + 1) * 10 * SECOND + chance.randrange(ipi)
        for i, node in enumerate((setups.BASE_STATION, setups.LEFT_ACTUATOR, setups.RIGHT_ACTUATOR))
    }
    return replace(setup, joining=come)


def claims(study: Study) -> Sequence[Judged]:
    return [_messages(study), _time(study), _no_loss(study), _third(study), _quarter(study)]


def _at(mode: str, ipi: int, level: str, at: tuple[str, str] = PLACES[0]) -> dict[str, Any]:
    where, air = at
    return {"rendezvous": where, "air": air, "mode": mode, "level": level, "IPI s": ipi}


def _messages(study: Study) -> Judged:
    found = {
        (at, ipi): [study.mean("discovery messages", **_at(mode, ipi, JOINING, at)) for mode in MODES]
        for at in PLACES
        for ipi in IPIS
    }
    brokered, _, hybrid = found[PLACES[0], 2]
    return Judged(
        "BL ≫ Hy > Def",
        {f"{mode}, IPI 2": value for mode, value in zip(MODES, found[PLACES[0], 2], strict=True)},
        all(bl > 5 * hy and hy > de for de, bl, hy in found.values()),
        f"HyTDDS needs {hybrid / brokered:.1f} times as many as DefTDDS.",
        {
            True: "Five subscriptions are said ten times each, which is the least there can be. A flood "
            "makes each of them 49. HyTDDS tells every publisher of each that arrives."
        },
    )


def _time(study: Study) -> Judged:
    found = {
        at: {
            ipi: [study.mean("discovery ms", **_at(mode, ipi, JOINING, at)) for mode in MODES] for ipi in IPIS
        }
        for at in PLACES
    }
    judged = found[PLACES[0]]
    deviation = {mode: study.deviation("discovery ms", **_at(mode, 10, JOINING)) for mode in MODES}
    return Judged(
        "Def < BL < Hy",
        {
            f"{', '.join(at)}, IPI {ipi}, ms": dict(zip(MODES, found[at][ipi], strict=True))
            for at in PLACES
            for ipi in (2, 10)
        },
        all(de < bl < hy for de, bl, hy in judged.values()),
        "The standard deviations at IPI 10 are "
        + ", ".join(f"{mode} {each:,.0f} ms" for mode, each in deviation.items())
        + "; in the thesis HyTDDS is the least stable.",
        {
            False: "A subscription that is lost is said again a second later, and that decides: a flood "
            "reaches everybody by several ways and nearly never needs the second, a message to the "
            "rendezvous node does at times, and HyTDDS needs the arrival of several messages that are sent "
            "at once and so meet each other."
        },
    )


def _no_loss(study: Study) -> Judged:
    found = {at: {mode: study.mean("PDR", **_at(mode, 2, "reliable", at)) for mode in MODES} for at in PLACES}
    bare = {mode: study.mean("PDR", **_at(mode, 2, "best effort")) for mode in MODES}
    return Judged(
        "Def < 1, BL = Hy = 1",
        {", ".join(at): pdr for at, pdr in found.items()},
        any(pdr["DefTDDS"] < 0.99 and min(pdr["BLTDDS"], pdr["HyTDDS"]) >= 0.999 for pdr in found.values()),
        f"At best effort the PDRs are {', '.join(f'{mode} {value:.2f}' for mode, value in bare.items())}.",
        {
            False: "BLTDDS and HyTDDS lose nothing, but DefTDDS does not either: a writer that repeats "
            "without end loses only what its ring cannot hold, and at a message in two seconds no ring fills."
        },
    )


def _third(study: Study) -> Judged:
    def saved(mode: str, rest: str, at: tuple[str, str], ipi: int = 2) -> float:
        ours, brokered = (
            study.mean(f"mJ, {rest}", **_at(each, ipi, "reliable", at)) for each in (mode, "DefTDDS")
        )
        return 1 - ours / brokered

    ours = {
        f"{', '.join(at)}, {rest}": {mode: saved(mode, rest, at) for mode in MODES[1:]}
        for at in PLACES
        for rest in RESTS
    }
    judged = [ours[f"{', '.join(PLACES[0])}, {rest}"] for rest in RESTS]
    return Judged(
        "nearly a third saved",
        ours,
        any(all(0.2 <= share <= 0.45 for share in each.values()) for each in judged),
        f"Sleeping at rest HyTDDS saves {saved('HyTDDS', 'sleeping', PLACES[0]):.0%} with rendezvous nodes "
        f"where equation 6.1 puts them, and {saved('HyTDDS', 'sleeping', PLACES[2]):.0%} where they stand on "
        "the way.",
        {
            False: "Listening at rest nothing is saved by anybody: energy is time. Sleeping it depends on "
            "where the rendezvous nodes stand: where equation 6.1 puts them every sample makes a detour; on "
            "the way from publishers to subscribers they cost little, for one copy goes to them and is "
            "multiplied there. A third lies between the two."
        },
    )


def _quarter(study: Study) -> Judged:
    ipis = sorted({dict(key)["IPI s"] for key in study.where(level="reliable")})

    def mcu(mode: str, ipi: int, rest: str) -> float:
        return study.mean(f"MCU mJ, {rest}", **_at(mode, ipi, "reliable"))

    def ratio(mode: str, ipi: int, rest: str) -> float:
        return mcu(mode, ipi, rest) / study.mean(f"radio mJ, {rest}", **_at(mode, ipi, "reliable"))

    ratios = {rest: [ratio(mode, ipi, rest) for mode in MODES for ipi in ipis] for rest in RESTS}
    change = {
        rest: max(abs(mcu(mode, 2, rest) / mcu(mode, 10, rest) - 1) for mode in MODES) for rest in RESTS
    }
    on = ratios["listening"]
    return Judged(
        0.25,
        {
            **{f"ratio, {rest}": [min(each), max(each)] for rest, each in ratios.items()},
            **{f"change with load, {rest}": value for rest, value in change.items()},
        },
        min(on) >= 0.2 and max(on) <= 0.3 and change["listening"] < 0.05,
        f"Listening at rest the ratio is from {min(on):.3f} to {max(on):.3f}.",
        {
            True: "Listening it is 12 mW beside 59.1 mW, whatever the nodes do. That both figures of the "
            "thesis fit this rest state says which one its chapter 6 was measured in, and in this one no "
            "mode can save a third."
        },
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        **place.printed(),
        "durations": f"{1000 if full else 200} s; {JOINING}: 60 s, the three subscribers come 10, 20 and 30 "
        "s after the first samples, at random moments of the interval",
        "level": "reliable: FRQoS, RTO 400 ms, ring of 20; best effort: BEQoS",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
        **printed_air(STEP),
    }


def panels(_: Study) -> list[Panel]:
    def lines(level: str) -> list[Line]:
        return [
            Line(
                f"{mode}, {where}" + (", noisy" if air == NOISY else ""),
                {"rendezvous": where, "air": air, "mode": mode, "level": level},
            )
            for where, air in PLACES
            if air == CLEAR
            for mode in MODES
        ]

    return [
        Panel("Figure 43: discovery messages", "discovery messages", "IPI s", lines(JOINING), log=True),
        Panel("Figure 44: discovery time", "discovery ms", "IPI s", lines(JOINING), "ms"),
        Panel("Figure 45: delivered, reliable", "PDR", "IPI s", lines("reliable")),
        Panel("Figure 46: delivered, best effort", "PDR", "IPI s", lines("best effort")),
        Panel("Figure 49: energy, reliable, sleeping", "mJ, sleeping", "IPI s", lines("reliable"), "mJ"),
        Panel("Figure 49: energy, reliable, listening", "mJ, listening", "IPI s", lines("reliable"), "mJ"),
    ]


EXPERIMENT = experiment(
    Design(
        "tinydds-modes",
        "with, without and half a broker  [Energy-aware DDS, Figures 43 to 53]",
        points,
        parameters,
        RULES,
        claims,
        (
            *("PDR", "EED ms", "ReTx/msg", "discovery ms", "discovery messages"),
            *(f"{part}, {rest}" for rest in RESTS for part in ("mJ", "radio mJ", "MCU mJ")),
        ),
        panels,
        shown=("PDR", "EED ms", "discovery ms", "discovery messages", *(f"mJ, {rest}" for rest in RESTS)),
    )
)
