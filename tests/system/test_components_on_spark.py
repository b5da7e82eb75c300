"""Components on Spark: the same notifications as in this process, over history, DataFrames and live."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.model.instant import from_datetime
from support.patience import PATIENCE
from support.runtimes import session

replay = pytest.importorskip("holdfast.runtimes.spark.batch.replay")

DISTRICTS = """
topic Traffic (avg_speed float, vehicle_count float, district text)

state Congested
  A = avg Traffic over 30 min each source, district
  B = min Traffic over 15 min each source, district
  enter A.vehicle_count > 6 && B.avg_speed < 32
  exit B.avg_speed > 38

state Jammed
  C = Congested each district
  enter C.valid && C.status == ingress
  exit C.valid && C.status == egress

state Somewhere
  J = Jammed
  enter J.valid && J.status == ingress
  exit J.valid && J.status == egress

state Slow on Traffic [avg_speed < 30; avg_speed > 45] per source
"""
"""Three stages (by sensor and district, by district, all together) beside a filter."""

START, END = datetime(2014, 8, 4, 5), datetime(2014, 8, 4, 11)


@pytest.fixture(scope="module")
def traffic(data: Path) -> pa.Table:
    """Every twentieth sensor of Aarhus on a morning; its last digit stands for its district."""
    path = data / "aarhus-traffic" / "traffic-2014-08.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it belongs beside the repository, in shared/data")
    table = pq.read_table(path, columns=["time", "report_id", "avg_speed", "vehicle_count"])
    sensors = sorted(pc.unique(table["report_id"]).to_pylist())[::20]
    morning = pc.and_(
        pc.greater_equal(table["time"], pa.scalar(START)), pc.less(table["time"], pa.scalar(END))
    )
    chosen = table.filter(pc.and_(pc.is_in(table["report_id"], pa.array(sensors, pa.int32())), morning))
    source = chosen["report_id"].cast(pa.string())
    columns = {"source": source, "district": pc.utf8_slice_codeunits(source, 5, 6)}
    columns |= {name: chosen[name] for name in ("avg_speed", "vehicle_count")}
    columns["time"] = chosen["time"].cast(pa.timestamp("us"))  # what Spark can read
    return pa.table(columns).sort_by("time")


@pytest.fixture
def folder(traffic: pa.Table, tmp_path: Path) -> Path:
    """The readings in four files that follow one another."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    moments = sorted(set(traffic["time"].to_pylist()))
    bounds = [*moments[:: len(moments) // 4][:4], END]
    for i, (first, end) in enumerate(pairwise(bounds)):
        part = pc.and_(pc.greater_equal(traffic["time"], first), pc.less(traffic["time"], end))
        pq.write_table(traffic.filter(part), inbox / f"{i}.parquet")
    return inbox


MERGED = """
topic Traffic (avg_speed float, vehicle_count float, district text)

state Crowded
  A = Traffic avg location each district
  B = max Traffic ever each district
  C = Traffic min location each district
  enter A.vehicle_count > 5 && B.avg_speed > 60 && C.avg_speed else 0 < 40
  exit A.vehicle_count < 4

state Lately
  A = Crowded each district whatever status
  B = Crowded each district max status
  enter A.status == ingress && B.vehicle_count else 0 > 5
  exit A.status == egress
"""
"""Functions over places, all time, defaults, starts and ends together: one stage, by district."""


def visible(notifications):
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event) for n in notifications]


def test_history_on_spark_gives_the_notifications_of_this_process(folder):
    spark = session()
    in_process = hf.replay(DISTRICTS, folder)
    expected = list(in_process)
    assert {n.subscription for n in expected} == {"Congested", "Jammed", "Somewhere", "Slow"}

    history = hf.spark.replay_files(DISTRICTS, folder, spark=spark)
    assert visible(history) == visible(expected)
    assert history.kept == history.tally.rows
    assert history.holding() == in_process.holding()


def test_history_on_spark_gives_the_same_for_places_and_all_time(folder):
    expected = list(hf.replay(MERGED, folder))
    assert {n.subscription for n in expected} == {"Crowded", "Lately"}
    assert visible(hf.spark.replay_files(MERGED, folder, spark=session())) == visible(expected)


@pytest.mark.soak
def test_live_on_spark_gives_the_notifications_of_this_process(folder, tmp_path):
    """In short, with conditions of all kinds: ``equivalence/test_whole_on_spark.py``."""
    expected, spark = hf.replay(DISTRICTS, folder), session()
    half = sum(file.stat().st_size for file in folder.iterdir()) // 2
    settings = {"every": None, "settle": 0, "batch_bytes": half, "shards": 2, "finish": True}
    live = hf.spark.live(
        DISTRICTS, folder, checkpoint=tmp_path / "kept", sink=f"jsonl:{tmp_path / 'out.jsonl'}", **settings
    )
    record = hf.spark.run(live, spark)
    lines = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(n.id for n in expected)
    assert record.subscriptions["Congested"].read == record.rows
    assert record.subscriptions["Jammed"].read == 0
    assert hf.spark.status(tmp_path / "kept")["holding"] == len(expected.holding())


@pytest.mark.soak
def test_executors_and_frames_give_the_same_notifications(folder, monkeypatch):
    spark = session()
    expected = list(hf.replay(DISTRICTS, folder))
    monkeypatch.setattr(replay, "FEW", 1 << 14)  # too much for the driver, in a few parts
    assert visible(hf.spark.replay_files(DISTRICTS, folder, spark=spark)) == visible(expected)

    emitted = hf.spark.replay(DISTRICTS, spark.read.parquet(str(folder))).select(
        "subscription", "scope", "status"
    )
    assert Counter(map(tuple, emitted.collect())) == Counter(
        (n.subscription, n.scope, n.status) for n in expected
    )


@pytest.mark.soak
def test_a_stream_of_the_user_and_the_data_source_run_components(folder, traffic, tmp_path):
    spark = session()
    frame = spark.read.parquet(str(folder))
    output = hf.spark.stream(DISTRICTS, spark.readStream.schema(frame.schema).parquet(str(folder)), shards=2)
    query = (
        output.writeStream.format("parquet")
        .option("path", str(tmp_path / "states"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    emitted = spark.read.parquet(str(tmp_path / "states")).select("subscription", "scope", "status")
    last = from_datetime(pc.max(traffic["time"]).as_py())  # the watermark of components has not passed it
    expected = [n for n in hf.replay(DISTRICTS, folder) if n.event.time < last or n.subscription == "Slow"]
    found = Counter(tuple(row) for row in emitted.collect())
    assert found == Counter((n.subscription, n.scope, n.status) for n in expected)

    spark.dataSource.register(hf.spark.HoldfastSource)
    rows = spark.read.format("holdfast").option("definition", DISTRICTS).load(str(folder))
    assert rows.count() == frame.count()


@pytest.mark.soak
def test_components_on_a_cluster_give_the_local_notifications(folder, tmp_path):
    (tmp_path / "districts.hf").write_text(DISTRICTS)
    out = tmp_path / "out.jsonl"
    command = ["replay", tmp_path / "districts.hf", "-i", folder, "-o", out, "--engine", "spark"]
    command += ["--master", "local-cluster[2,1,1024]"]
    session()  # skips where there is no Java
    subprocess.run([sys.executable, "-m", "holdfast", *map(str, command)], check=True, timeout=PATIENCE)
    ids = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    assert ids == [n.id for n in hf.replay(DISTRICTS, folder)]
