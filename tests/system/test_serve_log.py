"""The log of a service as an input: replay gives the ids of its notifications. For Spark see
``test_live.py``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import httpx
import pytest

from support.patience import PATIENCE
from support.served import Served
from support.stored_log import APP, store_readings


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def test_replay_reads_the_log_of_a_service(tmp_path, definition, holdfast):
    emitted = store_readings(tmp_path / "data", 0, 150)
    assert len(list((tmp_path / "data/readings").glob("*.parquet"))) > 2, "several segments were sealed"
    ran = holdfast("replay", definition, "-i", f"log:{tmp_path / 'data'}")
    assert ran.status == 0, ran.err
    assert sorted(json.loads(line)["id"] for line in ran.out.splitlines()) == sorted(emitted)
    assert len(emitted) > 20


def test_a_replay_of_a_log_names_a_file_that_is_missing(tmp_path, definition, holdfast):
    store_readings(tmp_path / "data", 0, 60)
    gone = min((tmp_path / "data/readings").glob("*-Climate.parquet"))
    gone.unlink()
    ran = holdfast("replay", definition, "-i", f"log:{tmp_path / 'data'}")
    assert ran.status == 0
    assert f"readings/{gone.name} is missing" in ran.err


def test_a_service_without_its_log_names_a_remedy_and_starts_when_the_loss_is_accepted(tmp_path, definition):
    store_readings(tmp_path / "data", 0, 20)
    shutil.rmtree(tmp_path / "data" / "wal")
    command = [sys.executable, "-m", "holdfast", "serve", definition, "--data", tmp_path / "data"]
    refused = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert refused.returncode == 2
    assert "the log is behind the database" in refused.stderr
    assert "--accept-loss" in refused.stderr
    with Served(tmp_path, definition, "--accept-loss") as service:
        assert "lost, and accepted: the log is behind the database" in service.log_text()
        health = httpx.get(f"{service.url}/health", timeout=PATIENCE, trust_env=False)
        assert (health.status_code, health.json()["damage"]) == (200, [])


@pytest.mark.parametrize(
    "command", [("replay", "-i", "log:nowhere"), ("run", "--source", "log:nowhere", "--checkpoint", "c")]
)
def test_a_folder_without_a_log_is_refused(command, definition, holdfast):
    name, *options = command
    ran = holdfast(name, definition, *options)
    assert ran.status == 2
    assert "no service keeps its log there" in ran.err
