"""A live query as its own process, which is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.runtimes.spark.streaming.ledger import read_ledger
from support.patience import PATIENCE

WARM = """
topic Temperature (value float)
state  Warm on Temperature [value > 25; value < 22] per source
state  Late on Temperature [value > 26; value < 23] per source ordered 1 s
filter Hot  on Temperature where value > 31
"""


QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that lives for a while only."""


def generate(
    folder: Path, files: int, rows: int, sensors: int = 500, seed: int = 1, padding: int = 0
) -> None:
    """Random walks of many sensors, cut by time into files, with so many unused bytes in each row."""
    rng = np.random.default_rng(seed)
    names = pa.array([f"s{i}" for i in range(sensors)])
    at, level = 1_700_000_000_000_000, rng.uniform(18, 29, sensors)
    for number in range(files):
        steps = rows // sensors
        walk = level + np.cumsum(rng.normal(0, 0.5, (steps, sensors)), axis=0)
        walk = 23.5 + 9 * np.sin((walk - 23.5) / 9)
        level = walk[-1]
        times = at + np.arange(steps * sensors) * 1_000
        at = int(times[-1]) + 1_000
        table = pa.table(
            {
                "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "source": names.take(pa.array(np.tile(np.arange(sensors), steps))),
                "value": walk.ravel(),
                **({"note": [rng.bytes(padding) for _ in times]} if padding else {}),
            }
        )
        part = folder / f".{number:04d}.part"
        pq.write_table(table, part)
        part.rename(folder / f"{number:04d}.parquet")


class LiveProcess:
    """``holdfast run`` in a process group of its own; its Java, which lives for a while, compiles quickly."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "run", *arguments],
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "JAVA_TOOL_OPTIONS": QUICK},
            )

    def java(self) -> list[psutil.Process]:
        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
            return [child for child in children if "java" in child.name()]
        except psutil.NoSuchProcess:
            return []

    def kill(self, what: str) -> None:
        """End it without warning: ``python``, ``java``, or the whole ``group``."""
        match what:
            case "group":
                os.killpg(self.process.pid, signal.SIGKILL)
            case "python":
                self.process.kill()
            case "java":
                for child in self.java():
                    child.kill()
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        """Ask it to stop, and wait until it has."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def __enter__(self) -> LiveProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with_group = self.process.poll() is None
        for child in self.java():
            child.kill()
        if with_group:
            self.process.kill()
            self.process.wait(PATIENCE)


def batches_done(checkpoint: Path) -> int:
    """How many batches the ledger knows."""
    if not (checkpoint / "ledger.sqlite").exists():
        return 0
    number = read_ledger(checkpoint / "ledger.sqlite", 0).batch
    return 0 if number is None else number + 1


def wait_for(condition, seconds: float = PATIENCE, process: LiveProcess | None = None) -> bool:
    """Wait until it is so; no longer than so many seconds, or than the process lives."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        if process is not None and process.process.poll() is not None:
            return bool(condition())
        time.sleep(0.05)
    return False


def harass(arguments: Sequence[str], checkpoint: Path, log: Path, kills: Sequence[str], seed: int) -> int:
    """Run a query, and kill it in these ways, one after the other, at random moments: some in the
    middle of starting, some in the middle of a batch.  How many of the kills met it alive."""
    rng = random.Random(seed)
    met = 0
    for what in kills:
        with LiveProcess(arguments, log) as live:
            before = batches_done(checkpoint)
            if rng.random() < 0.15:
                wait_for(lambda: False, rng.uniform(1, 12), live)
            else:
                more = before + rng.choice([1, 1, 2, 3])
                wait_for(lambda more=more: batches_done(checkpoint) >= more, process=live)
                wait_for(lambda: False, rng.uniform(0, 0.8), live)
            met += live.process.poll() is None
            live.kill(what)
    return met
