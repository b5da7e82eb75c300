"""The log of a service as an input: replay gives the ids that it told; for Spark see ``test_live.py``."""

from __future__ import annotations

import json

import pytest

from support.kept import APP, kept


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def test_replay_reads_the_log_of_a_service(tmp_path, definition, holdfast):
    told = kept(tmp_path / "data", 0, 150)
    assert len(list((tmp_path / "data/readings").glob("*.parquet"))) > 2, "several segments were sealed"
    ran = holdfast("replay", definition, "-i", f"log:{tmp_path / 'data'}")
    assert ran.status == 0, ran.err
    assert sorted(json.loads(line)["id"] for line in ran.out.splitlines()) == sorted(told)
    assert len(told) > 20


@pytest.mark.parametrize(
    "command", [("replay", "-i", "log:nowhere"), ("run", "--source", "log:nowhere", "--checkpoint", "c")]
)
def test_a_folder_that_is_no_log(command, definition, holdfast):
    name, *options = command
    ran = holdfast(name, definition, *options)
    assert ran.status == 2
    assert "no service keeps its log there" in ran.err
