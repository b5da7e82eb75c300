"""On a cluster (Spark's own, with executors as processes of this machine) the answer is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from support.chaos import QUICK, WARM, LiveProcess, batches_done, generate, wait_for
from support.patience import PATIENCE
from support.runtimes import session

MASTER = "local-cluster[2,1,1024]"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    session()  # skips where there is no Java
    (tmp_path / "warm.hf").write_text(WARM)
    (tmp_path / "inbox").mkdir()
    return tmp_path


def expectation(site: Path, holdfast) -> list[dict]:
    ran = holdfast("replay", site / "warm.hf", "-i", site / "inbox", "-o", site / "replay.parquet")
    assert ran.status == 0, ran.err
    return by_id(pq.read_table(site / "replay.parquet").to_pylist())


def by_id(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: row["id"])


def executors(live: LiveProcess) -> list[psutil.Process]:
    return [child for child in live.java() if any("CoarseGrained" in word for word in child.cmdline())]


@pytest.mark.soak
def test_a_replay_survives_the_loss_of_an_executor(site, holdfast):
    generate(site / "inbox", files=3, rows=5_000)
    arguments = [
        str(site / "warm.hf"),
        *("--source", f"dir:{site / 'inbox'}", "--sink", f"parquet:{site / 'out'}"),
        *("--checkpoint", str(site / "checkpoint"), "--batch", "1", "--settle", "0"),
        *("--master", MASTER, "--available-now", "--finish"),
    ]
    with LiveProcess(arguments, site / "log") as live:
        assert wait_for(lambda: batches_done(site / "checkpoint") >= 1, process=live), (
            site / "log"
        ).read_text()
        victim, *rest = executors(live)
        assert len(rest) == 1
        victim.kill()
        assert live.process.wait(PATIENCE) == 0, (site / "log").read_text()
    emitted = [row for path in (site / "out").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert by_id(emitted) == expectation(site, holdfast)


SMALL = ("local-cluster[1,1,1024]", 2, 5_000, 10)
LARGE = pytest.param(MASTER, 8, 500_000, 1_000, marks=pytest.mark.soak)


@pytest.mark.parametrize(("master", "files", "rows", "sensors"), [SMALL, LARGE])
def test_replay_on_a_cluster(site, holdfast, master, files, rows, sensors):
    generate(site / "inbox", files, rows, sensors)
    out = site / "out.parquet"
    command = [
        "replay",
        site / "warm.hf",
        "-i",
        site / "inbox",
        "-o",
        out,
        "--engine",
        "spark",
        "--master",
        master,
    ]
    subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, command)],
        check=True,
        timeout=PATIENCE,
        env={**os.environ, "JAVA_TOOL_OPTIONS": QUICK},  # for driver, master, worker and executors
    )
    assert by_id(pq.read_table(out).to_pylist()) == expectation(site, holdfast)


@pytest.fixture
def standalone(tmp_path):
    """A master and a worker, as ``spark://`` has them, on this machine."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    started = []

    def start(kind: str, *more: str) -> Path:
        log = tmp_path / f"{kind}.log"
        with open(log, "wb") as file:
            command = [home / "bin/spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
            started.append(
                subprocess.Popen(
                    [*map(str, command), "--host", "127.0.0.1", *more],
                    stdout=file,
                    stderr=file,
                    env=environment,
                )
            )
        return log

    log = start("Master", "--port", "0", "--webui-port", "0")
    assert wait_for(lambda: "Starting Spark master at" in log.read_text()), log.read_text()
    (url,) = {word for word in log.read_text().split() if word.startswith("spark://")}
    log = start(
        "Worker", "--webui-port", "0", "--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path), url
    )
    assert wait_for(lambda: "Successfully registered" in log.read_text()), log.read_text()
    try:
        yield url, home / "bin/spark-submit", environment
    finally:
        for process in started:
            process.kill()
            process.wait(PATIENCE)


@pytest.mark.soak
def test_the_same_commands_run_on_a_standalone_cluster_and_through_spark_submit(site, standalone, holdfast):
    entry = find_spec("holdfast.__main__").origin
    url, submit, environment = standalone
    generate(site / "inbox", files=4, rows=50_000)
    replay = ["replay", site / "warm.hf", "-i", site / "inbox", "--engine", "spark"]
    live = ["run", site / "warm.hf", "--source", f"dir:{site / 'inbox'}", "--available-now", "--finish"]
    for name, command in {
        "replay": [sys.executable, "-m", "holdfast", *replay, "--master", url, "-o", site / "1.parquet"],
        "submitted": [submit, "--master", url, entry, *replay, "-o", site / "2.parquet"],
        "live": [
            *(submit, "--master", url, entry, *live),
            *("--checkpoint", site / "checkpoint", "--sink", f"parquet:{site / 'out'}"),
        ],
    }.items():
        done = subprocess.run(
            [*map(str, command)], timeout=PATIENCE, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"
    wanted = expectation(site, holdfast)
    assert by_id(pq.read_table(site / "1.parquet").to_pylist()) == wanted
    assert by_id(pq.read_table(site / "2.parquet").to_pylist()) == wanted
    emitted = [row for path in (site / "out").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert by_id(emitted) == wanted
