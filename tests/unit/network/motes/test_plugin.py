"""A routing protocol of the user, in a file beside the scenario."""

from __future__ import annotations

import pickle

import pytest

from holdfast.errors import DefinitionError, UsageError
from holdfast.network.motes.results import collect
from holdfast.network.motes.run import run
from holdfast.network.motes.study import read_text

OWN = """
from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.instant import SECOND
from holdfast.model.protocol import SetTimer, Started
from holdfast.network.sim.routing.flooding import Flooding


@dataclass(frozen=True)
class Mine(Flooding):
    ends: tuple = ()

    def handle(self, state, given):
        assert self.ends == (8,)
        return Flooding.handle(self, state, given)


class Unfinished:
    def initial(self, node):
        return node


class Hasty(Flooding):
    def handle(self, state, given):
        if isinstance(given, Started):
            return state, [SetTimer("again", given.now + SECOND)]
        return state, [SetTimer("again", 500_000)]  # a delay, taken for a time


class Failing(Flooding):
    def handle(self, state, given):
        return 1 / 0
"""

SCENARIO = """
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 12 m}
routing: ROUTING
traffic: [{from: [0, 2], to: 8, every: 1 s}]
duration: 20 s
seeds: 2
"""


def study(tmp_path, routing, more=""):
    (tmp_path / "own.py").write_text(OWN)
    return read_text(SCENARIO.replace("ROUTING", routing) + more, tmp_path)


def test_a_plugin_runs_like_a_built_in_protocol(tmp_path):
    theirs = collect(study(tmp_path, "{kind: flooding, limit: 5, jitter: 7 ms}"), map)
    mine = study(tmp_path, "{kind: python, machine: 'own.py:Mine', with: {limit: 5, jitter: 7000}}")
    (tmp_path / "own.py").unlink()  # a case needs nothing else
    assert [one.measures for one in collect(mine, map).runs] == [one.measures for one in theirs.runs]
    assert theirs.runs[0].measures["delivered"] > 20


def test_a_plugin_can_be_swept_and_pickled(tmp_path):
    mine = study(
        tmp_path, "{kind: python, machine: 'own.py:Mine'}", "sweep: {routing.with: [{limit: 1}, {limit: 4}]}"
    )
    short, long = (run(pickle.loads(pickle.dumps(point.case)), seed=1).measures for point in mine.points)
    assert short["delivered"] == 0 < long["delivered"]


@pytest.mark.parametrize(
    ("routing", "message"),
    [
        ("{kind: python, machine: own.py}", "expected a file and a class in it, such as 'gossip.py:Gossip'"),
        ("{kind: python, machine: 'none.py:Mine'}", "none.py: No such file"),
        ("{kind: python, machine: 'own.py:Mein'}", "own.py has no class 'Mein'"),
        ("{kind: python, machine: 'own.py:Mine', with: {limt: 3}}", "Mine takes no 'limt'"),
        ("{kind: python, machine: 'own.py:Mine', with: {limit: [3]}}", "expected"),
        ("{kind: python, machine: 'own.py:Unfinished'}", "is no routing machine: it has no handle"),
        ("{kind: python, machine: 'x.py:X', code: 'class X('}", "x.py:1:"),
        ("{kind: python, machine: 'x.py:X', code: 'X = 1 / 0'}", "x.py:1: ZeroDivisionError"),
    ],
)
def test_errors_of_a_plugin_are_reported_with_their_position(tmp_path, routing, message):
    with pytest.raises(DefinitionError) as caught:
        study(tmp_path, routing)
    assert message in str(caught.value)
    assert caught.value.place.line == 4


def test_a_timer_in_the_past_is_an_error(tmp_path):
    """The timer fired at once, was set again, and time did not advance."""
    mine = study(tmp_path, "{kind: python, machine: 'own.py:Hasty'}")
    with pytest.raises(
        UsageError, match="timer 'again' is set for 500 ms, which is over: it is 500 ms"
    ) as error:
        run(mine.points[0].case, seed=1)
    assert "given.now + delay" in str(error.value)


def test_exceptions_of_a_plugin_are_reported_with_their_line(tmp_path):
    mine = study(tmp_path, "{kind: python, machine: 'own.py:Failing'}")
    with pytest.raises(UsageError, match=r"own\.py:34: ZeroDivisionError"):
        run(mine.points[0].case, seed=1)


# --- nodes of which only the links are known -----------------------------------------------------------

MEASURED = """
nodes: {kind: csv, links: links.csv}
links: {kind: measured}
routing: {kind: tree}
traffic: [{from: [c], to: a, every: 2 s}]
duration: 2 min
"""


def measured_study(tmp_path, text=MEASURED, links="a,b,1\nb,a,1\nb,c,1\nc,b,1\n"):
    (tmp_path / "links.csv").write_text("sender,receiver,quality\n" + links)
    return read_text(text, tmp_path)


def test_links_suffice_where_nothing_asks_for_positions(tmp_path):
    found = run(measured_study(tmp_path).points[0].case, seed=1).measures
    assert found["delivered"] > 50
    assert found["hops"] == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{kind: measured}", "{kind: disk, range: 5 m}", "nobody knows where these nodes are"),
        ("{kind: tree}", "{kind: geographic}", "nobody knows where these nodes are"),
        ("{kind: csv, links: links.csv}", "{kind: csv}", "'file' is missing, or 'links'"),
    ],
)
def test_a_plugin_that_needs_positions_is_refused_without_them(tmp_path, old, new, message):
    with pytest.raises(DefinitionError, match=message):
        measured_study(tmp_path, MEASURED.replace(old, new))


def test_a_table_without_links_is_refused(tmp_path):
    with pytest.raises(DefinitionError, match="there is no link; write one row for each"):
        measured_study(tmp_path, links="")
