"""A user's own DataFrame: its columns under other names, of other types, missing, and bad."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from holdfast import UsageError
from holdfast.runtimes.spark.frames.replay import replay
from holdfast.runtimes.spark.frames.rows import events
from holdfast.runtimes.spark.frames.scan import PlanDoesNotFit, _files
from holdfast.runtimes.spark.job import Job
from support.runtimes import session

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
"""
BOTH = """
topic Temperature (value float)
topic Door (open bool)
state Warm on Temperature [value > 25; value < 22] per source
state Open on Door [open; !open] per source
"""
CAPITALS = """
topic Temperature (value float, Value int)
topic Door (open bool)
state Warm on Temperature [value > 25; value < 22] per source
state Open on Door [open; !open] per source
filter Many on Temperature where Value > 3
"""
START = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # clocks in Berlin are set forward at 1:00 UTC


def readings(values, *, type="double", source="attic"):
    """A reading each half hour."""
    rows = [(START + timedelta(minutes=30 * i), source, value) for i, value in enumerate(values)]
    return session().createDataFrame(rows, f"time timestamp, source string, value {type}")


def as_rows(found):
    """The rows of a DataFrame of notifications, in order."""
    rows = found.orderBy("time", "subscription").toArrow().to_pylist()
    return [(row["subscription"], row["scope"], row["status"], (row["time"] - START) / timedelta(minutes=30))
            for row in rows]  # fmt: skip


EXPECTED = [("Warm", "attic", "ingress", 1), ("Warm", "attic", "egress", 3)]


@pytest.mark.parametrize("type", ["double", "float", "int", "bigint", "decimal(5,1)"])
def test_every_number_is_a_float(type):
    from decimal import Decimal

    convert = {"double": float, "float": float, "decimal(5,1)": Decimal}.get(type, int)
    found = replay(WARM, readings([convert(v) for v in (24, 26, 27, 21)], type=type))
    assert as_rows(found) == EXPECTED
    assert dict(found.dtypes)["value"] == "double"


@pytest.fixture
def in_zone():
    """Set the zone of the session, for one test."""
    conf = session().conf
    before = conf.get("spark.sql.session.timeZone")
    yield lambda zone: conf.set("spark.sql.session.timeZone", zone)
    conf.set("spark.sql.session.timeZone", before)


def local(zone="UTC"):
    """The readings with local times of the zone, without an offset."""
    from zoneinfo import ZoneInfo

    rows = [((START + timedelta(minutes=30 * i)).astimezone(ZoneInfo(zone)).replace(tzinfo=None), "attic", v)
            for i, v in enumerate((24.0, 26.0, 27.0, 21.0))]  # fmt: skip
    return session().createDataFrame(rows, "time timestamp_ntz, source string, value double")


@pytest.mark.parametrize("plan", ["native", "packed"])
@pytest.mark.parametrize(("zone", "of"), [("UTC", "UTC"), ("Asia/Shanghai", "UTC"), ("UTC", "Europe/Berlin")])
def test_times_without_a_zone_are_returned_unchanged_and_join_with_their_input(in_zone, zone, of, plan):
    in_zone(zone)
    frame = local(of)
    found = replay(WARM, frame, zone=of, plan=plan)
    assert (dict(found.dtypes)["time"], dict(found.dtypes)["since"]) == ("timestamp_ntz",) * 2
    theirs = frame.select("time", "source", sf.col("value").alias("read"))
    rows = found.join(theirs, ["time", "source"]).orderBy("time").select("status", "read").collect()
    assert [tuple(row) for row in rows] == [("ingress", 26.0), ("egress", 21.0)]


def test_times_without_a_zone_are_refused_in_a_session_of_another_zone_unless_a_zone_is_given(in_zone):
    in_zone("Asia/Shanghai")
    with pytest.raises(
        UsageError, match=r"'time' has no time zone .* the session is in Asia/Shanghai.*zone='UTC'"
    ):
        replay(WARM, local())
    assert as_rows(replay(WARM, readings([24.0, 26.0, 27.0, 21.0]))) == EXPECTED  # these are instants
    with pytest.raises(UsageError, match="there is no time zone 'Mars'"):
        replay(WARM, local(), zone="Mars")


def test_a_plan_that_does_not_fit_a_frame_is_refused_with_the_reason(caplog):
    frame = readings([24.0, 26.0, 27.0, 21.0])
    with pytest.raises(UsageError, match="plan='files' does not fit this frame: it is more than a scan"):
        replay(WARM, frame, plan="files")
    with pytest.raises(UsageError, match="there is files, native, closed, packed"):
        replay(WARM, frame, plan="fast")
    with caplog.at_level("INFO", "holdfast.spark"):
        replay(WARM, frame)
    assert "replay of a frame: native; not files: it is more than a scan of files" in caplog.text


def test_a_selected_renamed_and_filtered_scan_of_files_uses_our_readers(tmp_path, caplog):
    import pyarrow.parquet as pq

    path = str(tmp_path / "100% #1")
    frame = readings([24.0, 26.0, 27.0, 23.0, 21.0, 29.0, float("nan"), 20.0])
    (tmp_path / "100% #1").mkdir()
    pq.write_table(frame.withColumn("essay", sf.lit("x")).toArrow(), f"{path}/a.parquet")
    scan = session().read.parquet(path)
    emitted = {}
    for condition in ("value > 22 and source = 'attic'", "value is not null", "value < 26 or value > 26.5",
                      "source in ('attic', 'lab')", "value * 2 > 44"):  # fmt: skip
        some = scan.where(condition).select("time", sf.col("source").alias("room"), "value")
        caplog.clear()
        with caplog.at_level("INFO", "holdfast.spark"):
            rows = replay(WARM, some, map={"source": "room"}).orderBy("time").toArrow().to_pylist()
        emitted[condition] = caplog.records[-1].message.split()[4].strip(";")
        packed = replay(WARM, some, map={"source": "room"}, plan="packed")
        assert rows == packed.orderBy("time").toArrow().to_pylist(), condition
        assert rows
    assert [*emitted.values()] == ["files", "files", "files", "files", "native"]


def test_a_scan_filtered_by_a_column_that_some_files_lack_is_read_by_spark(tmp_path):
    """Such files belong to a table that got another column later, which its older files lack."""
    import pyarrow.parquet as pq

    path, early = str(tmp_path / "table"), readings([24.0, 26.0, 27.0, 21.0])
    late = readings([29.0, 20.0], source="lab").withColumn("state", sf.lit("bad"))
    (tmp_path / "table").mkdir()
    for name, frame in (("early", early), ("late", late)):
        pq.write_table(frame.toArrow(), f"{path}/{name}.parquet")
    columns = "time timestamp, source string, value double, state string"
    some = session().read.schema(columns).parquet(path).where("state is null")
    assert as_rows(replay(WARM, some)) == EXPECTED


def test_tables_with_folders_buckets_or_views_are_read_by_spark(tmp_path, caplog):
    """Spark decides which rows count where a scan is more than a plain list of Parquet files."""
    spark = session()
    rooms = [readings([24.0, 26.0, 27.0, 21.0], source=room) for room in ("attic", "lab", "hall")]
    frame = rooms[0].union(rooms[1]).union(rooms[2])
    spark.sql("DROP TABLE IF EXISTS bucketed")
    frame.write.partitionBy("source").parquet(str(tmp_path / "folders"))
    frame.write.bucketBy(2, "source").option("path", str(tmp_path / "buckets")).saveAsTable("bucketed")
    frame.write.parquet(str(tmp_path / "plain"))
    spark.read.parquet(str(tmp_path / "plain")).where("source <> 'lab'").createOrReplaceTempView(
        "without_lab"
    )
    frames = {
        "folders": spark.read.parquet(str(tmp_path / "folders")),
        "buckets": spark.table("bucketed"),
        "view": spark.table("without_lab"),
    }
    for name, one in frames.items():
        caplog.clear()
        with caplog.at_level("INFO", "holdfast.spark"):
            found = replay(WARM, one).toArrow().to_pylist()
        assert "replay of a frame: native; not files: its" in caplog.text
        assert {row["scope"] for row in found} == {"attic", "lab", "hall"} - (
            {"lab"} if name == "view" else set()
        )
        packed = replay(WARM, one, plan="packed").toArrow().to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, packed))
    spark.sql("DROP TABLE bucketed")


class _Java:
    """Stands in for an object of Spark's Java side: a class name, and what its methods return."""

    def __init__(self, name, **returns):
        self._name = name
        for method, value in returns.items():
            setattr(self, method, lambda value=value: value)

    def getClass(self):  # noqa: N802
        return self

    def getName(self):  # noqa: N802
        return self._name

    def getSimpleName(self):  # noqa: N802
        return self._name.rpartition(".")[2]

    def toString(self):  # noqa: N802
        return "Parquet"


def test_a_parquet_format_with_separate_deletions_is_read_by_spark():
    """Delta's format derives from Spark's; the whole story with a real table is a long test (test_delta)."""
    sources = "org.apache.spark.sql.execution.datasources"
    ours = (f"{sources}.parquet.ParquetFileFormat", f"{sources}.InMemoryFileIndex")
    delta = (
        "org.apache.spark.sql.delta.DeltaParquetFileFormat",
        "org.apache.spark.sql.delta.TahoeLogFileIndex",
    )
    for format, index in ((delta[0], ours[1]), (ours[0], delta[1]), delta):
        relation = _Java(f"{sources}.HadoopFsRelation", fileFormat=_Java(format), location=_Java(index))
        with pytest.raises(PlanDoesNotFit, match="no plain list of Parquet files"):
            _files(relation)


def test_columns_with_awkward_names_can_be_mapped():
    frame = readings([24.0, 26.0, 27.0, 21.0]).toDF("a.time", "room `1`", "Value")
    found = replay(WARM, frame, map={"time": "a.time", "source": "room `1`", "value": "Value"})
    assert as_rows(found) == EXPECTED


def test_unused_columns_may_share_a_name():
    frame = readings([24.0, 26.0, 27.0, 21.0])
    for others in (("junk", "junk"), ("junk", "Junk"), ("Value", "TIME")):
        found = replay(WARM, frame.select("*", *(sf.lit("x").alias(name) for name in others)))
        assert as_rows(found) == EXPECTED, others


@pytest.mark.parametrize("more", ["", ", b float, c float"])
def test_a_shuffle_has_no_more_columns_than_in_a_hand_written_query(more):
    """The columns are time, source, and one number for the bit and for the order among rows of equal time."""
    definition = WARM.replace("value float", f"value float{more}")
    frame = readings([24.0, 26.0, 27.0, 21.0]).selectExpr("*", "1.0D AS b", "2.0D AS c")
    found = replay(definition, frame, plan="native")
    assert as_rows(found) == EXPECTED
    plan = found.select("time", "source", "status")._jdf.queryExecution().executedPlan().initialPlan()
    assert [shuffle.output().size() for shuffle in shuffles(plan)] == [3]


def shuffles(plan):
    """The shuffles of a plan."""
    below = [plan.children().apply(i) for i in range(plan.children().size())]
    mine = [plan] if plan.getClass().getSimpleName() == "ShuffleExchangeExec" else []
    return mine + [shuffle for one in below for shuffle in shuffles(one)]


STORM = """
topic Pass (wind float, cold float)
correlate Calm within 2 min wind in [3, 5] cold <= 0
correlate Gale within 2 min wind >= 17 cold <= 0
"""


def test_ranges_of_correlations_are_pushed_down_to_the_scan(tmp_path):
    rows = [(START + timedelta(seconds=i), "s", float(i), 1.0 - i % 9) for i in range(40)]
    frame = session().createDataFrame(rows, "time timestamp, source string, wind double, cold double")
    frame.write.parquet(str(tmp_path / "passes"))
    frame = session().read.parquet(str(tmp_path / "passes"))
    for computed in (frame, frame.withColumn("cold", sf.col("cold") + 0)):
        found = replay(STORM, computed, plan="packed", bad="drop")
        plan = found._jdf.queryExecution().executedPlan().toString()
        above, _, below = plan.partition("MapInArrow")
        assert ">= 17.0" in below
        assert ">= 17.0" not in above
        assert sorted(map(str, found.drop("id").collect())) == sorted(
            map(str, replay(STORM, computed, plan="packed").drop("id").collect())
        )
    plan = replay(STORM, frame, plan="packed", bad="drop")._jdf.queryExecution().executedPlan()
    (scan,) = (leaf for leaf in _leaves(plan) if leaf.nodeName().startswith("Scan parquet"))
    assert "LessThanOrEqual(wind,Infinity)" in scan.metadata().apply("PushedFilters")


def _leaves(plan):
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return _leaves(plan.initialPlan())
    found = plan.collectLeaves()
    return [found.apply(i) for i in range(found.size())]


def test_one_frame_may_have_several_topics_whose_names_differ_in_capitals():
    rows = [
        (START, "Temperature", "t1", 26.0, 4, None),
        (START, "Door", "d1", None, None, True),
        (START + timedelta(minutes=30), "Temperature", "t1", 21.0, 1, None),
        (START + timedelta(minutes=30), "Door", "d1", None, None, False),
        (START, "Wind", None, 99.0, 9, None),
    ]
    frame = session().createDataFrame(
        rows, "time timestamp, topic string, source string, warmth double, count int, open boolean"
    )
    assert as_rows(replay(CAPITALS, frame, map={"value": "warmth", "Value": "count"})) == [
        ("Many", None, "atomic", 0),
        ("Open", "d1", "ingress", 0),
        ("Warm", "t1", "ingress", 0),
        ("Open", "d1", "egress", 1),
        ("Warm", "t1", "egress", 1),
    ]


def test_a_topic_whose_columns_are_missing_fails_only_if_it_has_rows():
    frame = readings([24.0, 26.0, 27.0, 21.0]).withColumn("topic", sf.lit("Temperature"))
    assert as_rows(replay(BOTH, frame)) == EXPECTED
    with_a_door = frame.withColumn("topic", sf.when(sf.col("value") > 26, "Door").otherwise(sf.col("topic")))
    with pytest.raises(PySparkException, match="the column 'open' that topic 'Door' declares is missing"):
        replay(BOTH, with_a_door).count()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f.withColumnRenamed("time", "Time"), {}, r"'time' is missing.*Did you mean 'Time'"),
        (lambda f: f.drop("source"), {}, r"'source' is missing. The frame has: time, value\."),
        (lambda f: f.withColumnRenamed("value", "v"), {}, r"'value' that topic 'Temperature' declares"),
        (lambda f: f, {"map": {"value": "vlaue"}}, r"'vlaue' \(mapped from 'value'\).*'value'"),
        (lambda f: f, {"map": {"valu": "value"}}, r"there is no 'valu' to read"),
        (lambda f: f, {"topic": "Temprature"}, r"Did you mean 'Temperature'"),
        (lambda f: f.withColumn("time", sf.col("time").cast("string")), {}, r"timestamp, not string"),
        (lambda f: f.withColumn("time", sf.unix_micros("time")), {}, r"timestamp, not bigint"),
        (lambda f: f.withColumn("value", sf.lit("warm")), {}, r"'value' must be a number, not string"),
        (lambda f: f.withColumn("source", sf.lit(1)), {}, r"'source' must be text, not int"),
        (lambda f: f.withColumn("sequence", sf.lit(1.5)), {}, r"'sequence' must be a whole number"),
        (lambda f: f.select("*", sf.lit(1.0).alias("value")), {}, r"two columns 'value'"),
        (lambda f: f, {"bad": "skip"}, r"bad='skip'"),
    ],
)
def test_an_invalid_frame_is_refused_before_anything_runs(change, options, message):
    with pytest.raises(UsageError, match=message):
        replay(WARM, change(readings([1.0])), **options)


def test_rows_need_a_topic_where_several_are_declared():
    frame = readings([24.0, 26.0, 27.0, 21.0])
    with pytest.raises(
        UsageError, match=r"which topic are the frame's rows of\? Declared: Temperature, Door"
    ):
        replay(BOTH, frame)
    assert as_rows(replay(BOTH, frame, topic="Temperature")) == EXPECTED


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("time", None, "no time"),
        ("source", None, "no source"),
        ("source", " \t", "no source"),
        ("topic", None, "no topic"),
    ],
)
def test_an_unusable_row_fails_or_is_dropped_by_option(column, value, reason):
    frame = readings([24.0, 26.0, 27.0, 23.0, 21.0]).withColumn("topic", sf.lit("Temperature"))
    spoilt = sf.when(sf.col("value") == 23, sf.lit(value)).otherwise(sf.col(column))
    frame = frame.withColumn(column, spoilt)
    with pytest.raises(PySparkException, match=f"a row of the frame has {reason}"):
        replay(BOTH, frame).count()
    assert [status for _, _, status, _ in as_rows(replay(BOTH, frame, bad="drop"))] == ["ingress", "egress"]


@pytest.mark.parametrize("plan", ["native", "packed"])
def test_an_irrelevant_unusable_row_fails_by_every_plan(plan):
    frame = readings([24.0, 26.0, 23.0, 21.0])
    frame = frame.withColumn("source", sf.when(sf.col("value") != 23, sf.col("source")))
    with pytest.raises(PySparkException, match="a row of the frame has no source"):
        replay(WARM, frame, plan=plan).count()


def test_the_native_plan_needs_python_only_for_ids():
    found = replay(WARM, readings([24.0, 26.0, 27.0, 21.0]), plan="native")
    for rows, is_needed in ((found, True), (found.drop("id"), False)):
        assert ("Python" in rows._jdf.queryExecution().executedPlan().toString()) is is_needed
        assert as_rows(rows) == EXPECTED


def test_a_float_shown_as_text_beside_another_topic_is_formatted_by_python():
    both = WARM + "topic Door (value int)\nfilter Shut on Door where value == 0"
    found = replay(both, readings([24, 26, 27, 21], type="bigint"), topic="Temperature")
    assert [row.value for row in found.orderBy("time").collect()] == ["26.0", "21.0"]


def test_a_stream_is_refused_as_history_but_its_rows_can_be_laid_out():
    stream = session().readStream.format("rate").load().select(
        sf.col("timestamp").alias("time"), sf.lit("s").alias("source"), sf.col("value")
    )  # fmt: skip
    with pytest.raises(UsageError, match="stream"):
        replay(WARM, stream)
    from holdfast import check, parse

    rows = events(Job(check(parse(WARM))), stream)
    assert rows.isStreaming
    assert "time" in rows.columns


def test_only_declared_columns_are_read(tmp_path):
    path = str(tmp_path / "wide")
    wide = readings([24.0, 26.0, 27.0, 21.0]).withColumn("essay", sf.repeat(sf.lit("x"), 9))
    wide.write.parquet(path)
    found = replay(WARM, session().read.parquet(path))
    assert as_rows(found) == EXPECTED
    assert "essay" not in found._jdf.queryExecution().executedPlan().toString()


def test_a_definition_without_conditions_emits_nothing():
    assert replay("topic Temperature (value float)", readings([26.0])).count() == 0


# --- intervals -------------------------------------------------------------------------------------


def test_intervals_on_spark_equal_those_of_the_command(tmp_path):
    import holdfast as hf

    definition = (
        WARM
        + """
        filter Hot on Temperature where value > 29
        state Odd on Temperature [value > 28; value > 27]
        state Never on Temperature [value > 99; value < 0] per source
    """
    )
    values = [24.0, 26.0, 30.0, 21.0, 27.5, 20.0, 28.5, 28.5, 26.0]
    frame = readings(values).unionByName(readings(values[::-1], source="lab"))
    found = hf.spark.intervals(replay(definition, frame))
    table = frame.toArrow()
    wanted = hf.replay(definition, table).to_arrow("intervals")
    assert found.columns == wanted.column_names
    key = str
    assert sorted(found.toArrow().to_pylist(), key=key) == sorted(wanted.to_pylist(), key=key)
    assert {(row["subscription"], row["open"]) for row in wanted.to_pylist()} >= {
        ("Warm", False), ("Warm", True), ("Hot", False), ("Odd", False),
    }  # fmt: skip


def test_an_end_without_its_start_gives_an_interval_without_a_source():
    import holdfast as hf

    found = replay(WARM, readings([24.0, 26.0, 27.0, 21.0])).where("status = 'egress'")
    (row,) = hf.spark.intervals(found).toArrow().to_pylist()
    assert (row["start"] - START, row["end"] - START) == (timedelta(minutes=30), timedelta(minutes=90))
    assert (row["duration"], row["open"], row["source"], row["value"]) == (3600.0, False, None, None)
