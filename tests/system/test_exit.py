"""A command that has written all its output ends in order, however busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.files import from_csv
from holdfast.files.content import ByteStream
from holdfast.files.find import InputFile
from holdfast.files.tally import Tally

READINGS = "time,source,value\n2026-01-01T00:00:00Z,a,26\n2026-01-01T00:01:00Z,a,20\n"

REPLAYS = """
import os, sys, time
import holdfast as hf

path, times, burners = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
app = "topic T (value float)  state Warm on T [value > 25; value < 22] per source"


def burn():
    while os.getppid() == parent:
        sum(range(100_000))


def replay():
    assert len(list(hf.replay(app, path))) == 2
    sys.exit(0)


def child(work):
    if pid := os.fork():
        return pid
    work()
    os._exit(1)


parent = os.getpid()
busy = [child(burn) for _ in range(burners)]
ends = [os.waitpid(child(replay), 0)[1] for _ in range(times)]
for pid in busy:
    os.kill(pid, 9)
print(len(ends) - ends.count(0), flush=True)
os._exit(0)
"""
"""Replays in processes that end as Python ends; what they share is only that it is loaded once."""


def badly_ended(folder: Path, times: int, burners: int) -> int:
    (folder / "readings.csv").write_text(READINGS)
    command = [sys.executable, "-c", REPLAYS, str(folder / "readings.csv"), str(times), str(burners)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


@pytest.mark.parametrize("taken", ["all", "some"])
def test_files_are_released_after_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """A thread of Arrow needs Python to release the file, and Python may already be shutting down."""
    streams: list[ByteStream] = []

    class Watched(ByteStream):
        def __init__(self, file: InputFile) -> None:
            super().__init__(file)
            streams.append(self)

    monkeypatch.setattr(from_csv, "ByteStream", Watched)
    path = tmp_path / "readings.csv"
    path.write_text(READINGS)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # no other thread has its turn unless it is waited for
    try:
        chunks = from_csv.chunks(InputFile(str(path), 0, "csv"), ["time"], Tally(), chunk_rows=1)
        for _ in chunks:
            if taken == "some":
                break
        chunks.close()
        held = [sys.getrefcount(stream) for stream in streams]
    finally:
        sys.setswitchinterval(before)
    alone = [object()]
    assert held == [sys.getrefcount(one) for one in alone for _ in streams]


def test_replays_of_two_rows_end_in_order(tmp_path: Path) -> None:
    assert badly_ended(tmp_path, times=4, burners=0) == 0


@pytest.mark.soak
def test_a_thousand_replays_of_two_rows_end_in_order_on_a_busy_machine(tmp_path: Path) -> None:
    assert badly_ended(tmp_path, times=1000, burners=2 * (os.cpu_count() or 2)) == 0
