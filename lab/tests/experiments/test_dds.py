"""The simulations of the thesis on DDS for sensors: what is measured, and how claims are judged."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds.deployment import ReliableSettings
from holdfast.network.protocols.dds.level import BEST_EFFORT
from holdfast_lab.experiments.data import locate
from holdfast_lab.experiments.dds import (
    air_parts,
    arqos,
    by_transition,
    eatdds_lifetime,
    energy_map,
    ifs,
    middleware_cost,
    place,
    rooms,
    rtdds_ipi,
    rtdds_partial,
    rtdds_rate,
    rtdds_rto,
    setups,
    state_on_mote,
    tinydds_modes,
)
from holdfast_lab.experiments.dds.air import CLEAR, FITTED, NOISY, QUALITY, TINYOS, disturb, path_loss, radio
from holdfast_lab.experiments.dds.measure import RESTS, Point, energies, measure, nothing
from holdfast_lab.experiments.dds.outcome import finish
from holdfast_lab.experiments.dds.report import Effort, run, run_study
from holdfast_lab.experiments.dds.study import Study
from holdfast_lab.experiments.experiment import Claim, Result
from holdfast_lab.experiments.recorded import record
from holdfast_lab.experiments.registry import load
from holdfast_lab.experiments.study import in_turn

PAGES = Path(__file__).resolve().parents[3] / "docs" / "experiments"
MODULES = (
    air_parts, arqos, eatdds_lifetime, energy_map, ifs, middleware_cost, rtdds_ipi, rtdds_partial, rtdds_rate,
    rtdds_rto, state_on_mote, by_transition, tinydds_modes,
)  # fmt: skip
IN_ROOMS = (state_on_mote, by_transition)
"""Those that need real readings."""


def quiet(_: str) -> None:
    """Ignore the progress of a study."""


def shorten(point: Point, seconds: int) -> Point:
    """The same point with a shorter duration; its noise from the beginning."""
    return replace(point, make=partial(point.make, duration=seconds * SECOND), noise=point.noise[:1])


# The air.


def test_a_node_of_the_grid_receives_its_eight_neighbours_only():
    for step in (100 / 6, 100 / 3):
        setup = setups.modes("DefTDDS", spacing=step, propagation=path_loss(step), mac=TINYOS)
        network = setup.run().network
        around = {8, 9, 10, 15, 17, 22, 23, 24}
        well = {reception.node for reception in network.receptions(16) if reception.per_us * 1_280 > -0.01}
        assert well == around


def test_noise_destroys_the_configured_share_of_frames():
    """With one publisher, one hop to the RN and one to the station, a sample arrives with (1 - share)²."""

    def delivery_ratio(share: float) -> float:
        more = {"level": BEST_EFFORT, "duration": 600 * SECOND, **radio(setups.SPACING)}
        run = setups.rtdds_rto(SECOND, 1, **more).run()
        run.network.at(0, partial(disturb, run.network, share))
        return finish(run).pdr

    assert delivery_ratio(0.0) == 1.0
    assert delivery_ratio(0.2) == pytest.approx(0.64, abs=0.04)


def test_in_the_fitted_radio_model_five_publishers_need_the_retransmissions_of_the_thesis():
    """L905: two for a message.  One seed of those that it was fitted with; and what the air is made of."""
    given = radio(setups.SPACING, air=FITTED)
    run = setups.rtdds_load(
        5, 5 * SECOND, seed=101, duration=60 * SECOND, reliable=setups.TO_ORIGIN, **given
    ).run()
    network = run.network
    shares = [reception.quality for node in network.nodes for reception in network.receptions(node.id)]
    assert (round(min(shares), 1), round(max(shares), 1)) == QUALITY
    assert network.setup.delays
    assert network.setup.mac.congestion == (300, 2_500)
    found = finish(run)
    assert found.pdr == 1.0
    assert 1.3 < found.retx < 2.7


# What is measured.


def test_energies_under_both_rest_states_come_from_one_run():
    for rest in RESTS.values():
        run = setups.modes("HyTDDS", 2 * SECOND, duration=20 * SECOND, rest=rest, **radio(100 / 6)).run()
        run.finish()
        found = energies(run.network)
        (name,) = (name for name, each in RESTS.items() if each == rest)
        assert found[f"mJ, {name}"] == pytest.approx(sum(run.network.joules()) * 1e3, rel=1e-9)
    assert found["mJ, listening"] > 100 * found["mJ, sleeping"]


def test_equal_points_and_seeds_give_equal_measurements():
    point = shorten(rtdds_partial.points(False)[-1], 20)
    assert measure(nothing, (point, 3)) == measure(nothing, (point, 3))
    assert measure(nothing, (point, 3)) != measure(nothing, (point, 4))


def test_every_design_has_points_that_run_and_measure_what_its_table_shows():
    for module in MODULES:
        if module in IN_ROOMS:
            continue
        design = module.EXPERIMENT.run.args[0]
        points = design.points(False)
        assert len({point.key for point in points}) == len(points) <= len(design.points(True))
        found = measure(design.extra, (shorten(points[0], 12), 1))
        assert set(design.quantities) <= set(found)
        json.dumps(found)


def test_a_study_gives_means_and_deviations_of_the_point_that_is_named():
    study = Study({(("air", "clear"), ("x", x)): [{"q": x}, {"q": x + 2}, {"q": None}] for x in (1, 5)})
    assert study.mean("q", x=5) == 6
    assert study.deviation("q", x=5) == pytest.approx(2**0.5)
    assert study.levels("x") == [1, 5]
    assert study.every("q", lambda at: at["x"] > 1) == [5, 7]


def test_an_interrupted_full_run_continues(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    points = [shorten(point, 12) for point in rtdds_rto.points(False)[:2]]
    design = replace(rtdds_rto.EXPERIMENT.run.args[0], points=lambda _: points)
    ran: list[str] = []

    def apply(function, cells):
        ran.extend(str(cell) for cell in cells)
        if len(ran) > 3:
            raise KeyboardInterrupt
        return in_turn(function, cells)

    with pytest.raises(KeyboardInterrupt):
        run_study(design, True, quiet, Effort(2, apply))
    assert len(ran) == 4
    resumed = run_study(design, True, quiet, Effort(2, in_turn))
    assert resumed == run_study(design, False, quiet, Effort(2, in_turn))
    (used,) = (tmp_path / "holdfast" / "reproduce").iterdir()
    used.write_text("no JSON", encoding="utf-8")
    with pytest.raises(InputError, match="remove it"):
        run_study(design, True, quiet, Effort(2, in_turn))


# Claims: by the thesis' own figures they hold, and each can fail.


def claims(module, value, **more) -> list[Claim]:
    """The claims about a study in which ``value(at)`` is the measurement at each point."""
    design = (
        module.design(rooms.Trace({1: (1.0,)}, 0), 8) if module in IN_ROOMS else module.EXPERIMENT.run.args[0]
    )
    points = design.points(False)
    study = Study({point.key: [value(dict(point.key)) | more] * 2 for point in points})
    return list(design.claims(study))


def judge(module, value, **more) -> dict[str, bool | None]:
    """The verdicts on them."""
    found = claims(module, value, **more)
    assert [claim.id for claim in found] == list(module.RULES)
    assert all(
        claim.claim == module.RULES[claim.id] and "Rule:" in claim.claim and claim.note for claim in found
    )
    json.dumps([claim.to_json() for claim in found])
    return {claim.id: claim.holds for claim in found}


# The measurements of the thesis, as a function of the point; values that it does not give are arbitrary.

ANYTHING = {
    "PDR": 1.0, "DMR": 0.0, "EED ms": 100.0, "ReTx/msg": 1.0, "Rd/msg": 0.5, "ReTx": 1, "issued": 100,
    "delivered": 100, "frames": 100.0, "discovery ms": 10.0, "discovery messages": 50, "NLT s": 100.0,
    "PPJ": 10.0, "TEC mJ": 1.0, "WE mJ": 1.0,
    **{f"{part}{rest}": 1.0 for rest in RESTS for part in ("mJ, ", "radio mJ, ", "MCU mJ, ")},
}  # fmt: skip


def rto(at):
    return {"ReTx/msg": 3.0 if at["RTO ms"] == 200 else 2.0}


def ipi(at):
    worst = (at["publishers"], at["IPI s"]) == (25, 1)
    return {
        "DMR": 0.6 if worst else 0.0,
        "ReTx/msg": 8.0 if worst else 2.0,
        "Rd/msg": 0.6,
        "EED ms": 5000.0 if at["publishers"] == 25 else 400.0,
    }


def rate(at):
    """With IFS the printed values; without it anything."""
    return {quantity: column[at["IPI s"]] * (2 - at["IFS"]) for quantity, column in rtdds_rate.TABLE.items()}


def part(at):
    share = 0 if at["FR %"] == "BEQoS" else at["FR %"]
    return {"DMR": 0.12 * share / 100 if at["IPI s"] == 1 else 0.0, "PDR": 0.7 + 0.3 * share / 100}


def schedule_values(at):
    better = {"PDR": 0.7, "ReTx/msg": 1.0, "EED ms": 100.0}
    return better if at["IFS"] else {"PDR": 0.2, "ReTx/msg": 1.9, "EED ms": 240.0}


def cost(at):
    if at["arm"] == "baseline":
        return {"PDR": 0.86, "EED ms": 100.0, "mJ, sleeping": 0.87}
    return {"PDR": 0.76, "EED ms": 180.0 - 2.5 * (at["IPI s"] - 2), "mJ, sleeping": 1.24}


def modes(at):
    broker = at["mode"] == "DefTDDS"
    return {
        "discovery messages": {"DefTDDS": 50, "BLTDDS": 2450, "HyTDDS": 60}[at["mode"]],
        "discovery ms": {"DefTDDS": 50, "BLTDDS": 80, "HyTDDS": 900}[at["mode"]],
        "PDR": 0.9 if broker else 1.0,
        "EED ms": 100.0 if at["level"] == "best effort" else 3000.0 if broker else 400.0,
        "mJ, sleeping": (1.02 if at["mode"] == "BLTDDS" else 1.0)
        * (1.5 if broker and at["level"] == "reliable" else 1.0),
    }


def spent(at):
    counted = (*RESTS, energy_map.OWN, energy_map.SENDING)
    return {f"full nodes, {how}": energy_map.THESIS[at["mode"]] for how in counted} | {
        f"nodes, {rest}": [1.0] * 49 for rest in RESTS
    }


def lifetime_values(at):
    best = (at["IPI s"] == 10) == (at["mode"] == "EATDDS")
    return {
        "NLT s": {"DefTDDS": 100.0, "EATDDS": 150.0}.get(at["mode"], 200.0),
        "WE mJ": 30.0 if at["mode"] == "DefTDDS" else 20.0,
        "TEC mJ": 10.0 if at["mode"] == "DefTDDS" else 20.0 + at["IPI s"],
        "PPJ": 20.0 if best else 10.0, "hand-overs": 3, "energy reports": 147, "dead": [1],
    }  # fmt: skip


def adapting(at):
    arm = at["arm"]
    return {
        "PDR": 0.8 if arm == "BEQoS" else 1.0 if arm in ("FRQoS", "ARQoS 100 %") else 0.92,
        "frames": {"BEQoS": 100.0, "FRQoS": 200.0}.get(arm, 105.0),
        "SWITCH": 20 if arm == "one threshold" else 10,
        "measured PDR": 0.88 if arm == "no assurance" else 0.92,
        "rounds reliable": 0.5, "minutes below 90 %": 0.0,
    }  # fmt: skip


def states(at):
    on_mote = at["arm"] == state_on_mote.STATES
    return {
        "frames": 5.0 if on_mote else 100.0, "wrong s/h": 0.1 if on_mote else 5.0, "transitions": 10,
        "same": 1.0 if on_mote else None, "mJ, sleeping": 1.0 if on_mote else 3.0, "resting mJ": 0.5,
    }  # fmt: skip


def turning(at):
    by_turn = at["arm"] in (by_transition.TURNS, by_transition.ONLY)
    full = at["arm"] == by_transition.RELIABLE
    return {
        "turns": 10, "turns lost": 0 if by_turn or full else 2, "same turns": float(by_turn or full),
        "acks": 10 if by_turn else 100 if full else 0, "wrong s/h": 0.1 if by_turn or full else 5.0,
        "messages": 20 if at["arm"] == by_transition.ONLY else 200,
    }  # fmt: skip


def switch_values(at):
    """The values that our rules expect, which differ from those of the thesis."""
    factors = {
        air_parts.PERFECT: 0.1, air_parts.BETTER: 0.8, air_parts.SURVIVE: 0.8, air_parts.PATIENT: 0.9,
        air_parts.COLLECTED: 0.9, air_parts.BEHIND_COLLECTED: 0.9,
    }  # fmt: skip
    return {
        "ReTx/msg": 2 * factors.get(at["switched"], 1.0),
        "EED ms": 80.0 if at["switched"] == air_parts.IDLE else 100.0,
        air_parts.HOPS: 3.0 if at["switched"] == air_parts.WHOLE else 5.0,
    }


MEASURED = {
    air_parts: switch_values,
    rtdds_rto: rto, rtdds_ipi: ipi, rtdds_rate: rate, rtdds_partial: part, ifs: schedule_values,
    arqos: adapting, middleware_cost: cost, tinydds_modes: modes, energy_map: spent,
    eatdds_lifetime: lifetime_values, state_on_mote: states, by_transition: turning,
}  # fmt: skip


def thesis_values(module):
    return lambda at: ANYTHING | MEASURED[module](at)


NO_FINDINGS = {"msgs", "two-retx", "mcu-quarter", "TEC-Def-most"}
"""By construction, what the air was fitted to, arithmetic, what contradicts itself: nobody judges these."""


AIRY = {"processor-delays", "tossim-alike"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_claim_holds_with_the_figures_of_the_thesis(module):
    assert judge(module, thesis_values(module)) == {
        claim: None if claim in NO_FINDINGS else True for claim in module.RULES
    }


@pytest.mark.parametrize(
    ("module", "measured", "fails"),
    [
        (middleware_cost, {"PDR": 1.0}, "pdr-10%-lower"),
        (middleware_cost, {"EED ms": 30.0}, "delay-60-80ms"),
        (middleware_cost, {"mJ, sleeping": 1.0}, "energy"),
        (rtdds_rto, {"DMR": 0.01}, "no-drops-200-400"),
        (rtdds_rto, {"EED ms": 2000.0}, "six-hops-100%"),
        (rtdds_rto, {"PDR": 0.999}, "six-hops-100%"),
        (rtdds_rto, {"ReTx/msg": 0.0}, "400-fewer-retx"),
        (rtdds_ipi, {"DMR": 0.01}, "ipi5-zero-drops"),
        (rtdds_ipi, {"DMR": 0.01}, "ipi1-60%-drops"),
        (rtdds_ipi, {"ReTx/msg": 3.0}, "8-retx"),
        (rtdds_ipi, {"EED ms": 700.0}, "5s-at-ipi5"),
        (rtdds_ipi, {"Rd/msg": 0.3}, "60%-redundant"),
        (rtdds_rate, {"PDR": 0.99}, "pdr"),
        (rtdds_rate, {"EED ms": 250.0}, "delay"),
        (rtdds_rate, {"ReTx/msg": 1.18}, "retx"),
        (rtdds_rate, {"DMR": 0.1}, "dropped"),
        (rtdds_rate, {"Rd/msg": 0.42}, "rd"),
        (rtdds_partial, {"DMR": 0.0}, "drops-12-to-2%"),
        (rtdds_partial, {"EED ms": 1500.0}, "ms-at-ipi5"),
        (ifs, {"PDR": 0.7}, "3.5x-BE-PDR"),
        (ifs, {"ReTx/msg": 1.0}, "retx-1.9x"),
        (ifs, {"EED ms": 1.0}, "delay-2.4x"),
        (tinydds_modes, {"discovery messages": 50}, "discovery-messages-order"),
        (tinydds_modes, {"discovery ms": 50}, "discovery-time-order"),
        (tinydds_modes, {"PDR": 1.0}, "no-loss-BL-Hy"),
        (tinydds_modes, {"EED ms": 50.0}, "delay-BL-Hy"),
        (tinydds_modes, {"mJ, sleeping": 1.0}, "energy-third"),
        (tinydds_modes, {"mJ, sleeping": 1.0}, "flood-above-Hy"),
        (energy_map, {f"full nodes, {how}": 3 for how in (*RESTS, energy_map.OWN)}, "full-nodes"),
        (eatdds_lifetime, {"NLT s": 100.0}, "EA>Def"),
        (eatdds_lifetime, {"NLT s": 100.0}, "BL-Hy-longest"),
        (eatdds_lifetime, {"PPJ": 1.0}, "PPJ-light-heavy"),
        (eatdds_lifetime, {"WE mJ": 1.0}, "WE-Def-most"),
        (eatdds_lifetime, {"TEC mJ": 1.0}, "EA-better-when-light"),
        (arqos, {"PDR": 0.85}, "agreement-kept"),
        (arqos, {"frames": 100.0}, "cheap-when-quiet"),
        (arqos, {"SWITCH": 10}, "two-thresholds"),
        (arqos, {"measured PDR": 0.9}, "assurance-interval"),
        (arqos, {"frames": 100.0}, "nack-100%"),
        (by_transition, {"same turns": 0.0}, "every-turn"),
        (by_transition, {"acks": 30}, "no-acks-inside"),
        (by_transition, {"wrong s/h": 1.0}, "cheap-as-best-effort"),
        *((air_parts, {"ReTx/msg": 2.0}, id) for id in air_parts.RULES if id not in AIRY),
        (air_parts, {"EED ms": 100.0}, "processor-delays"),
        (state_on_mote, {"same": 0.0}, "same-answer"),
        (state_on_mote, {"frames": 100.0}, "messages-saved"),
        (state_on_mote, {"mJ, sleeping": 1.0}, "joules-saved"),
        (state_on_mote, {"wrong s/h": 1.0}, "better-than-best-effort"),
    ],
)
def test_each_claim_fails_with_different_figures(module, measured, fails):
    assert judge(module, thesis_values(module), **measured)[fails] is False


def test_a_curve_of_another_shape_is_reported():
    def value(at):
        apart = at["switched"] == air_parts.TOSSIM and at["publishers"] == air_parts.CROWD
        return thesis_values(air_parts)(at) | ({"ReTx/msg": 2.4} if apart else {})

    assert judge(air_parts, value)["tossim-alike"] is False


@pytest.mark.parametrize(("behind", "named"), [(1.8, True), (2.2, False)])
def test_the_detour_is_given_as_a_cause_only_where_its_switch_shows_that(behind, named):
    def value(at):
        retx = {air_parts.COLLECTED: 2.4, air_parts.BEHIND_COLLECTED: behind}.get(at["switched"], 2.0)
        return thesis_values(air_parts)(at) | {"ReTx/msg": retx}

    (claim,) = (each for each in claims(air_parts, value) if each.id == "who-acknowledges")
    assert claim.holds is False
    assert ("It is the detour" in claim.note) is named
    assert f"behind the RN {behind:.2f} in place of 2.00" in claim.note


@pytest.mark.parametrize(("idle", "named"), [(0.0, False), (0.1, True)])
def test_timeouts_are_given_as_a_cause_only_where_their_switch_shows_that(idle, named):
    delay = {air_parts.PERFECT: 80.0, air_parts.PERFECT_IDLE: 65.0}
    again = {air_parts.PERFECT: 0.0, air_parts.PERFECT_IDLE: idle}

    def value(at):
        measured = {"EED ms": delay.get(at["switched"], 400.0), "ReTx/msg": again.get(at["switched"], 2.0)}
        return thesis_values(air_parts)(at) | measured

    (claim,) = (each for each in claims(air_parts, value) if each.id == "processor-delays")
    assert claim.holds is False
    assert f"65.00 in place of 80.00, with {idle:.3f} in place of 0.000" in claim.note
    assert ("a timeout costs more" in claim.note) is named
    assert ("15.0 ms shorter" in claim.note) is not named


def test_acknowledgements_take_the_direct_path_or_that_through_the_rendezvous_node():
    """From node 0 the way by the RN (24) to the base station (27) is a detour of none, from 28 of six."""
    for node, collected, back in ((20, False, 7), (20, True, 7), (28, False, 1), (28, True, 7)):
        reliable = ReliableSettings() if collected else setups.TO_ORIGIN
        made = setups.rtdds_load(1, 5 * SECOND, reliable=reliable)
        found = air_parts.way_back(replace(made, publishers={setups.TOPIC: (node,)}).run())
        assert found == {air_parts.HOPS: back}


def test_neither_load_nor_mode_may_matter_at_best_effort():
    def value(at):
        thesis = thesis_values(tinydds_modes)(at)
        return thesis | {"EED ms": 10.0 * at["IPI s"], "mJ, sleeping": len(at["mode"]) * 1.0}

    found = judge(tinydds_modes, value)
    assert found["steady-at-BE"] is found["equal-at-BE"] is False


def test_ten_seeds_draw_ten_placements_of_rendezvous_nodes_without_another_role():
    drawn = {place.rendezvous(place.DRAWN, seed) for seed in Effort().span}
    assert len(drawn) == 10
    busy = {node for nodes in setups.PUBLISHERS.values() for node in nodes} | {21, 24, 27}
    assert all(len(set(nodes)) == 3 and not busy & set(nodes) for nodes in drawn)


def test_jumping_drops_are_not_linear_and_missing_drops_are_undecided():
    def value(at):
        thesis = thesis_values(rtdds_partial)(at)
        return thesis | {"DMR": 0.5 if at["FR %"] == 100 else 0.0}

    assert judge(rtdds_partial, value)["near-linear"] is False
    assert judge(rtdds_partial, thesis_values(rtdds_partial), DMR=0.0)["near-linear"] is None


# State filters on motes.


def naive_wrong(truth, belief, end):
    """Second by second."""

    def at(course, time):
        return next((holds for since, holds in reversed(course) if since <= time), False)

    return sum(at(truth, time) != at(belief, time) for time in range(end))


def test_wrong_time_equals_counting_second_by_second():
    chance = random.Random(5)
    for _ in range(50):
        courses = [
            [
                (time, i % 2 == 0)
                for i, time in enumerate(sorted(chance.sample(range(40), chance.randrange(5))))
            ]
            for _ in range(2)
        ]
        assert rooms.wrong(*courses, 30) == naive_wrong(*courses, 30)


def test_a_base_station_is_notified_of_starts_and_ends_only():
    """Generated readings of three rooms: one wavers between the bounds, one is stuffy once, one never."""
    minutes = 30
    trace = rooms.Trace(
        {
            0: tuple(550.0 + 40 * (i % 2) for i in range(minutes)),
            17: tuple(700.0 if 10 <= i < 20 else 450.0 for i in range(minutes)),
            45: (400.0,) * minutes,
        },
        15 * SECOND,
    )
    result = run(state_on_mote.design(trace, 1), None, False, quiet, Effort(1, in_turn))
    study = result.exhibit
    for air in (CLEAR, NOISY):
        on_mote = {"air": air, "arm": state_on_mote.STATES}
        assert study.values("same", **on_mote) == [1.0]
        assert study.values("transitions", **on_mote) == [2]
        assert (
            study.mean("messages", **on_mote)
            < study.mean("messages", air=air, arm="samples, best effort") / 5
        )
    assert study.mean("wrong s/h", air=NOISY, arm="samples, reliable") < 1


def test_by_transition_a_station_knows_every_transition_despite_losses():
    """A room that wavers across the band, and one that is stuffy once, in the noisy air."""
    minutes = 40
    trace = rooms.Trace(
        {
            0: tuple(650.0 if i // 5 % 2 else 450.0 for i in range(minutes)),
            17: tuple(700.0 if 10 <= i < 20 else 450.0 for i in range(minutes)),
        },
        15 * SECOND,
    )
    found = {
        dict(point.key)["arm"]: measure(by_transition.known, (point, 1))
        for point in by_transition.points(trace)
        if (dict(point.key)["air"], dict(point.key)["band"]) == (NOISY, str(by_transition.MAIN))
    }
    for arm in (by_transition.TURNS, by_transition.ONLY):
        assert (found[arm]["turns"], found[arm]["turns lost"], found[arm]["same turns"]) == (9, 0, 1.0)
        assert found[arm]["acks"] < 30
    assert found[by_transition.CHEAP]["acks"] == 0
    assert found[by_transition.RELIABLE]["acks"] >= 2 * minutes


def test_real_rooms_are_read_minute_by_minute():
    try:
        path = locate(rooms.FILE)
    except InputError as error:
        pytest.skip(str(error))
    readings = rooms.read(path, 3, 2)
    assert list(readings) == list(rooms.NODES[:3])
    assert all(len(values) == 120 and 300 < min(values) < max(values) < 5000 for values in readings.values())


# The pages.


def test_all_dds_experiments_are_registered_with_their_claims_on_their_pages():
    for module in MODULES:
        name = module.EXPERIMENT.name
        assert load(name) is module.EXPERIMENT
        page = (PAGES / f"{name}.md").read_text("utf-8")
        assert page.startswith(f"# {name}\n")
        assert all(f"- `{claim}`: {rule}\n" in page for claim, rule in module.RULES.items())


def test_records_agree_with_the_present_rules():
    for module in MODULES:
        used = record(PAGES, module.EXPERIMENT.name)
        if used is not None:
            assert {claim["id"]: claim["claim"] for claim in used["claims"]} == module.RULES


def test_a_result_is_shown_as_a_table_and_a_figure(tmp_path):
    design = replace(
        rtdds_rate.EXPERIMENT.run.args[0],
        points=lambda full: [shorten(point, 12) for point in rtdds_rate.points(full)],
    )
    result = run(design, None, False, quiet, Effort(1, in_turn))
    assert [row["PDR, sd"] for row in result.rows] == [0.0] * 8
    (table,) = rtdds_rate.EXPERIMENT.tables(result)
    assert table.columns[:4] == ("air", "IFS", "IPI s", "issued")
    assert [line[0] for line in table.lines[::2]] == [FITTED, FITTED, CLEAR, NOISY]
    assert "seeds 201 to 201" in result.parameters["runs for each point"]
    picture = rtdds_rate.EXPERIMENT.figure(result, tmp_path)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("module", [air_parts, arqos, by_transition, state_on_mote, tinydds_modes])
def test_a_record_can_be_drawn_again_without_overwriting_another(module):
    """Names of bars stood side by side, longer than their bars."""
    name = module.EXPERIMENT.name
    drawing = module.EXPERIMENT.draw(Result(name, {}, record(PAGES, name)["rows"], ()))
    drawing.draw_without_rendering()
    for axes in drawing.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.soak
@pytest.mark.parametrize("name", [module.EXPERIMENT.name for module in MODULES if module not in IN_ROOMS])
def test_the_default_run_judges_every_claim(name, tmp_path):
    experiment = load(name)
    result = experiment.run(None, False, quiet)
    assert all(claim.note for claim in result.claims)
    assert experiment.figure(result, tmp_path)
