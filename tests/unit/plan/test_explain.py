"""The required contents of a plan."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.definition.parse import parse
from holdfast.plan.explain import explain, explain_on_spark
from support.patience import PATIENCE

TEXT = """
topic Temperature (value float °C, room text, humidity float)
topic Door (open bool)
region hall = rectangle (0, 0) (9, 9)
region lab = rectangle (0, 0) (4, 4) in hall
state Warm on Temperature [value > 25; value < 22] per source
state Toasty on Temperature [value > 25; value < 22] per source
state Hot on Temperature [value > 40 && humidity < 50; value < 30] per source
filter Open on Door where open
state Stuck on Door [open; false] per source ordered 30 s
state Late on Door [open; !open] per source ordered 2 min late apply
state Area on Temperature [value > 25; value < 22] per room scope lab within hall
"""


@pytest.fixture(scope="module")
def plan():
    """The paragraphs of the plan, by the conditions that they are about."""
    found = {}
    for part in explain(parse(TEXT).check()).split("\n\n"):
        found[part.splitlines()[1].strip().split(",")[0]] = part
    return found


def test_every_machine_has_a_paragraph_with_its_topic(plan):
    assert list(plan) == ["Warm", "Open", "Stuck", "Late", "Area"]
    assert plan["Warm"].startswith("machine 1: 2 filters on Temperature")
    assert plan["Open"].startswith("machine 2: 1 filter on Door")


def test_equal_filters_are_explained_together_with_start_and_end(plan):
    assert "Warm, Toasty" in plan["Warm"]
    assert "starts  value > 25.0" in plan["Warm"]
    assert "ends    value < 22.0" in plan["Warm"]
    assert "value > 40.0 && humidity < 50.0" in plan["Warm"]


def test_the_plan_names_exactly_the_columns_that_are_read(plan):
    (line,) = (line for line in plan["Warm"].splitlines() if "sequence" in line)
    assert "value" in line
    assert "humidity" in line
    assert "room" not in line
    (line,) = (line for line in plan["Area"].splitlines() if "sequence" in line)
    assert "room" in line


def test_the_plan_explains_momentary_and_endless_conditions(plan):
    assert "momentary" in plan["Open"]
    assert "no bit is ever set" in plan["Open"]
    assert "ends    never" in plan["Stuck"]


def test_the_plan_explains_nested_scopes(plan):
    assert "one for everything" in plan["Open"]
    assert "one filter for each source" in plan["Warm"]
    assert "feeds" not in plan["Warm"]
    assert "one filter for each room, inside each of 2 regions, 2 deep" in plan["Area"]
    assert "what passes the inner filter feeds the outer" in plan["Area"]


def test_the_plan_explains_delivery_and_late_events(plan):
    assert "timely" in plan["Warm"]
    assert "30 s" in plan["Stuck"]
    assert "late output" in plan["Stuck"]
    assert "2 min" in plan["Late"]
    assert "applied as it arrives" in plan["Late"]


def test_the_plan_explains_dropped_events_and_stored_state(plan):
    assert "events that satisfy neither predicate" in plan["Warm"]
    assert "1 byte of status bits" in plan["Warm"]
    assert "16 bytes of start times" in plan["Warm"]


def test_more_than_eight_filters_need_a_wider_word():
    lines = "\n".join(f"state c{i} on T [v > {i}; v < {i} - 1] per source" for i in range(9))
    assert "8 bytes of status bits" in explain(parse(f"topic T (v float)\n{lines}").check(Path()))


def test_a_definition_without_conditions_has_no_plan():
    assert explain(parse("topic T (v float)").check()).startswith("Nothing to run")


@pytest.fixture(scope="module")
def on_spark():
    """The paragraphs of the plan on Spark, by their first lines or the conditions they are about."""
    found = {}
    for part in explain_on_spark(parse(TEXT).check()).split("\n\n"):
        first, second, *_ = part.splitlines()
        found[second.strip().split(",")[0] if first.startswith("machine") else first] = part
    return found


def test_the_plan_on_spark_explains_every_machine_every_topic_and_both_ways_to_run(on_spark):
    assert list(on_spark) == [
        "Warm", "Open", "Stuck", "Late", "Area",
        "a DataFrame of Temperature", "a DataFrame of Door", "history from files", "live",
    ]  # fmt: skip


def test_the_plan_on_spark_explains_the_shard_key(on_spark):
    assert "a hash (crc32) of source" in on_spark["Warm"]
    assert "a hash (crc32) of the outermost region" in on_spark["Area"]
    assert "one scope is one shard" in on_spark["Open"]


def test_the_plan_on_spark_explains_late_events(on_spark):
    assert "nothing is late" in on_spark["Warm"]
    assert "passed by 30 s" in on_spark["Stuck"]
    assert "late output" in on_spark["Stuck"]
    assert "applied as it arrives" in on_spark["Late"]
    assert "RocksDB" in on_spark["live"]


def test_the_plan_on_spark_shows_each_predicate_once_as_sql(on_spark):
    (where,) = (line for line in on_spark["a DataFrame of Temperature"].splitlines() if "where" in line)
    assert "(value > 25.0D AND NOT isnan(value)) OR (value < 22.0D)" in where
    assert where.count("value > 25.0D") == 1


@pytest.mark.parametrize(
    ("subscriptions", "plan", "message"),
    [
        ("state A on T [v > 2; v < 1] per room", "native", "what differs from the row before, by room"),
        (
            "state A on T [v > 2; v < 1] per room\nfilter B on T where v > 3",
            "native",
            "by room and nothing, of",
        ),
        ("filter B on T where v > 3", "native", "Spark's own window query"),
        ("state A on T [v > 2; v > 1] per room", "native", "no: entrance and exit of A may both hold"),
        ("state A on T [v > 2; v < 1] per room within floor", "native", "no: scopes are nested"),
        ("state A on T [v > 2; v < 1] per v", "native", "no: only Python can write a float"),
        ("state A on T [v > 2; v < 1] scope hall", "native", "no: only Python can tell in which region"),
        ("state A on T [v > 2; v < 1] scope hall", "closed", "no: only Python can tell in which region"),
        (
            "state A on T [v > 2; v > 1] per room within floor",
            "closed",
            "partitions whose times no scope shares",
        ),
        ("correlate C within 1 min v in [3, 5] w >= 1", "where", "(v >= 3.0D AND v <= 5.0D) OR (w >= 1.0D"),
        ("correlate C within 1 min v in [3, 5] w >= 1", "native", "no: a component or a correlation listens"),
        ("state A on T [v > 2; v < 1] per room", "stream", "what satisfies a predicate crosses"),
        ("state A on T [v > 2; v < 1] per room ordered 5 s", "stream", "it tells how far time has come"),
    ],
)
def test_the_plan_on_spark_explains_the_plans_for_data_frames(subscriptions, plan, message):
    declared = "topic T (v float, w float, room text, floor text)\nregion hall = rectangle (0, 0) (9, 9)\n"
    (line,) = (
        line for line in explain_on_spark(parse(declared + subscriptions).check()).splitlines()
        if line.startswith(f"  {plan} ")
    )  # fmt: skip
    assert message in line


def test_the_plan_on_spark_needs_no_spark():
    code = "import sys, holdfast.plan.explain; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert "pyspark" not in loaded.stdout.split()


def test_the_plan_on_spark_is_empty_without_conditions():
    assert explain_on_spark(parse("topic T (v float)").check()).startswith("Nothing to run")
