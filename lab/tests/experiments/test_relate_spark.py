"""Relationships of many users on Spark: both strategies emit the same as the machine in one process."""

from __future__ import annotations

from pathlib import Path

from holdfast import load
from holdfast.runtimes.local.replay import replay
from holdfast_lab.experiments.relate_spark import CELL, READINGS, measure, write_day
from support.runtimes import session


def test_a_day_contains_all_users_in_cells_and_friends_who_meet(tmp_path: Path) -> None:
    write_day(tmp_path, 3 * CELL)
    results = list(replay(load(tmp_path / "app.hf"), tmp_path / "readings"))
    scopes = {one.scope for one in results}
    assert len(scopes) > CELL
    assert {tuple(int(name[1:]) // CELL for name in str(scope).split(",")) for scope in scopes} == {
        (0, 0),
        (1, 1),
        (2, 2),
    }


def test_both_strategies_give_equal_results_on_spark(tmp_path: Path) -> None:
    session()
    users = 10 * CELL
    found = measure(users, lambda _: None, ("once",))
    write_day(tmp_path, users)
    results = list(replay(load(tmp_path / "app.hf"), tmp_path / "readings"))
    assert [row["starts and ends"] for row in found.rows] == [len(results)] * 2
    assert {row["readings"] for row in found.rows} == {users * READINGS}
    same, *_ = found.claims
    assert same.holds
    assert all(row["of the processor"] > 0 for row in found.rows)
