"""A query that needs more stages than Spark's checkpoint has goes on in a new one, a generation.

Spark fixes the number of its state operators in its own checkpoint.  So what the shards keep is read once
from the old one and written aside, a file for each stage and shard; then ``query.json``, in one rename, says
which generation it is, from which batch and which files on, and the old one is removed.  The first batch of
the new one gives the files to the shards as packed rows; a batch that is done again does so again.
"""

from __future__ import annotations

import json
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
from .damage import Done
from .memory import Shard
from .sink import settle
from .state import STORE
from .store import Kept

HandOver = Callable[[Checkpoint, int, int, Path], dict[str, int]]
"""Writes what the shards of so many stages keep after a batch to files in a folder: their names, with
checksums."""


def moved(checkpoint: Checkpoint, old: Plan, new: Plan, last: Done | None, hand_over: HandOver) -> Plan:
    """A plan in a generation of its own, for which everything is there, after the ``last`` batch of the old
    one; as long as it is not saved, that goes on."""
    before = Checkpoint(checkpoint.folder, old.generation.number)
    after = Checkpoint(checkpoint.folder, old.generation.number + 1)
    shutil.rmtree(after.states, ignore_errors=True)  # of somebody who died here
    after.states.mkdir()
    began = old.generation
    if last is not None:
        states = hand_over(before, old.stages, last.batch, after.states)
        began = Generation(began.number, began.batch + last.batch + 1, last.offset, states)
    else:  # what it was to begin with goes on
        for name in began.states:
            _write(after.states / name, (before.states / name).read_bytes())
    settle(after.states, after.folder)
    began = msgspec.structs.replace(began, number=after.generation)
    return msgspec.structs.replace(new, generation=began)


def sweep(checkpoint: Checkpoint, last: Done | None) -> None:
    """Remove what other generations have left, and after the ``last`` batch of this one, if there is
    one, what the shards have taken over."""
    settle(checkpoint.folder)  # whose it is, before what it was goes
    for path in checkpoint.others():
        shutil.rmtree(path)
    if last is not None and checkpoint.states.exists():
        shutil.rmtree(checkpoint.states)


# --- what Spark keeps ----------------------------------------------------------------------------------


def handed_over(
    spark: Callable[[], SparkSession], checkpoint: Checkpoint, stages: int, batch: int, to: Path
) -> dict[str, int]:
    """What the shards of a query keep that Spark has run, written by the executors."""
    own = spark().newSession()
    for name, value in STORE.items():
        own.conf.set(name, value)
    folder = str(to)

    def write(rows: pa.Table) -> pa.Table:
        return _written(folder, rows)

    rows = reduce(DataFrame.union, _stored(own, checkpoint.spark, stages, batch))
    written = rows.groupBy("stage", "shard").applyInArrow(write, "name string, sum long")
    return {row.name: row.sum for row in written.collect()}


_WHOLE, _HEAD, _CHANGES, _EARLIER = "shard", "head", "changes", "patches"
_STORED = {
    _WHOLE: ("0", "value.state"),
    _HEAD: ("0", "value.head"),
    _CHANGES: ("user_map_key.number", "user_map_value.change"),
    _EARLIER: ("at", "patch.patch"),
}
"""What a store has (``ShardProcessor``), by the columns in which Spark gives a number and the bytes."""


def _stored(spark: SparkSession, folder: Path, stages: int, batch: int) -> Iterator[DataFrame]:
    """What the stores have after a batch."""
    told = spark.read.format("state-metadata").load(str(folder)).select("operatorId", "operatorProperties")
    for operator, properties in told.collect():
        read = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
        for one in json.loads(properties)["stateVariables"]:  # earlier versions had fewer
            name = one["stateName"]
            is_list = name == _EARLIER  # its order counts
            rows = (
                read.option("stateVarName", name)
                .option("flattenCollectionTypes", not is_list)
                .load(str(folder))
            )
            if is_list:
                rows = rows.selectExpr("key", "posexplode(list_value) AS (at, patch)")
            number, raw = _STORED[name]
            stage = stages - 1 - operator  # Spark counts from the last one
            yield rows.selectExpr(
                f"{stage} stage", "key.shard shard", f"'{name}' what", f"{number} number", f"{raw} raw"
            )


def _written(folder: str, rows: pa.Table) -> pa.Table:
    """Write what a store has of a shard."""
    found: dict[str, dict[int, bytes]] = {name: {} for name in _STORED}
    for row in rows.to_pylist():
        found[row["what"]][row["number"]] = row["raw"]
    earlier = [patch for _, patch in sorted(found[_EARLIER].items())]
    kept = Kept(found[_WHOLE].get(0, b""), found[_HEAD].get(0, b""), found[_CHANGES], earlier)
    stage, shard = (rows.column(name)[0].as_py() for name in ("stage", "shard"))
    operators = Shard.from_bytes(kept.whole).operators if kept.whole else {}
    if not (places := {one.kept.stage for one in operators.values()}) <= {stage}:
        raise UsageError(f"Spark has given to stage {stage} what belongs to {places}; {LOST}")
    raw, name = msgspec.msgpack.encode(kept), f"{stage}-{shard}"
    _write(Path(folder) / name, raw)
    return pa.table({"name": [name], "sum": [zlib.crc32(raw)]})


def _write(path: Path, raw: bytes) -> None:
    with WholeFile(str(path)) as whole:
        whole.file.write(raw)
        whole.file.flush()
        os.fsync(whole.file.fileno())
