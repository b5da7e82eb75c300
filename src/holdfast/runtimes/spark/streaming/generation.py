"""The move of a query to a new Spark checkpoint, called a generation, when it needs more stages.

Spark fixes the number of stateful operators in its checkpoint. The states are therefore read once from the
old checkpoint and written to a file for each stage and shard. Then one rename of `query.json` switches to the
new generation, and the old checkpoint is removed. The first batch of the new generation sends the files to
the shards as packets; if the batch is repeated, it sends them again.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ....errors import UsageError
from ....files.whole import WholeFile
from .checkpoint import LOST, Checkpoint, Generation, Plan
from .damage import Commit
from .output import sync
from .processor import STORE_SETTINGS
from .shard_state import ShardState
from .store import StoredShard

HandOver = Callable[[Checkpoint, int, int, Path], dict[str, int]]
"""Writes the states of all stages after a batch to files in a folder; returns their names and checksums."""


def move_to_next_generation(
    checkpoint: Checkpoint, old: Plan, new: Plan, last: Commit | None, hand_over: HandOver
) -> Plan:
    """Prepare the next generation and return the plan for it. The old one continues until that plan is saved.

    `last` is the last commit of the old generation. Without a commit, the next generation starts where the
    old one did.
    """
    old_checkpoint = Checkpoint(checkpoint.folder, old.generation.number)
    new_checkpoint = Checkpoint(checkpoint.folder, old.generation.number + 1)
    shutil.rmtree(new_checkpoint.states, ignore_errors=True)  # of somebody who died here
    new_checkpoint.states.mkdir()
    start = old.generation
    if last is not None:
        states = hand_over(old_checkpoint, old.stages, last.batch, new_checkpoint.states)
        start = Generation(start.number, start.batch + last.batch + 1, last.offset, states)
    else:  # what it was to begin with goes on
        for name in start.states:
            _write_file(new_checkpoint.states / name, (old_checkpoint.states / name).read_bytes())
    sync(new_checkpoint.states, new_checkpoint.folder)
    start = msgspec.structs.replace(start, number=new_checkpoint.generation)
    return msgspec.structs.replace(new, generation=start)


def remove_old_generations(checkpoint: Checkpoint, last: Commit | None) -> None:
    """Remove the folders of other generations.

    After the first commit, also remove the states from which this one started.
    """
    sync(checkpoint.folder)  # whose it is, before what it was goes
    for path in checkpoint.other_generations():
        shutil.rmtree(path)
    if last is not None and checkpoint.states.exists():
        shutil.rmtree(checkpoint.states)


# --- what Spark keeps ----------------------------------------------------------------------------------


def hand_over_states(
    spark: Callable[[], SparkSession], checkpoint: Checkpoint, stages: int, batch: int, to: Path
) -> dict[str, int]:
    """Read the states from a Spark checkpoint after `batch`; executors write them to files.

    Return their checksums.
    """
    own = spark().newSession()
    for name, value in STORE_SETTINGS.items():
        own.conf.set(name, value)
    folder = str(to)

    def write(rows: pa.Table) -> pa.Table:
        return _write_shard(folder, rows)

    rows = reduce(DataFrame.union, _read_stores(own, checkpoint.spark, stages, batch))
    written = rows.groupBy("stage", "shard").applyInArrow(write, "name string, sum long")
    return {row.name: row.sum for row in written.collect()}


_WHOLE, _HEAD, _CHANGES = "shard", "head", "changes"
_STORED = {
    _WHOLE: ("0", "value.state"),
    _HEAD: ("0", "value.head"),
    _CHANGES: ("user_map_key.number", "user_map_value.change"),
}
"""The variables of `ShardProcessor`, with the columns in which Spark returns the number of a value and its
bytes."""


def _read_stores(spark: SparkSession, folder: Path, stages: int, batch: int) -> Iterator[DataFrame]:
    """Yield a frame for each stateful operator and variable, with its values after a batch."""
    for (operator,) in spark.read.format("state-metadata").load(str(folder)).select("operatorId").collect():
        read = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
        stage = stages - 1 - operator  # Spark counts from the last one
        for name, (number, raw) in _STORED.items():
            rows = read.option("stateVarName", name).option("flattenCollectionTypes", True).load(str(folder))
            yield rows.selectExpr(
                f"{stage} stage", "key.shard shard", f"'{name}' what", f"{number} number", f"{raw} raw"
            )


def _write_shard(folder: str, rows: pa.Table) -> pa.Table:
    """Write the stored state of a shard to a file, and return its name and checksum."""
    found: dict[str, dict[int, bytes]] = {name: {} for name in _STORED}
    for row in rows.to_pylist():
        found[row["what"]][row["number"]] = row["raw"]
    stored = StoredShard(found[_WHOLE].get(0, b""), found[_HEAD].get(0, b""), found[_CHANGES])
    stage, shard = (rows.column(name)[0].as_py() for name in ("stage", "shard"))
    operators = ShardState.from_bytes(stored.whole).operators if stored.whole else {}
    if not (places := {operator.record.stage for operator in operators.values()}) <= {stage}:
        raise UsageError(f"Spark has given to stage {stage} what belongs to {places}; {LOST}")
    raw, name = msgspec.msgpack.encode(stored), f"{stage}-{shard}"
    _write_file(Path(folder) / name, raw)
    return pa.table({"name": [name], "sum": [zlib.crc32(raw)]})


def _write_file(path: Path, raw: bytes) -> None:
    with WholeFile(str(path)) as whole:
        whole.file.write(raw)
        whole.file.flush()
        os.fsync(whole.file.fileno())
