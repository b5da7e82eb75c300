"""Options for reading tables, and the layout of a file: the meaning of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from ..errors import UsageError, did_you_mean
from ..model.batch import AXES
from ..model.topic import Topic
from .find import InputFile

TimeUnit = Literal["s", "ms", "us", "ns"]

FIXED = ("time", "source", "topic", "sequence", "place", *AXES)
"""Columns that every table can have, beside its topic's attributes."""


class Where(NamedTuple):
    """A condition on the rows of a file as an Arrow expression, and the columns that it needs."""

    columns: tuple[str, ...]
    holds: Any


@dataclass(frozen=True)
class Reading:
    """Options for reading files.

    ``rename`` maps Holdfast's names to those of the file. ``time`` can map to several columns joined by ``+``
    (``time=Date+Time``), whose texts are joined with a blank. ``zone`` is for times without a zone.
    ``time_format`` is for text (``strptime``). ``time_unit`` is for times that are numbers since 1970, which
    are refused without it. ``topic`` is for rows and files without a topic.
    """

    topics: tuple[Topic, ...]
    rename: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC
    time_format: str | None = None
    time_unit: TimeUnit | None = None
    topic: str | None = None
    wide: bool = False
    """Whether each column that is not mapped has the readings of the sensor of that name."""
    where: Where | None = None
    """Which rows of Parquet files to read."""

    def __post_init__(self) -> None:
        known = {*FIXED, *(a.name for topic in self.topics for a in topic.attributes)}
        for ours in self.rename:
            if ours not in known:
                near = did_you_mean(ours, known) or f"Known: {', '.join(sorted(known))}."
                raise UsageError(f"--map {ours}={self.rename[ours]}: there is no '{ours}' to read. {near}")
        if self.time_unit not in (None, *get_args(TimeUnit)):
            raise UsageError(
                f"--time-unit: times count in one of {', '.join(get_args(TimeUnit))}, not {self.time_unit}"
            )
        if self.topic is not None and self.topic not in self.by_name:
            near = did_you_mean(self.topic, self.by_name) or f"Declared: {', '.join(self.by_name) or 'none'}."
            raise UsageError(f"topic '{self.topic}' is not declared. {near}")

    @property
    def by_name(self) -> dict[str, Topic]:
        return {topic.name: topic for topic in self.topics}

    def theirs(self, ours: str) -> str:
        """Return the file's name of a column."""
        return self.rename.get(ours, ours)

    def default(self, file: InputFile) -> Topic | None:
        """Return the topic of a file's rows that do not name one, or ``None`` if it is ambiguous."""
        name = file.topic or self.topic
        if name is not None:
            return self.by_name[name]
        return self.topics[0] if len(self.topics) == 1 else None


def parse_zone(name: str) -> tzinfo:
    """Return the time zone with a name such as ``Europe/London``."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(f"there is no time zone '{name}'; write it like Europe/London") from error


def parse_rename(text: str) -> dict[str, str]:
    """Parse ``--map``: pairs of Holdfast's name and the file's name, separated by commas.

    >>> parse_rename("time=ts, source=room")
    {'time': 'ts', 'source': 'room'}
    """
    pairs: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not (ours and equals and theirs):
            raise UsageError(f"--map '{pair}': write ours=theirs, such as time=ts,source=room")
        if ours in pairs:
            raise UsageError(f"--map names '{ours}' twice; keep one of them")
        pairs[ours] = theirs
    return pairs


@dataclass(frozen=True)
class Layout:
    """The meaning of the columns of one file, by the file's names.

    ``None`` stands for a column that the file lacks.
    """

    time: tuple[str, ...]
    source: str
    topic: str | None
    sequence: str | None
    place: str | None
    axes: tuple[str, ...]
    default: Topic | None
    names: tuple[str, ...]
    open_ended: bool
    """Whether rows can have columns that the layout does not list (JSON lines)."""
    sensors: tuple[str, ...] = ()
    """In a wide file, the columns that contain the readings of a sensor each."""

    def topics(self, reading: Reading) -> Sequence[Topic]:
        """Return the topics that the file's rows can have."""
        return reading.topics if self.topic is not None else [self.default] if self.default else []

    def columns_to_read(self, reading: Reading) -> list[str]:
        """Return the columns of the file to read, each once."""
        columns = [*self.time, self.source, self.topic, self.sequence, self.place, *self.axes]
        if self.sensors:
            return list(dict.fromkeys(c for c in (*columns, *self.sensors) if c in self.names))
        columns += [reading.theirs(a.name) for topic in self.topics(reading) for a in topic.attributes]
        return list(
            dict.fromkeys(c for c in columns if c is not None and (self.open_ended or c in self.names))
        )


class Sheet(NamedTuple):
    """A file with its layout and the options to read it."""

    file: InputFile
    layout: Layout
    reading: Reading


def lay_out(file: InputFile, names: Sequence[str], reading: Reading, *, open_ended: bool = False) -> Layout:
    """Find Holdfast's columns among those of a file. A missing column is a usage error with a suggestion.

    The attributes are those of the file's topic. If a column contains the topic, ``require_attributes``
    checks the attributes of a topic when its first row arrives.
    """
    default = reading.default(file)
    if reading.wide and default is not None:
        return _lay_out_wide(file, names, reading, default)
    topic = None if reading.wide else _optional(file, "topic", names, reading)
    if topic is None and default is None:
        declared = ", ".join(t.name for t in reading.topics) or "none"
        raise UsageError(
            f"{file.path}: which topic are its rows of? Declared: {declared}. Add a column 'topic', "
            f"write --input {reading.topics[0].name if reading.topics else 'Topic'}={file.path}, "
            "or give --topic for all files."
        )
    axes = takewhile(bool, (_optional(file, axis, names, reading) for axis in AXES))  # no y without x
    layout = Layout(
        time=_times(file, names, reading),
        source=_require_column(file, "source", names, reading),
        topic=topic,
        sequence=_optional(file, "sequence", names, reading),
        place=_optional(file, "place", names, reading),
        axes=tuple(theirs for theirs in axes if theirs is not None),
        default=default,
        names=tuple(names),
        open_ended=open_ended,
    )
    if topic is None and default is not None and not open_ended:
        require_attributes(file, default, names, reading)
    _require_unique(file, layout.columns_to_read(reading), names)
    return layout


def _lay_out_wide(file: InputFile, names: Sequence[str], reading: Reading, topic: Topic) -> Layout:
    """Return the layout of a file with a column for each sensor.

    Every column that is neither the time nor mapped is a sensor.
    """
    if len(topic.attributes) != 1:
        raise UsageError(
            f"--wide: a cell is one value, and topic '{topic.name}' has {len(topic.attributes)} attributes; "
            "declare a topic with one"
        )
    if SENSOR in names:
        raise UsageError(f"{file.path}: it has a column '{SENSOR}', so it is not wide; leave --wide out")
    time = _times(file, names, reading)
    mapped = {ours: _require_column(file, ours, names, reading) for ours in reading.rename if ours != "time"}
    for ours in mapped.keys() - {"sequence", "place", *AXES}:
        raise UsageError(f"--wide: '{ours}' is not in one column, so it cannot be mapped to one")
    sensors = tuple(name for name in names if name and name not in (*time, *mapped.values()))
    if not sensors:
        raise UsageError(f"{file.path}: --wide: there is no column beside the time. {_list_names(names)}")
    axes = tuple(mapped[axis] for axis in takewhile(mapped.__contains__, AXES))
    layout = Layout(
        time, SENSOR, None, mapped.get("sequence"), mapped.get("place"), axes, topic,
        (*names, reading.theirs(topic.attributes[0].name)), open_ended=False, sensors=sensors,
    )  # fmt: skip
    _require_unique(file, layout.columns_to_read(reading), names)
    return layout


SENSOR = "source"
"""The column of sensor names in a wide file once it is split by sensor."""


def require_attributes(file: InputFile, topic: Topic, names: Sequence[str], reading: Reading) -> None:
    """Raise ``UsageError`` unless every attribute of the topic has a column."""
    for attribute in topic.attributes:
        _require_column(file, attribute.name, names, reading, of=topic.name)


def _times(file: InputFile, names: Sequence[str], reading: Reading) -> tuple[str, ...]:
    theirs = reading.theirs("time")
    parts = tuple(part.strip() for part in theirs.split("+"))
    if theirs not in names and len(parts) > 1 and all(part in names for part in parts):
        return parts
    return (_require_column(file, "time", names, reading),)


def _optional(file: InputFile, ours: str, names: Sequence[str], reading: Reading) -> str | None:
    if ours in reading.rename:
        return _require_column(file, ours, names, reading)
    return ours if ours in names else None


def _require_column(
    file: InputFile, ours: str, names: Sequence[str], reading: Reading, of: str | None = None
) -> str:
    theirs = reading.theirs(ours)
    if theirs in names:
        return theirs
    raise UsageError(_missing(file, ours, theirs, names, of))


def _missing(file: InputFile, ours: str, theirs: str, names: Sequence[str], of: str | None) -> str:
    what = f"the column '{theirs}'" + (f" (mapped from '{ours}')" if theirs != ours else "")
    whose = f" that topic '{of}' declares" if of else ""
    example = f"--map {ours}=NAME" if not names else f"--map {ours}={_nearest(theirs, names)}"
    lines = [f"{file.path}: {what}{whose} is missing."]
    lines.append(f"  The file has: {_list_names(names)}.")
    near = did_you_mean(theirs, names)
    lines.append(f"  {near + ' ' if near else ''}Say which column it is, for example {example}.")
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        lines.append(f"  The columns seem to be separated by {other!r}; a CSV file needs commas.")
    return "\n".join(lines)


def _nearest(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name.casefold(), [n.casefold() for n in names], n=1, cutoff=0.6)
    return next((n for n in names if n.casefold() == near[0]), "NAME") if near else "NAME"


def _list_names(names: Iterable[str], most: int = 30) -> str:
    names = list(names)
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "no columns"


def _require_unique(file: InputFile, columns_to_read: Sequence[str], names: Sequence[str]) -> None:
    for name in columns_to_read:
        if list(names).count(name) > 1:
            raise UsageError(f"{file.path}: the column '{name}' occurs twice; rename one of them in the file")
