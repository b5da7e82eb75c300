"""With a broker, without a broker, and with a broker for discovery only.

[Chapter 6, Figures 43 to 53; D40–D45]
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.protocols.dds.deployment import DiscoverySettings, ModeName
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL
from holdfast.network.sim.chance import stream

from ..experiment import Judged
from . import place, setups
from .air import CLEAR, FITTED, NOISY
from .air import show_link as printed_air
from .measure import RESTS, Point, point
from .place import BETWEEN, DRAWN, HASHED
from .report import CurveSpec, Design, Panel, judge_each, verdict
from .study import Study, spread

MODES: tuple[ModeName, ...] = ("DefTDDS", "BLTDDS", "HyTDDS")
IPIS = (2, 4, 6, 8, 10)
LEVELS = {"reliable": FULL, "best effort": BEST_EFFORT}
PLACES = ((HASHED, FITTED), (DRAWN, FITTED), (BETWEEN, FITTED), (HASHED, CLEAR), (HASHED, NOISY))
"""The measured combinations of placement and radio model; the first is that of equation 6.1, and judged."""
SCATTERED = PLACES[1]
"""Ten placements, a new one for each seed: they judge a saving that depends on the positions of brokers."""
OFTEN = DiscoverySettings(every=300 * MILLISECOND)
"""The time between the ten subscriptions. The thesis does not give it; the default is a second."""
JOINING, SELDOM = "joining", "joining, said every second"
"""Levels of short runs in which subscribers start while samples flow: with 300 ms or a second between
subscriptions."""
STEP = 100 / 6

RULES = {
    "discovery-messages-order": "BLTDDS needs by far the most discovery messages, HyTDDS slightly more "
    "than DefTDDS. Rule: at every IPI, in all placements and airs, BL > 5 × Hy and Hy > Def.",
    "discovery-time-order": "DefTDDS is discovered first, BLTDDS soon after, HyTDDS last. Rule: at every "
    "IPI, with rendezvous nodes as equation 6.1 has them, in the fitted air, the means are in this order.",
    "no-loss-BL-Hy": "With reliable QoS at heavy load DefTDDS loses messages; BLTDDS and HyTDDS lose none. "
    "Rule: at IPI 2 the mean PDR of BL and Hy is 0.999 at least and that of Def below 0.99, with "
    "rendezvous nodes as equation 6.1 has them, in the fitted air.",
    "delay-BL-Hy": "With reliable QoS the delay of BLTDDS and HyTDDS is in the range of hundreds of "
    "milliseconds, clearly below that of DefTDDS at heavy load. Rule: at IPI 2 (hashed, fitted) both means "
    "are from 100 to 1000 ms and at most half of that of DefTDDS.",
    "steady-at-BE": "At best effort the load has no significant effect on the delay. Rule: for every mode "
    "(hashed, fitted) the means at IPI 2 and 10 differ by less than 20 %.",
    "energy-third": "With reliable QoS BLTDDS and HyTDDS use nearly a third less than DefTDDS. Rule: at "
    "IPI 2 both save from 20 to 45 % on average over ten placements that are drawn, in the fitted air, under "
    "one of the rest states.",
    "equal-at-BE": "At best effort the three use nearly the same. Rule: sleeping at rest, at IPI 2 and 10 "
    "(hashed, fitted), the largest mean is at most 10 % above the least.",
    "flood-above-Hy": "BLTDDS uses slightly more than HyTDDS, reliably and at best effort. Rule: sleeping at "
    "rest, at IPI 2 and 10 (hashed, fitted), its mean is above that of HyTDDS, by at most 10 %.",
    "mcu-quarter": "The processor uses nearly a quarter of what the radio uses, and nearly the same at "
    "every load. Rule: none; listening at rest it is arithmetic (12 mW beside 59.1 mW), so it cannot be "
    "judged by a simulation.",
}


def points(full: bool) -> list[Point]:
    data = [(at, mode, level, ipi) for at in PLACES for mode in MODES for level in LEVELS for ipi in IPIS]
    some = [each for each in data if full or each[-1] == 2 or (each[-1] == 10 and each[0] == PLACES[0])]
    ipis = {at: IPIS if full or at == PLACES[0] else (2, 10) for at in PLACES}
    discovery = [(at, mode, JOINING, ipi) for at in PLACES for mode in MODES for ipi in ipis[at]]
    seldom = [(PLACES[0], mode, SELDOM, 10) for mode in MODES]
    found = [_point(*each, 1000 if full else 200) for each in some + discovery]
    return [*found, *(replace(_point(*each, 0), aside=True) for each in seldom)]


def _point(at: tuple[str, str], mode: ModeName, level: str, ipi: int, seconds: int) -> Point:
    joins = level in (JOINING, SELDOM)
    return point(
        _at(mode, ipi, level, at),
        joining if joins else at_work,
        at[0],
        mode,
        ipi * SECOND,
        level=FULL if joins else LEVELS[level],
        duration=(60 if joins else seconds) * SECOND,
        discovery=DiscoverySettings() if level == SELDOM else OFTEN,
        step=STEP,
    )


def at_work(where: str, mode: ModeName, ipi: int, seed: int, **more: Any) -> setups.Setup:
    """Return Table 10 with the rendezvous nodes of a placement."""
    return setups.modes(mode, ipi, rendezvous=place.rendezvous(where, seed), seed=seed, **more)


def joining(where: str, mode: ModeName, ipi: int, seed: int, **more: Any) -> setups.Setup:
    """Return a set-up in which subscribers start one after the other while publishers are at work.

    Each starts at a random time of the interval.
    """
    setup = at_work(where, mode, ipi, seed, **more)
    chance = stream(seed, "joining")
    come = {
        node: setup.start + (i + 1) * 10 * SECOND + chance.randrange(ipi)
        for i, node in enumerate((setups.BASE_STATION, setups.LEFT_ACTUATOR, setups.RIGHT_ACTUATOR))
    }
    return replace(setup, joining=come)


def _at(mode: str, ipi: int, level: str, at: tuple[str, str] = PLACES[0]) -> dict[str, Any]:
    where, air = at
    return {"rendezvous": where, "air": air, "mode": mode, "level": level, "IPI s": ipi}


def _ipis(study: Study, level: str, at: tuple[str, str] = PLACES[0]) -> list[int]:
    where, air = at
    return sorted({dict(key)["IPI s"] for key in study.where(level=level, rendezvous=where, air=air)})


def _when_joining(study: Study, quantity: str, ipi: int, at: tuple[str, str]) -> list[float]:
    """Return the means of a quantity for all modes while subscribers start."""
    return list(study.over(quantity, "mode", MODES, **_at("", ipi, JOINING, at)).values())


def _messages(study: Study) -> Judged:
    cells = [(at, ipi) for at in PLACES for ipi in _ipis(study, JOINING, at)]
    found = {(at, ipi): _when_joining(study, "discovery messages", ipi, at) for at, ipi in cells}
    brokered, _, hybrid = found[PLACES[0], 2]
    return verdict(
        "BL ≫ Hy > Def",
        {f"{mode}, IPI 2": value for mode, value in zip(MODES, found[PLACES[0], 2], strict=True)},
        all(bl > 5 * hy and hy > de for de, bl, hy in found.values()),
        f"HyTDDS needs {hybrid / brokered:.1f} times as many as DefTDDS.",
        why="Five subscriptions are said ten times each, which is the least there can be. A flood "
        "makes each of them 49. HyTDDS tells every publisher of each that arrives.",
    )


def _time(study: Study) -> Judged:
    ipis = {at: _ipis(study, JOINING, at) for at in PLACES}
    found = {at: {i: _when_joining(study, "discovery ms", i, at) for i in ipis[at]} for at in PLACES}
    judged = found[PLACES[0]]
    tens = {mode: study.values("discovery ms", **_at(mode, 10, JOINING)) for mode in MODES}
    seldom = [study.mean("discovery ms", **_at(mode, 10, SELDOM)) for mode in MODES]
    return verdict(
        "Def < BL < Hy",
        {
            f"{', '.join(at)}, IPI {ipi}, ms": dict(zip(MODES, found[at][ipi], strict=True))
            for at in PLACES
            for ipi in (2, 10)
        },
        all(de < bl < hy for de, bl, hy in judged.values()),
        "At IPI 10 medians and standard deviations are "
        + ", ".join(f"{mode} {median(each):,.0f} ± {spread(each):,.0f} ms" for mode, each in tens.items())
        + "; in the thesis HyTDDS is the least stable. Said every second, the means are "
        + ", ".join(f"{mode} {each:,.0f} ms" for mode, each in zip(MODES, seldom, strict=True))
        + ".",
        why_not="A subscription that is lost is said again 300 ms later, and that decides: a flood "
        "reaches everybody by several ways and nearly never needs the second, a message to the "
        "rendezvous node does at times, and HyTDDS needs the arrival of several messages that are sent "
        "at once and so meet each other.",
    )


def _no_loss(study: Study) -> Judged:
    found = {at: {mode: study.mean("PDR", **_at(mode, 2, "reliable", at)) for mode in MODES} for at in PLACES}
    bare = {mode: study.mean("PDR", **_at(mode, 2, "best effort")) for mode in MODES}
    judged = found[PLACES[0]]
    return verdict(
        "Def < 1, BL = Hy = 1",
        {", ".join(at): pdr for at, pdr in found.items()},
        judged["DefTDDS"] < 0.99 and min(judged["BLTDDS"], judged["HyTDDS"]) >= 0.999,
        f"At best effort the PDRs are {', '.join(f'{mode} {value:.2f}' for mode, value in bare.items())}. "
        f"Runs with losses, and the longest discovery in them: {_late_discovery(study)}.",
        why_not="A writer that repeats without end loses what its ring cannot hold, and what it published "
        "before it heard of a subscriber.",
    )


def _late_discovery(study: Study) -> str:
    """Return in how many runs of each mode samples were lost, and how long discovery took in them."""
    return ", ".join(f"{mode} {_lossy(study, mode)}" for mode in MODES)


def _lossy(study: Study, mode: str) -> str:
    took, arrived = (study.values(what, **_at(mode, 2, "reliable")) for what in ("discovery ms", "PDR"))
    lost = [ms for ms, pdr in zip(took, arrived, strict=True) if pdr < 1]
    return f"{len(lost)} of {len(took)}" + (f" ({max(lost) / 1e3:.1f} s)" if lost else "")


def _delay(study: Study) -> Judged:
    found = {at: study.over("EED ms", "mode", MODES, **_at("", 2, "reliable", at)) for at in PLACES}
    brokered, *others = found[PLACES[0]].values()
    return Judged(
        "BL, Hy: hundreds of ms",
        {f"{', '.join(at)}, ms": delays for at, delays in found.items()},
        all(100 <= each < 1000 and each <= brokered / 2 for each in others),
        f"{others[0]:.0f} ms without a broker, {others[1]:.0f} ms with one for discovery, {brokered:.0f} ms "
        "with one for everything.",
    )


def _steady(study: Study) -> Judged:
    at = _at("", 0, "best effort")
    found = {mode: study.over("EED ms", "IPI s", (2, 10), **at | {"mode": mode}) for mode in MODES}
    return Judged(
        "not significant",
        {f"{mode}, ms": delays for mode, delays in found.items()},
        all(abs(each[2] / each[10] - 1) < 0.2 for each in found.values()),
        "IPI 2 and 10.",
    )


def _third(study: Study) -> Judged:
    def saving(mode: str, rest: str, at: tuple[str, str], ipi: int = 2) -> float:
        modes, where = (mode, "DefTDDS"), _at("", ipi, "reliable", at)
        ours, brokered = study.over(f"mJ, {rest}", "mode", modes, **where).values()
        return 1 - ours / brokered

    ours = {
        f"{', '.join(at)}, {rest}": {mode: saving(mode, rest, at) for mode in MODES[1:]}
        for at in PLACES
        for rest in RESTS
    }
    judged = [ours[f"{', '.join(SCATTERED)}, {rest}"] for rest in RESTS]
    cells = [_at(mode, 2, "reliable", SCATTERED) for mode in ("HyTDDS", "DefTDDS")]
    pairs = zip(*(study.values("mJ, sleeping", **cell) for cell in cells), strict=True)
    each = [1 - hybrid / brokered for hybrid, brokered in pairs]
    return verdict(
        "nearly a third saved",
        ours,
        any(all(0.2 <= share <= 0.45 for share in shares.values()) for shares in judged),
        f"Sleeping at rest HyTDDS saves {saving('HyTDDS', 'sleeping', SCATTERED):.0%} over {len(each)} "
        f"placements that are drawn (from {min(each):.0%} to {max(each):.0%}), "
        f"{saving('HyTDDS', 'sleeping', PLACES[0]):.0%} with rendezvous nodes where equation 6.1 puts them, "
        f"and {saving('HyTDDS', 'sleeping', PLACES[2]):.0%} where they stand on the way.",
        why_not="Listening at rest nothing is saved by anybody: energy is time. Sleeping it depends on "
        "where the rendezvous nodes stand: where equation 6.1 puts them every sample makes a detour; on "
        "the way from publishers to subscribers they cost little, for one copy goes to them and is "
        "multiplied there. A third lies between the two.",
    )


def _spent(study: Study, level: str) -> dict[int, dict[str, float]]:
    """Return the energy of nodes that sleep at rest, in mJ, by IPI and mode."""
    return {ipi: study.over("mJ, sleeping", "mode", MODES, **_at("", ipi, level)) for ipi in (2, 10)}


def _equal(study: Study) -> Judged:
    found = _spent(study, "best effort")
    apart = {ipi: max(each.values()) / min(each.values()) - 1 for ipi, each in found.items()}
    return Judged(
        "nearly the same",
        {f"IPI {ipi}, mJ": each for ipi, each in found.items()},
        all(each <= 0.1 for each in apart.values()),
        f"The largest is {apart[2]:.0%} above the least at IPI 2, {apart[10]:.0%} at IPI 10.",
    )


def _flood(study: Study) -> Judged:
    above = {
        (level, ipi): each["BLTDDS"] / each["HyTDDS"] - 1
        for level in LEVELS
        for ipi, each in _spent(study, level).items()
    }
    return Judged(
        "slightly more",
        {f"above by, {level}, IPI {ipi}": value for (level, ipi), value in above.items()},
        all(0 < each <= 0.1 for each in above.values()),
        "What the flood of discovery costs is there once, whatever is sent after it.",
    )


def _quarter(study: Study) -> Judged:
    ipis = _ipis(study, "reliable")

    def mcu(mode: str, ipi: int, rest: str) -> float:
        return study.mean(f"MCU mJ, {rest}", **_at(mode, ipi, "reliable"))

    def ratio(mode: str, ipi: int, rest: str) -> float:
        return mcu(mode, ipi, rest) / study.mean(f"radio mJ, {rest}", **_at(mode, ipi, "reliable"))

    ratios = {rest: [ratio(mode, ipi, rest) for mode in MODES for ipi in ipis] for rest in RESTS}
    changes = {rest: [abs(mcu(m, 2, rest) / mcu(m, 10, rest) - 1) for m in MODES] for rest in RESTS}
    change = {rest: max(each) for rest, each in changes.items()}
    on = ratios["listening"]
    return verdict(
        0.25,
        {
            **{f"ratio, {rest}": [min(each), max(each)] for rest, each in ratios.items()},
            **{f"change with load, {rest}": value for rest, value in change.items()},
        },
        None,
        f"Listening at rest the ratio is from {min(on):.3f} to {max(on):.3f}.",
        why_open="Listening it is 12 mW beside 59.1 mW, whatever the nodes do. That both figures of the "
        "thesis fit this rest state says which one its chapter 6 was measured in, and in this one no "
        "mode can save a third.",
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        **place.describe(),
        "durations": f"{1000 if full else 200} s; {JOINING}: 60 s, the three subscribers come 10, 20 and 30 "
        "s after the first samples, at random moments of the interval; a subscription is said ten times, 300 "
        "ms apart",
        "level": "reliable: FRQoS, RTO 400 ms, ring of 20; best effort: BEQoS",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
        **printed_air(STEP),
    }


def panels() -> list[Panel]:
    def lines(level: str) -> list[CurveSpec]:
        return [
            CurveSpec(f"{mode}, {where}", {"rendezvous": where, "air": air, "mode": mode, "level": level})
            for where, air in PLACES[:2]
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


EXPERIMENT = Design(
    "tinydds-modes",
    "with, without and half a broker  [Energy-aware DDS, Figures 43 to 53]",
    points,
    parameters,
    RULES,
    judge_each(_messages, _time, _no_loss, _delay, _steady, _third, _equal, _flood, _quarter),
    (
        *("PDR", "EED ms", "ReTx/msg", "discovery ms", "discovery messages"),
        *(f"{part}, {rest}" for rest in RESTS for part in ("mJ", "radio mJ", "MCU mJ")),
    ),
    panels,
    shown=("PDR", "EED ms", "discovery ms", "discovery messages", *(f"mJ, {rest}" for rest in RESTS)),
).experiment
