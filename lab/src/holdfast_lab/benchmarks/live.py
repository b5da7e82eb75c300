"""A live query on Spark with many keys: what a batch costs when ten thousand are held, and a million.

All keys are held first; then come files of 100,000 readings of keys drawn at random, of which one in a
hundred ends its state, and those that had ended begin again; then files of 1,000 such readings, which change
little of what is kept.  A file is a batch.  Seconds are those of the processor, of all processes together.
Bytes are those that a batch writes for states (Spark's log of changes), and beside them those of the copies
that Spark makes of its store now and then. ``HOLDFAST_BENCH_SETS=guarded,table`` measures some kinds of
conditions alone, ``HOLDFAST_BENCH_SCALE`` fewer keys and readings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.model.batch import TIME

from . import Row, sets_to_measure, times
from .process import apart, children
from .spark import SCALE

KEYS = (10_000, 100_000, 1_000_000)
ROWS = 100_000


class Later(NamedTuple):
    """Batches that come when all keys are held: how many, and how many of these are not measured."""

    rows: int
    batches: int
    warming: int


LATER = (Later(ROWS, 12, 5), Later(ROWS // 100, 9, 2))
MINUTE = 60_000_000
AT_MOST = 1.5
"""How many times as long as with the fewest keys a batch may take with the most."""

TOPIC = "topic Temperature (value float, rack text)\n"
LIMITS = 'table limits "limits.csv" (source text, high float, low float)\n'
HEAT = "levels Heat on Temperature:"
WARM = "state Warm on Temperature [value > 25; value < 22] per rack, source"

SETS = {
    "plain": "state Warm on Temperature [value > 25; value < 22] per source",
    "guarded": "state Warm on Temperature [value > 25 for 5 min; value < 22 for 2 min] per source",
    "silent": "state Warm on Temperature [value > 25; value < 22 or silent 6 h] per source",
    "unknown": "state Warm on Temperature [value > 25; value < 22] per source unknown after 6 h",
    "ordered": "state Warm on Temperature [value > 25 for 5 min; value < 22] per source ordered 30 s",
    "table": f"{LIMITS}state Warm on Temperature [value > limits.high; value < limits.low] per source",
    "levels": f"{HEAT} warm [value > 25; value < 22], hot [value > 40; value < 35] per source",
    "guarded-levels": f"{HEAT} lo [value > 25 for 5 min; value < 22], hi [value > 40; value < 35] per source",
    "count": f"{WARM}\nstate Many = at least 50 of Warm within rack",
    "count-of-all": f"{WARM}\nstate Many = at least 50 of Warm",
    "timed-count": f"{WARM.replace(';', ' for 2 min;')}\nstate Many = at least 50 of Warm within rack",
}
"""Definitions of each kind of condition."""


def run(progress: Callable[[str], None]) -> list[Row]:
    """Every kind of condition with more and more keys."""
    kinds = sets_to_measure(SETS)
    return [row for kind in kinds for row in _rows(kind, progress)]


def _rows(kind: str, progress: Callable[[str], None]) -> Iterator[Row]:
    found: dict[int, list[dict[str, Any]]] = {}
    for keys in (max(100, int(keys * min(1, SCALE))) for keys in KEYS):
        progress(f"live, {kind}: {keys:,} keys held")
        for rows, one in zip(_sizes(), apart(batches, kind, keys), strict=True):
            found.setdefault(rows, []).append(dict(one))
            what = f"live, {kind}: a batch of {rows:,} readings, {keys:,} keys held"
            progress(f"{what}: {one['cpu_s']:.2f} s of the processor, {one['changed_bytes'] / 1000:,.1f} kB")
            yield Row(what, one.pop("cpu_s"), "s", detail=one)
    for rows, some in found.items():
        few, *_, many = some
        what = f"live, {kind}: with {KEYS[-1] // KEYS[0]} × the keys a batch of {rows:,} readings"
        yield times(f"{what} takes", many["cpu_s"] / few["cpu_s"], most=AT_MOST)
        yield times(f"{what} writes", many["changed_bytes"] / max(1, few["changed_bytes"]))


def _sizes() -> list[int]:
    """How many readings the batches have that come later."""
    return [max(10, int(later.rows * min(1, SCALE))) for later in LATER]


# --- one query -------------------------------------------------------------------------------------


def batches(kind: str, keys: int) -> list[dict[str, Any]]:
    """What batches of each size cost a query that holds so many keys, in this process and its children."""
    from holdfast.files.reading import Reading
    from holdfast.runtimes.spark.session import session
    from holdfast.runtimes.spark.streaming.log import folders
    from holdfast.runtimes.spark.streaming.query import Live, run

    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        here, inbox = Path(folder), Path(folder, "inbox")
        before = write(here, keys)
        checked = check(parse(TOPIC + SETS[kind]), base=here)
        states = here / "checkpoint" / "spark" / "state"
        seen: dict[str, int] = {}
        at: list[_BatchStatus] = []

        def note(_batch: int, record: Any, _waiting: int) -> None:
            now = sizes(states)
            new = {name: size for name, size in now.items() if name not in seen}
            seen.update(now)
            changed = sum(size for name, size in new.items() if name.endswith(_CHANGES))
            bytes_ = {"changed": changed, "copied": sum(new.values()) - changed}
            at.append(_BatchStatus(time.monotonic(), processor(), bytes_, record.holding))

        live = Live(
            checked,
            Reading(checked.topics),
            folders([f"dir:{inbox}"], ["Temperature"]),
            checkpoint=here / "checkpoint",
            sink=f"parquet:{here / 'out'}",
            every=None,
            settle=0,
            batch_bytes=1,
        )
        run(live, session(), progress=note)
        assert len(at) == before + sum(later.batches for later in LATER), f"{len(at)} batches"
        return [_cost(at[some.start - 1 : some.stop]) for some in batches_by_size(before)]


def batches_by_size(before: int) -> list[slice]:
    """Which batches of each size are measured, where so many come before them all."""
    ends = accumulate((later.batches for later in LATER), initial=before)
    pairs = zip(ends, LATER, strict=False)
    return [slice(first + later.warming, first + later.batches) for first, later in pairs]


_CHANGES = ".changelog"
"""What Spark calls the files that say what a batch has changed."""


class _BatchStatus(NamedTuple):
    """How things stand at the end of a batch; bytes are those that were written since the one before."""

    clock: float
    used: dict[str, float]
    written: dict[str, int]
    held: int


def _cost(at: Sequence[_BatchStatus]) -> dict[str, Any]:
    """What each batch after the first of these moments cost."""
    used = [{what: new.used[what] - old.used[what] for what in new.used} for old, new in pairwise(at)]
    return {
        "cpu_s": median(sum(one.values()) for one in used),
        **{f"{what}_s": median(one[what] for one in used) for what in used[0]},
        "worst_s": max(sum(one.values()) for one in used),
        "clock_s": median(new.clock - old.clock for old, new in pairwise(at)),
        **{f"{what}_bytes": mean(new.written[what] for new in at[1:]) for what in at[0].written},
        "held": at[-1].held,
        "load": os.getloadavg()[0],
    }


def write(folder: Path, keys: int) -> int:
    """The readings of a query, and its table; how many files hold all keys first."""
    inbox = folder / "inbox"
    inbox.mkdir()
    pyarrow.csv.write_csv(limits(keys), folder / "limits.csv")
    sizes = _sizes()
    for number, table in enumerate(readings(keys, sizes)):
        pq.write_table(table, inbox / f"{number:04d}.parquet")
    return -(-keys // max(sizes))


def limits(keys: int) -> pa.Table:
    """The table of a query with so many keys."""
    return pa.table({"source": _names(keys), "high": np.full(keys, 25.0), "low": np.full(keys, 22.0)})


def readings(keys: int, sizes: Sequence[int]) -> Iterator[pa.Table]:
    """The readings of each batch, a minute apart: first those that hold all keys, then ``LATER`` ones of
    these sizes."""
    rng, rows = np.random.default_rng(1), max(sizes)
    names, racks = _names(keys), pa.array([f"rack-{i:05d}" for i in range(-(-keys // 100))])
    first = [np.arange(low, min(keys, low + rows)) for low in range(0, keys, rows)]
    some = zip(sizes, LATER, strict=True)
    later = [rng.integers(0, keys, rows) for rows, one in some for _ in range(one.batches)]
    for number, who in enumerate([*first, *later]):
        ends = (rng.random(len(who)) < 0.01) & (number >= len(first))
        start = 1_700_000_000_000_000 + number * MINUTE
        columns = {
            "time": pa.array(start + np.arange(len(who)) * (MINUTE // (2 * len(who)))).cast(TIME),
            "source": names.take(pa.array(who)),
            "rack": racks.take(pa.array(who // 100)),
            "value": np.where(ends, 20.0, 30.0),
        }
        yield pa.table(columns)


def _names(keys: int) -> pa.StringArray:
    return pa.array([f"sensor-{i:07d}" for i in range(keys)])


# --- what it costs ---------------------------------------------------------------------------------


def processor() -> dict[str, float]:
    """Seconds of the processor of this process, of Java, and of Python workers, ended ones too."""
    found = {"driver": 0.0, "java": 0.0, "workers": 0.0}
    own, tick = os.getpid(), os.sysconf("SC_CLK_TCK")
    for pid, name in {own: "driver", **children()}.items():
        with suppress(OSError):  # it may have ended
            user, system, *ended = map(
                int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
            )
            what = "driver" if pid == own else "java" if name == "java" else "workers"
            found[what] += (user + system) / tick
            found["workers"] += sum(ended) / tick if what != "driver" else 0
    return found


def sizes(folder: Path) -> dict[str, int]:
    """The files below a folder, with their sizes."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may have been removed
            if path.is_file():
                found[str(path)] = path.stat().st_size
    return found
