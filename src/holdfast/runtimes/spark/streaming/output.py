"""Sinks for notifications. If a batch is repeated after a crash, its output replaces that of its first run.

Parquet: a folder for each batch, renamed into place. JSON lines: one file, cut back to its length before the
batch. Output to a terminal or a callback cannot be undone; a repeated notification has the same id.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ....errors import UsageError
from ....files.write import event_line
from ....model.event import Notification
from ....model.topic import Topic
from ...table import from_table, to_columns

_MARK = "_holdfast"  # readers of Parquet skip names that begin so

Lengths = dict[str, int]
"""The length in bytes of each file that batches append to, by path."""


class BatchOutput(Protocol):
    """The protocol of sinks: `write` receives the notifications of each batch, repeated batches included."""

    def write(self, batch: int, notifications: pa.Table, lengths: Lengths, /) -> None:
        """Write the notifications of a batch. A batch may be repeated after a crash.

        `lengths` has the lengths of files before the batch. The sink updates them for the files that it
        appends to.
        """


def in_emission_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Merge the notifications of all shards by time. Those of each scope remain in the order of emission."""
    whole = pa.concat_tables(tables)
    frame = pd.DataFrame(
        {
            "time": np.asarray(whole.column("time").cast(pa.int64())),
            "subscription": whole.column("subscription").to_pandas(),
            "scope": whole.column("scope").to_pandas().fillna(""),
        }
    )
    frame["time"] = frame.groupby(["subscription", "scope"], sort=False)["time"].cummax()
    order = frame.sort_values(["time", "subscription", "scope"], kind="stable").index
    return whole.take(pa.array(order.to_numpy()))


@dataclass(frozen=True)
class ParquetOutput:
    """A sink that writes a Parquet file for each batch, in the columns of ``holdfast replay``.

    The files are named ``FOLDER/batch-000000012/notifications.parquet``.
    """

    path: Path
    topics: tuple[Topic, ...]

    def claim(self, query: str) -> None:
        """Mark the folder as the sink of this query.

        Without the mark, batches of another query would replace those of this one, because their names are
        equal.
        """
        try:
            self.path.mkdir(exist_ok=True)
            (self.path / _MARK).write_text(query + "\n")
        except OSError as error:
            raise UsageError(f"cannot write to the sink '{self.path}': {error.strerror}") from None

    def write(self, batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        """Write the notifications of a batch to a folder of its own.

        The folder replaces that of an earlier run of the batch.
        """
        place = self.path / f"batch-{batch:09d}"
        staging = self.path.parent / f".{self.path.name}.staging"
        shutil.rmtree(staging, ignore_errors=True)
        if len(notifications):
            new = staging / place.name
            new.mkdir(parents=True)
            try:
                written = new / "notifications.parquet"
                pq.write_table(to_columns(self.topics, notifications), written, compression="zstd")
                sync(written, new)
                self.path.mkdir(parents=True, exist_ok=True)
                if place.exists():
                    place.rename(staging / "before")
                new.rename(place)
                sync(self.path)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        elif place.exists():
            staging.mkdir(parents=True)
            place.rename(staging / "before")
            shutil.rmtree(staging)


@dataclass(frozen=True)
class JsonLinesOutput:
    """A sink that appends a JSON line for each notification to a file."""

    path: Path
    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, lengths: Lengths, /) -> None:
        append(self.path, lines(self.topics, notifications), lengths)


@dataclass(frozen=True)
class ConsoleOutput:
    """A sink that prints a line for each notification to standard output."""

    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        sys.stdout.writelines(_lines(self.topics, notifications))
        sys.stdout.flush()


@dataclass(frozen=True)
class CallbackOutput:
    """A sink that calls a function with each notification. A repeated notification has the same id."""

    callback: Callable[[Notification], Any]
    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        for notification in from_table(self.topics, notifications):
            self.callback(notification)


def lines(topics: Sequence[Topic], notifications: pa.Table) -> Iterator[bytes]:
    """Return a line of JSON for each notification."""
    return (line.encode("utf-8", "replace") for line in _lines(topics, notifications))


def _lines(topics: Sequence[Topic], notifications: pa.Table) -> Iterator[str]:
    return map(event_line, from_table(topics, notifications), notifications.column("id").to_pylist())


def append(path: Path, lines: Iterator[bytes], lengths: Lengths) -> None:
    """Write lines to a file from its length before the batch on, over output of an earlier run of the batch.

    If the file is shorter now, for example because it was moved away, the lines are appended to its end.
    """
    key, raw = str(path), b"".join(lines)
    known = lengths.get(key, 0)
    if not raw and not (path.exists() and path.stat().st_size > known):
        return
    with open(path, "ab", buffering=0) as file:
        begin = min(known, file.tell())
        file.truncate(begin)
        try:
            left = memoryview(raw)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(begin)
            raise
        lengths[key] = begin + len(raw)


def json_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    return (msgspec.json.encode(row, enc_hook=str) + b"\n" for row in rows)


def sync(*paths: Path) -> None:
    """Flush files and folders to disk, so that they survive a loss of power."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


# --- by name -----------------------------------------------------------------------------------------


def open_output(text: str, topics: tuple[Topic, ...], query: str, lengths: Collection[str]) -> BatchOutput:
    """Return the sink for `parquet:PATH`, `jsonl:PATH` or `console`.

    Refuses files that the query has not written.
    """
    kind, _, place = text.partition(":")
    path = Path(os.path.abspath(place))
    match kind:
        case "console" if not place:
            return ConsoleOutput(topics)
        case "jsonl" if place:
            _require_parent(path)
            if path.is_dir():
                raise UsageError(f"--sink {text}: this is a folder; name a file")
            require_own_file(path, lengths, f"--sink {text}")
            return JsonLinesOutput(path, topics)
        case "parquet" if place:
            _require_parent(path)
            _require_claimable(path, query)
            return ParquetOutput(path, topics)
    raise UsageError(f"--sink {text}: write parquet:PATH, jsonl:PATH or console")


def require_own_file(path: Path, own_files: Collection[str], option: str) -> None:
    """Refuse a file with content that this query has not written."""
    if path.exists() and path.stat().st_size and str(path) not in own_files:
        raise UsageError(f"{option}: not a file of this query; name another or move it")


def _require_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder '{path.parent}' for the sink; create it first")


def _require_claimable(folder: Path, query: str) -> None:
    """Refuse a folder with content that this query has not written."""
    mark = folder / _MARK
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"the sink '{folder}' is not a folder; name another")
    if mark.exists():
        if mark.read_text().strip() != query:
            raise UsageError(f"the sink '{folder}' holds the output of another checkpoint; name another")
    elif folder.exists() and any(folder.iterdir()):
        raise UsageError(f"the sink '{folder}' is not empty and not of this query; name another")
