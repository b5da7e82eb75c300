"""Where notifications go.  A batch that is done again after a crash leaves no trace of the first time.

Parquet: a folder for each batch, renamed into place.  JSON lines: one file that is cut back to what
the batches before have written.  Terminal and callbacks cannot be undone: there a notification may
come twice, with the same id.
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
"""How long each file is that is appended to, by path."""


class Sink(Protocol):
    """Takes the notifications of a batch, perhaps for the second time."""

    def write(self, batch: int, notifications: pa.Table, lengths: Lengths, /) -> None:
        """``lengths`` are those of before the batch; what is appended to a file is added to them."""


def as_said(tables: Sequence[pa.Table]) -> pa.Table:
    """The notifications of all shards, by time, but in each scope in the order in which they were said."""
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
class ParquetSink:
    """``FOLDER/batch-000000012/notifications.parquet``, in the columns of ``holdfast replay``."""

    path: Path
    topics: tuple[Topic, ...]

    def claim(self, query: str) -> None:
        """Mark the folder as the sink of a query: batches of two queries have the same names."""
        try:
            self.path.mkdir(exist_ok=True)
            (self.path / _MARK).write_text(query + "\n")
        except OSError as error:
            raise UsageError(f"cannot write to the sink '{self.path}': {error.strerror}") from None

    def write(self, batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        place = self.path / f"batch-{batch:09d}"
        stage = self.path.parent / f".{self.path.name}.staging"
        shutil.rmtree(stage, ignore_errors=True)
        if len(notifications):
            new = stage / place.name
            new.mkdir(parents=True)
            try:
                written = new / "notifications.parquet"
                pq.write_table(to_columns(self.topics, notifications), written, compression="zstd")
                settle(written, new)
                self.path.mkdir(parents=True, exist_ok=True)
                if place.exists():
                    place.rename(stage / "before")
                new.rename(place)
                settle(self.path)
            finally:
                shutil.rmtree(stage, ignore_errors=True)
        elif place.exists():
            stage.mkdir(parents=True)
            place.rename(stage / "before")
            shutil.rmtree(stage)


@dataclass(frozen=True)
class JsonLinesSink:
    """One line for each notification, appended to a file."""

    path: Path
    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, lengths: Lengths, /) -> None:
        append(self.path, lines(self.topics, notifications), lengths)


@dataclass(frozen=True)
class ConsoleSink:
    """Lines on standard output."""

    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        sys.stdout.writelines(_lines(self.topics, notifications))
        sys.stdout.flush()


@dataclass(frozen=True)
class CallbackSink:
    """A function of yours, called with each notification; equal ids tell a repetition."""

    callback: Callable[[Notification], Any]
    topics: tuple[Topic, ...]

    def write(self, _batch: int, notifications: pa.Table, _lengths: Lengths, /) -> None:
        for notification in from_table(self.topics, notifications):
            self.callback(notification)


def lines(topics: Sequence[Topic], notifications: pa.Table) -> Iterator[bytes]:
    """A line of JSON for each notification."""
    return (line.encode("utf-8", "replace") for line in _lines(topics, notifications))


def _lines(topics: Sequence[Topic], notifications: pa.Table) -> Iterator[str]:
    return map(event_line, from_table(topics, notifications), notifications.column("id").to_pylist())


def append(path: Path, lines: Iterator[bytes], lengths: Lengths) -> None:
    """Append to what the batches before have written, whatever came after it.

    A file that has become shorter meanwhile (somebody moved it away) is appended to as it is.
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


def settle(*paths: Path) -> None:
    """See to it that what was written survives a loss of power."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


# --- by name -----------------------------------------------------------------------------------------


def open_sink(text: str, topics: tuple[Topic, ...], query: str, lengths: Collection[str]) -> Sink:
    """The sink that ``parquet:PATH``, ``jsonl:PATH`` or ``console`` names.

    A place that holds something that this query has not written is refused.
    """
    kind, _, place = text.partition(":")
    path = Path(os.path.abspath(place))
    match kind:
        case "console" if not place:
            return ConsoleSink(topics)
        case "jsonl" if place:
            _require_parent(path)
            if path.is_dir():
                raise UsageError(f"--sink {text}: this is a folder; name a file")
            require_ours(path, lengths, f"--sink {text}")
            return JsonLinesSink(path, topics)
        case "parquet" if place:
            _require_parent(path)
            _require_claimable(path, query)
            return ParquetSink(path, topics)
    raise UsageError(f"--sink {text}: write parquet:PATH, jsonl:PATH or console")


def require_ours(path: Path, ours: Collection[str], option: str) -> None:
    """Refuse a file that holds something that this query has not written."""
    if path.exists() and path.stat().st_size and str(path) not in ours:
        raise UsageError(f"{option}: not a file of this query; name another or move it")


def _require_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder '{path.parent}' for the sink; create it first")


def _require_claimable(folder: Path, query: str) -> None:
    """Refuse a folder that holds something that this query has not written."""
    mark = folder / _MARK
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"the sink '{folder}' is not a folder; name another")
    if mark.exists():
        if mark.read_text().strip() != query:
            raise UsageError(f"the sink '{folder}' holds the output of another checkpoint; name another")
    elif folder.exists() and any(folder.iterdir()):
        raise UsageError(f"the sink '{folder}' is not empty and not of this query; name another")
