"""Writers of notifications as JSON lines, CSV or Parquet: each event, or each interval from start to end.

A file appears when it is complete, or not at all. JSON is UTF-8, with a blank after ``:`` and ``,`` as
``json.dumps`` writes it. NaN is null. Infinity, which JSON does not have, is the text ``"inf"`` or
``"-inf"``, which the reader accepts. To add a format, write a class with the methods of
``NotificationFormat``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring as quoted
from types import TracebackType
from typing import IO, Literal, Protocol, Self, TypeVar

import pyarrow as pa

from ..errors import UsageError, did_you_mean
from ..model.event import Notification, Value
from ..model.instant import show_instant
from ..model.topic import Topic
from .interval import Interval, Pairing
from .table import (
    EVENT_COLUMNS,
    INTERVAL_COLUMNS,
    ArrowTable,
    Cell,
    ColumnKind,
    CsvTable,
    ParquetTable,
    Table,
    attribute_columns,
)
from .timeline import TimelineText
from .whole import WholeFile

OutputFormat = Literal["jsonl", "csv", "parquet"]
Form = Literal["events", "intervals", "timeline"]

T = TypeVar("T")

_TOGETHER = 1 << 14

FORMATS: tuple[OutputFormat, ...] = ("jsonl", "csv", "parquet")
FORMS: tuple[Form, ...] = ("events", "intervals", "timeline")


class NotificationFormat(Protocol):
    """The protocol of output formats.

    `Writer` calls ``events`` or ``intervals`` any number of times, then ``finish``, or ``abandon`` after an
    error.
    """

    def events(self, notifications: Sequence[Notification]) -> None: ...
    def intervals(self, intervals: Sequence[Interval]) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


class Writer:
    """Writes notifications in the given order. Leaving the context completes the file."""

    def __init__(self, sink: NotificationFormat, form: Form, whole: WholeFile | None) -> None:
        self._sink, self._whole = sink, whole
        self._pairing = None if form == "events" else Pairing()

    def write(self, notifications: Sequence[Notification]) -> None:
        """Write notifications, or the intervals that they end."""
        if self._pairing is None:
            self._sink.events(notifications)
        else:
            self._sink.intervals(self._pairing.pair(notifications))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            if self._pairing is not None:
                self._sink.intervals(self._pairing.still_open())
            self._sink.finish()
        except BaseException:
            self._discard()
            raise
        if self._whole is not None:
            self._whole.keep()

    def _discard(self) -> None:
        self._sink.abandon()
        if self._whole is not None:
            self._whole.discard()


def open_writer(
    path: str, format: OutputFormat = "jsonl", form: Form = "events", topics: Sequence[Topic] = ()
) -> Writer:
    """Open a writer to a file, or to standard output if the path is ``-``."""
    _require(format, FORMATS, "--format")
    _require(form, FORMS, "--as")
    if path == "-" and format == "parquet":
        raise UsageError("Parquet cannot go to standard output; give --output PATH, or --format jsonl or csv")
    whole = None if path == "-" else WholeFile(path)
    try:
        file = sys.stdout.buffer if whole is None else whole.file
        return Writer(_sink(file, format, form, topics), form, whole)
    except BaseException:
        if whole is not None:
            whole.discard()
        raise


def _require(word: str, words: Sequence[str], option: str) -> None:
    if word not in words:
        near = did_you_mean(word, words) or f"Choose one of {', '.join(words)}."
        raise UsageError(f"{option} {word}: there is no such choice. {near}")


def _sink(file: IO[bytes], format: OutputFormat, form: Form, topics: Sequence[Topic]) -> NotificationFormat:
    if form == "timeline":
        return TimelineText(file)
    if format == "jsonl":
        return JsonLines(file)
    columns, attributes = _columns(form, topics)
    table = CsvTable(file, columns) if format == "csv" else ParquetTable(file, columns)
    return TableFormat(table, attributes)


def _columns(form: Form, topics: Sequence[Topic]) -> tuple[dict[str, ColumnKind], list[str]]:
    """Return the columns of a table, and the attributes among them, which come last."""
    fixed = EVENT_COLUMNS if form == "events" else INTERVAL_COLUMNS
    attributes = attribute_columns(topics, fixed)
    return {**fixed, **dict(attributes.values())}, list(attributes)


def to_arrow(notifications: Iterable[Notification], form: Form, topics: Sequence[Topic]) -> pa.Table:
    """Return an Arrow table with the content of the Parquet file that would be written."""
    _require(form, FORMS[:2], "form")
    columns, attributes = _columns(form, topics)
    table = ArrowTable(columns)
    with Writer(TableFormat(table, attributes), form, None) as writer:
        for some in in_lists(notifications, _TOGETHER):
            writer.write(some)
    return table.table


def in_lists(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of ``size``; the last list can be shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


# --- JSON lines ------------------------------------------------------------------------------------


class JsonLines:
    """An output format with one JSON object per line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def events(self, notifications: Sequence[Notification]) -> None:
        self._file.write("".join(map(event_line, notifications)).encode("utf-8", "replace"))

    def intervals(self, intervals: Sequence[Interval]) -> None:
        self._file.write("".join(map(interval_line, intervals)).encode("utf-8", "replace"))

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        pass


def event_line(notification: Notification, id: str | None = None) -> str:
    """Return a notification as a line of JSON, equal to ``Notification.to_json`` but faster.

    A caller that has computed the id passes it.
    """
    event = notification.event
    return (
        f'{{"id": "{id or notification.id}", "subscription": {quoted(notification.subscription)}, '
        f'"scope": {_text(notification.scope)}, "status": "{notification.status}", '
        f'"time": {_time(event.time)}, "since": {_time(notification.since)}, '
        f'"topic": {quoted(event.topic)}, "source": {quoted(event.source)}, '
        f'"location": {_location(event.place, event.location)}, '
        f'"attributes": {_attributes(event.attributes)}}}\n'
    )


_UNKNOWN = '"known": false, '


def interval_line(interval: Interval) -> str:
    """Return an interval as a line of JSON."""
    return (
        f'{{"subscription": {quoted(interval.subscription)}, "scope": {_text(interval.scope)}, '
        f'"start": {_time(interval.start)}, "end": {_time(interval.end)}, '
        f'"duration": {_value(interval.duration)}, "open": {_value(interval.open)}, '
        f"{'' if interval.known else _UNKNOWN}"
        f'"topic": {quoted(interval.topic)}, "source": {_text(interval.source)}, '
        f'"attributes": {"null" if interval.attributes is None else _attributes(interval.attributes)}}}\n'
    )


def _text(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def _time(at: int | None) -> str:
    return "null" if at is None else f'"{show_instant(at)}"'


def _location(place: str | None, location: Sequence[float] | None) -> str:
    return _text(place) if location is None else f"[{', '.join(map(_value, location))}]"


def _attributes(attributes: Mapping[str, Value]) -> str:
    return f"{{{', '.join([f'{quoted(name)}: {_value(value)}' for name, value in attributes.items()])}}}"


def _float(value: float) -> str:
    if value - value == 0:
        return float.__repr__(value)
    return "null" if value != value else f'"{float.__repr__(value)}"'


_WRITTEN: dict[type, Callable[..., str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: _float,
    str: quoted,
}


def _value(value: Value) -> str:
    return _WRITTEN[type(value)](value)


# --- tables ----------------------------------------------------------------------------------------


class TableFormat:
    """An output format with one row for each event or interval, and one column for each attribute."""

    def __init__(self, table: Table, attributes: Sequence[str]) -> None:
        self._table, self._attributes = table, attributes

    def events(self, notifications: Sequence[Notification]) -> None:
        self._table.write([(*_event_cells(n), *self._cells(n.event.attributes)) for n in notifications])

    def intervals(self, intervals: Sequence[Interval]) -> None:
        self._table.write([(*_interval_cells(i), *self._cells(i.attributes or {})) for i in intervals])

    def finish(self) -> None:
        self._table.finish()

    def abandon(self) -> None:
        self._table.abandon()

    def _cells(self, attributes: Mapping[str, Value]) -> list[Cell]:
        return [attributes.get(name) for name in self._attributes]


def _event_cells(n: Notification) -> tuple[Cell, ...]:
    event = n.event
    where = location_text(event.place, event.location)
    return n.id, n.subscription, n.scope, n.status, event.time, n.since, event.topic, event.source, where


def location_text(place: str | None, location: Sequence[float] | None) -> str | None:
    """Return the location of an event as the text of one cell: its coordinates, else its place."""
    return place if location is None else _location(None, location)


def _interval_cells(i: Interval) -> tuple[Cell, ...]:
    return i.subscription, i.scope, i.start, i.end, i.duration, i.open, i.topic, i.source
