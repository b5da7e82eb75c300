"""Spark's stages without Spark: packed rows meet by machine and shard, in any order, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from holdfast import App, DefinitionError, Event, Notification, check, parse
from holdfast.files.reading import Reading
from holdfast.runtimes.spark.batch.reader import ReadJob, read_task
from holdfast.runtimes.spark.batch.replay import plan_tasks, require_success
from holdfast.runtimes.spark.batch.shard import Job, last_step, stage_step
from holdfast.runtimes.table import from_table, schema_of
from support.fused import KEYS, TOPICS, predicates, queries
from support.runtimes import output, parquet_files


def run_in_shards(app: App, events: Sequence[Event], shards: int = 3) -> list[Notification]:
    """The notifications of a history as its readers and shards find them."""
    checked = check(app)
    with parquet_files(checked, events) as files:
        reading = Reading(checked.topics)
        read_job = ReadJob(
            Job.on_history(checked), reading, tuple(plan_tasks(files, reading, cores=1)), shards
        )
        rows = [row for i in range(len(read_job.tasks)) for row in read_task(read_job, i)]
    return output(list(from_table(read_job.job.published, met(read_job.job, rows, shards))))


def met(job: Job, rows: Sequence[pa.RecordBatch], shards: int) -> pa.Table:
    """Process packed rows stage by stage."""
    steps = [stage_step(job, stage, shards) for stage in range(job.stages - 1)]
    for step in (*steps, last_step(job, require_success)):
        by_shard: dict[tuple[int | None, ...], list[pa.RecordBatch]] = {}
        for row in rows:
            by_shard.setdefault(tuple(row.to_pylist()[0].values())[:3], []).append(row)
        rows = [row for key, mine in by_shard.items() for row in step(_scalars(key), iter(_shuffle(mine)))]
    return pa.Table.from_batches(rows, schema_of(job.published))


def _scalars(key: Iterable[int | None]) -> tuple[pa.Scalar, ...]:
    return tuple(pa.scalar(part, pa.int32()) for part in key)


def _shuffle(rows: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    Random(len(rows)).shuffle(rows)
    return rows


# --- definitions of several levels -------------------------------------------------------------------


@st.composite
def towers(draw, delivery: str = "") -> str:
    """Components that build on one another, under the same key, another one, or none; and a filter."""
    text = TOPICS
    below: list[tuple[str, bool]] = []
    for name in ("First", "Second", "Third")[: draw(st.integers(1, 3))]:
        key = draw(st.sampled_from((None, *KEYS) if below else (None, "source, road", *KEYS)))
        inputs = [("A", draw(queries(draw(st.sampled_from("TU")), key)))]
        tests = [draw(predicates(["A"]))]
        leaves = ["A.value < 1"]
        if below:
            lower, momentary = draw(st.sampled_from(below))
            shown = draw(st.sampled_from(("", " any location"))) if key is None else f" each {key}"
            inputs.append(("D", f"{lower}{shown}"))
            valid = draw(st.sampled_from(("D.valid && ", "")))
            tests.append(f"{valid}D.status == {'atomic' if momentary else 'ingress'}")
            leaves.append(f"{valid}D.status == {'atomic' if momentary else 'egress'}")
        if below and draw(st.booleans()):
            inputs, tests, leaves = inputs[1:], tests[1:], leaves[1:]
        momentary = draw(st.booleans())
        sets = draw(st.sampled_from(("", "", " set road = D.road" if len(inputs) > 1 else "")))
        text += f"state {name}\n" + "".join(f"  {own} = {query}\n" for own, query in inputs)
        text += f"  enter {' && '.join(tests)}{sets}\n"
        text += f"  exit {'true' if momentary else draw(st.sampled_from(leaves))}\n{delivery}"
        below.append((name, momentary))
    text += draw(st.sampled_from(("", "", "state High on T [value > 1; value < 1] per source\n")))
    try:
        check(parse(text))
    except DefinitionError:  # a road is missing where it is no key
        reject()
    return text
