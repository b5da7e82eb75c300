"""Correlations on Spark: the same notifications as in this process, over history, DataFrames and live."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import holdfast as hf
from holdfast.definition.parse import parse
from support.correlated import as_counts, definitions, histories, oracle
from support.runtimes import RUNTIMES, session

pytest.importorskip("holdfast.runtimes.spark.batch.replay")

STORM = """
topic Weather (ambient_temp float, humidity float, wind_speed float, station text)
region Pass = rectangle (0, 0) (1500, 1500)

correlate Storm within 2 min, 700 m in region Pass
  ambient_temp in [-5, 2]   wind_speed >= 3   humidity in [70, 100]
correlate Gust within 90 s  wind_speed > 5  humidity > 75  tell latest
correlate Pair within 3 min  wind_speed of "4" > 4  humidity of "3" > 60

state Cold on Weather [ambient_temp < -3; ambient_temp > -1] per source
state Mild
  A = avg Weather over 10 min each source
  enter A.ambient_temp > 1
  exit A.ambient_temp < 0
"""
"""Simple events, complex events and named sensors, beside a filter and a component."""

HOURS = 10


@pytest.fixture(scope="module")
def weather(data: Path) -> pa.Table:
    """A windy night at the pass; the stations stand on a grid of 400 m."""
    path = data / "sensorscope-stbernard" / "stbernard.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it belongs beside the repository, in shared/data")
    table = pq.read_table(path, columns=["time", "station", "ambient_temp", "humidity", "wind_speed"])
    start = 1_192_975_200_000_000_000
    ends = [pa.scalar(start + hours * 3_600_000_000_000, pa.timestamp("ns")) for hours in (0, HOURS)]
    table = table.filter((pc.field("time") >= ends[0]) & (pc.field("time") < ends[1])).sort_by("time")
    station = table["station"].to_numpy()
    names = table["station"].cast(pa.string())
    columns = {"time": table["time"].cast(pa.timestamp("us")), "source": names, "station": names}
    columns |= {name: table[name] for name in ("ambient_temp", "humidity", "wind_speed")}
    return pa.table(columns | {"x": station % 5 * 400.0, "y": station // 5 * 400.0})


@pytest.fixture
def folder(weather: pa.Table, tmp_path: Path) -> Path:
    """The readings in four files that follow one another."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    bounds = [len(weather) * i // 4 for i in range(5)]
    for i, (first, end) in enumerate(pairwise(bounds)):
        pq.write_table(weather.slice(first, end - first), inbox / f"{i}.parquet")
    return inbox


def visible(notifications):
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event) for n in notifications]


def test_history_and_frames_on_spark_give_the_correlations_of_this_process(folder):
    spark = session()
    in_process = list(hf.replay(STORM, folder))
    emitted = Counter(n.subscription for n in in_process)
    assert min(emitted[name] for name in ("Storm", "Gust", "Pair", "Cold", "Mild")) > 1

    history = hf.spark.replay_files(STORM, folder, spark=spark)
    assert visible(history) == visible(in_process)
    assert history.misplaced() == []

    frame = hf.spark.replay(STORM, spark.read.parquet(str(folder)))
    found = Counter(tuple(row) for row in frame.select("subscription", "status", "source").collect())
    assert found == Counter((n.subscription, n.status, n.event.source) for n in in_process)


@pytest.mark.soak
def test_live_queries_give_the_correlations_of_this_process(folder, tmp_path):
    """In short, with conditions of all kinds: ``equivalence/test_whole_on_spark.py``."""
    in_process, spark = list(hf.replay(STORM, folder)), session()
    half = sum(file.stat().st_size for file in folder.iterdir()) // 2
    settings = {"every": None, "settle": 0, "batch_bytes": half, "shards": 2, "finish": True}
    live = hf.spark.live(
        STORM, folder, checkpoint=tmp_path / "kept", sink=f"jsonl:{tmp_path / 'out.jsonl'}", **settings
    )
    record = hf.spark.run(live, spark)
    lines = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(n.id for n in in_process)
    assert record.subscriptions["Storm"].transitions == sum(n.subscription == "Storm" for n in in_process)
    assert record.subscriptions["Storm"].read == record.rows


@pytest.mark.soak
def test_a_stream_of_the_user_gives_the_correlations_of_this_process(folder, tmp_path):
    spark = session()
    text = STORM[: STORM.index("state Mild")]  # the watermark of components has not passed the last timestamp
    frame = spark.read.parquet(str(folder))
    output = hf.spark.stream(text, spark.readStream.schema(frame.schema).parquet(str(folder)), shards=2)
    query = (
        output.writeStream.format("parquet")
        .option("path", str(tmp_path / "told"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    emitted = spark.read.parquet(str(tmp_path / "told")).select("subscription", "status", "source")
    expected = Counter((n.subscription, n.status, n.event.source) for n in hf.replay(text, folder))
    assert Counter(tuple(row) for row in emitted.collect()) == expected


@pytest.mark.soak
@settings(max_examples=5)
@given(text=definitions(), events=histories)
def test_random_correlations_over_random_histories_on_spark_equal_the_naive_ones(text, events):
    assert as_counts(text, events, RUNTIMES["spark"](parse(text), events)) == oracle(text, events)


@pytest.mark.soak
def test_a_live_query_continues_while_correlations_are_added_and_removed(folder, tmp_path):
    spark = session()
    files = sorted(folder.iterdir())
    later = tmp_path / "later"
    later.mkdir()
    for file in files[2:]:
        file.rename(later / file.name)
    settings = {"every": None, "settle": 0, "batch_bytes": 1, "shards": 2}
    text = STORM[: STORM.index("state Mild")]
    sink = f"jsonl:{tmp_path / 'out.jsonl'}"
    hf.spark.run(hf.spark.live(text, folder, checkpoint=tmp_path / "kept", sink=sink, **settings), spark)
    for file in later.iterdir():
        file.rename(folder / file.name)
    changed = text.replace("correlate Gust within 90 s", "correlate Wind within 90 s")
    hf.spark.run(hf.spark.live(changed, folder, checkpoint=tmp_path / "kept", sink=sink, **settings), spark)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    whole = [n for n in hf.replay(text, folder) if n.subscription in ("Storm", "Pair", "Cold")]
    staying = [line["id"] for line in lines if line["subscription"] in ("Storm", "Pair", "Cold")]
    assert sorted(staying) == sorted(n.id for n in whole)
    assert {line["subscription"] for line in lines} == {"Storm", "Pair", "Cold", "Gust", "Wind"}
    other = changed.replace("wind_speed >= 3", "wind_speed >= 4")
    hf.spark.run(hf.spark.live(other, folder, checkpoint=tmp_path / "kept", sink=sink, **settings), spark)
    again = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(again) == len(lines), "it begins anew, and says nothing of what was read"
