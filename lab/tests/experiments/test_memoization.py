"""Distributed memoization: the set-up works as described, and claims are judged by their rules."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast_lab.experiments.experiment import format_value
from holdfast_lab.experiments.memoization import run as experiment
from holdfast_lab.experiments.memoization.chain import SORTS, Timed, hub, measure
from holdfast_lab.experiments.memoization.claim import claims
from holdfast_lab.experiments.registry import load


@pytest.fixture(scope="module")
def small():
    """The experiment with few messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "PAPER", {20: experiment.PAPER[250], 40: experiment.PAPER[2000]})
        patch.setattr(experiment, "QUICK", (20, 40))
        patch.setattr(experiment, "REPEATED", 1)
        patch.setattr(experiment, "SENT", 50)
        patch.setattr(experiment, "AT_A_BRANCH", 20)
        return load("memoization").run(None, False, lambda _: None)


def test_every_message_passes_every_broker_and_is_timed_where_a_broker_sent_it():
    for memoize in (True, False):
        seconds = asyncio.run(measure(20, 10, memoize=memoize))
        assert {sort: len(seconds[sort]) for sort in SORTS} == {
            "advertisement": 2 * 2 * 20,
            "subscription": 2 * 2 * 20,
            "notification": 2 * 2 * 10,
        }


def test_downstream_brokers_forward_by_the_slip_alone(monkeypatch):
    """T23: each notification is looked up twice on its way, and each subscription once, for the client at
    the end accepts none."""
    states = []
    initial = Timed.initial
    monkeypatch.setattr(Timed, "initial", lambda self: states.append(initial(self)) or states[-1])
    asyncio.run(measure(20, 10, memoize=True))
    assert [state.counted["express"] for state in states] == [10, 2 * (10 + 20), 10]
    states.clear()
    asyncio.run(measure(20, 10, memoize=False))
    assert [state.counted["express"] for state in states] == [0, 0, 0]


def test_a_broker_with_many_connections_sends_only_to_the_subscribed_one():
    for how in ({"memoize": False}, {"memoize": True}, {"memoize": True, "attentive": False}):
        assert len(hub(5, 10, **how)) == 10


def test_the_result_has_a_row_for_each_n_and_judges_every_claim(small):
    assert [row["n"] for row in small.rows] == [20, 40, None]
    assert [claim.id for claim in small.claims] == ["speed-up", "flat-with-n", "system-saving"]
    judged = {claim.id: claim.holds is not None for claim in small.claims if claim.note}
    assert judged == {"speed-up": True, "flat-with-n": True, "system-saving": False}, (
        "that is an assumption's"
    )
    assert json.loads(json.dumps(small.to_json()))["experiment"] == "memoization"
    assert small.rows[0]["paper notification regular"] == 10.3241


def test_tables_and_figure_are_written(small, tmp_path):
    first, second = load("memoization").tables(small)
    assert len(first.lines) == 2
    assert all(len(line) == len(first.columns) for line in first.lines)
    assert [format_value(line[0]) for line in second.lines] == list(AT_A_HUB)
    pytest.importorskip("matplotlib")
    path = load("memoization").figure(small, tmp_path)
    assert path.stat().st_size > 10_000


def points(**times):
    """Rows as of two n, with times in µs for the first and the last."""
    ways = ("subscription memoized", "subscription regular", "notification memoized", "notification regular")
    return [
        {"n": n, **{f"{way} (µs)": times[way.replace(" ", "_")][i] for way in ways}}
        for i, n in enumerate((250, 2000))
    ]


AS_IN_THE_DOCUMENT = {
    "subscription_memoized": (6.67, 8.62),
    "subscription_regular": (12.07, 24.45),
    "notification_memoized": (5.02, 6.31),
    "notification_regular": (10.32, 17.09),
}
AT_A_HUB = {"regular (µs)": 100.0, "memoized (µs)": 95.0, "memoized, nobody else asked (µs)": 4.55}
SAVINGS = {"CBPS": 0.05, "pure ISCA": 0.9545}


def test_the_figures_of_the_document_satisfy_its_claims():
    speed, flat, saving = claims(points(**AS_IN_THE_DOCUMENT), SAVINGS, AT_A_HUB)
    assert speed.ours == {"subscription": 2.84, "notification": 2.71}
    assert flat.ours["subscription memoized"] == 1.29
    assert (speed.holds, flat.holds) == (True, True)
    assert saving.holds is None, "it is computed there, from an assumption"


def test_claims_do_not_hold_where_their_rules_are_broken():
    slow = points(**{**AS_IN_THE_DOCUMENT, "subscription_memoized": (8.0, 16.0)})
    speed, flat, _ = claims(slow, SAVINGS, AT_A_HUB)
    assert (speed.holds, flat.holds) == (False, False)
    assert "falls short for subscriptions" in speed.note
