"""Mappings from messages of devices to events: the channel by a pattern, the payload by paths.

A channel is what MQTT calls a topic, such as ``building/lab/s4/climate``. All functions are pure.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

import msgspec

from ...errors import HoldfastError, InputError, UsageError, did_you_mean
from ...files.reading import TimeUnit
from ...model.event import UNNUMBERED, Event, Value
from ...model.instant import Instant, from_datetime, parse_datetime
from ...model.topic import Attribute, Topic
from ...runtimes.local.admission import conform_attributes
from .arrival import check_arrival

Payload = Literal["json", "number", "csv", "sparkplug"]
Metrics = Sequence[Mapping[str, Any]]
"""A decoded Sparkplug B payload: rows of values by name."""
UNITS: Mapping[TimeUnit, float] = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
FIXED = ("time", "source", "place", "sequence", "x", "y", "z")

_decode = msgspec.json.Decoder().decode
_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Pattern:
    """A pattern of channels such as ``building/{place}/{source}/climate``.

    ``+`` and a final ``#`` have their meaning in MQTT.
    """

    text: str

    def __post_init__(self) -> None:
        for i, level in enumerate(self._levels):
            if ("{" in level or "}" in level) and not _NAMED.fullmatch(level):
                raise UsageError(f"'{self.text}': a name in braces takes a whole level, as in a/{{source}}/b")
            if "#" in level and (level != "#" or i < len(self._levels) - 1):
                raise UsageError(f"'{self.text}': # stands alone, and last")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"'{self.text}': a name in braces occurs twice")

    @property
    def _levels(self) -> list[str]:
        return self.text.split("/")

    @property
    def names(self) -> list[str]:
        """The names in braces, in the order of the pattern."""
        return _NAMED.findall(self.text)

    @property
    def filter(self) -> str:
        """The pattern as an MQTT topic filter.

        >>> Pattern("building/{place}/{source}/climate").filter
        'building/+/+/climate'
        """
        return _NAMED.sub("+", self.text)

    def matcher(self) -> Callable[[str], dict[str, str] | None]:
        """Return a function from a channel to the values of the names in braces.

        The function returns ``None`` if the channel does not match.
        """
        parts = [_level(level) for level in self._levels]
        whole = re.compile("/".join(parts).replace("/.*", "(?:/.*)?"), re.DOTALL)
        return lambda channel: None if (found := whole.fullmatch(channel)) is None else found.groupdict()


def _level(level: str) -> str:
    if named := _NAMED.fullmatch(level):
        return f"(?P<{named[1]}>[^/]*)"
    return {"+": "[^/]*", "#": ".*"}.get(level) or re.escape(level)


@dataclass(frozen=True)
class Route:
    """A rule that converts messages on matching channels to readings of a topic.

    ``fields`` maps attributes to paths in a JSON payload (``"data.temp.0"``) or to metrics of Sparkplug; the
    default is the attribute's own name. ``columns`` names the columns of CSV lines. ``items`` is the path of
    a list of readings in a JSON payload.
    """

    pattern: Pattern
    topic: str | None = None
    payload: Payload = "json"
    fields: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    items: str | None = None
    time_unit: TimeUnit | None = None
    qos: int = 1
    time_zone: tzinfo | None = None
    """The zone of times without a zone; if it is not set, they are refused."""


def require_sense(route: Route, topics: Mapping[str, Topic]) -> None:
    """Refuse a route that names topics or attributes that the definition does not declare."""
    if route.topic is None:
        if "topic" not in route.pattern.names:
            raise UsageError(f"'{route.pattern.text}': say of which topic its readings are: topic = \"…\"")
        return
    topic = topics.get(route.topic)
    if topic is None:
        near = did_you_mean(route.topic, topics) or f"Declared: {', '.join(topics) or 'none'}."
        raise UsageError(f"topic '{route.topic}' is not declared. {near}")
    known = {*FIXED, *topic.by_name}
    for name in (*route.fields, *route.pattern.names, *(c for c in route.columns if c)):
        if name not in known:
            near = did_you_mean(name, known) or f"There is {', '.join(sorted(known))}."
            raise UsageError(f"topic '{topic.name}' has no '{name}'. {near}")
    if route.payload == "number" and len(_numbers(topic, route)) != 1:
        raise UsageError(
            f"topic '{topic.name}': a payload that is a number needs one attribute that is a number and that "
            "the channel does not say"
        )
    if route.payload == "csv" and not route.columns:
        raise UsageError('CSV lines need their columns: columns = ["time", "value"]')


def _numbers(topic: Topic, route: Route) -> list[Attribute]:
    return [a for a in topic.attributes if a.kind in ("float", "int") and a.name not in route.pattern.names]


Found = tuple[Route, dict[str, str]]
"""A route and the values that its pattern captures from the channel."""


def finder(routes: Sequence[Route]) -> Callable[[str], tuple[Found, ...]]:
    """Return a function from a channel to its routes. Results are cached by channel.

    The routes are the first that matches, and others with the same filter.
    """
    matchers = [(route, route.pattern.matcher()) for route in routes]

    @lru_cache(100_000)
    def find(channel: str) -> tuple[Found, ...]:
        found = [(route, captured) for route, match in matchers if (captured := match(channel)) is not None]
        return tuple(item for item in found if item[0].pattern.filter == found[0][0].pattern.filter)

    return find


def read(
    found: Found, topics: Mapping[str, Topic], payload: bytes | Metrics, now: Instant
) -> list[tuple[Event, bool]]:
    """Convert a payload that arrived at ``now`` to events, each with whether its time was corrected."""
    route, captured = found
    name = route.topic or captured.get("topic", "")
    topic = topics.get(name)
    if topic is None:
        near = did_you_mean(name, topics) or f"Declared: {', '.join(topics) or 'none'}."
        raise InputError(f"topic '{name}' is not declared. {near}")
    rows = _ROWS[route.payload](route, topic, payload)
    return [check_arrival(_event(route, topic, {**row, **captured}, now), now) for row in rows]


def _event(route: Route, topic: Topic, row: Mapping[str, Any], now: Instant) -> Event:
    source = row.get("source")
    if not isinstance(source, (str, int)) or not str(source).strip():
        raise InputError("it has no source: name it in the pattern, as in sensors/{source}, or in fields")
    attributes = {a.name: of_kind(a, row.get(a.name)) for a in topic.attributes}
    axes = [_coordinate(axis, row.get(axis)) for axis in ("x", "y", "z")]
    place = row.get("place")
    try:
        known = conform_attributes(topic, attributes)
    except HoldfastError as error:
        raise InputError(str(error)) from None
    return Event(
        topic.name,
        time_of(route, row.get("time"), now),
        str(source),
        known,
        _sequence(row.get("sequence")),
        tuple(takewhile(lambda c: c is not None, axes)) or None,  # type: ignore[arg-type]
        None if place is None else str(place),
    )


def _coordinate(axis: str, text: Any) -> float | None:
    value = of_kind(Attribute(axis, "float"), text)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        raise InputError(f"{axis} {str(text)[:60]!r} is no coordinate")
    return float(value)


def time_of(route: Route, value: Any, now: Instant) -> Instant:
    """Return the time in a payload, or ``now`` if it has none."""
    if value is None or value == "":
        return now
    if route.time_unit is not None:
        try:
            return int(float(value) * UNITS[route.time_unit])
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"time {value!r} is not a number of {route.time_unit}") from None
    try:
        parsed = parse_datetime(value)
        if parsed.tzinfo is None and route.time_zone is None:
            raise InputError(
                f"time {value!r} has no zone: set time_zone in the mapping of '{route.pattern.text}', "
                'such as time_zone = "Europe/Berlin", or "UTC"'
            )
        return from_datetime(parsed, route.time_zone or UTC)
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise InputError(f"time {value!r} is not ISO 8601; for numbers give time_unit") from None


def _sequence(value: Any) -> int:
    if value is None or value == "":
        return UNNUMBERED
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"sequence {value!r} is not a whole number") from None
    if not 0 <= number < 2**63:
        raise InputError(f"sequence {value!r} is not a whole number of 63 bits")
    return number


_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def of_kind(attribute: Attribute, value: Any) -> Value:
    """Convert text from a channel or a CSV line to the kind of an attribute.

    Other values are returned unchanged.
    """
    if not isinstance(value, str) or attribute.kind == "text":
        known: Value = value
        return known
    if not value.strip():
        return None
    try:
        match attribute.kind:
            case "float":
                return float(value)
            case "int":
                return int(value)
            case "bool":
                return _TRUTHS[value.strip().lower()]
    except (ValueError, KeyError):
        pass
    raise InputError(f"{attribute.name} {value!r} is not {attribute.kind}")


# --- payloads ---------------------------------------------------------------------------------------------


def _json_rows(route: Route, topic: Topic, payload: bytes) -> Iterator[dict[str, Any]]:
    try:
        decoded = _decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if route.items is not None:
        decoded = at(decoded, route.items)
        if not isinstance(decoded, list):
            raise InputError(f"'{route.items}' is no list")
    paths = _paths(route, topic)
    for item in decoded if isinstance(decoded, list) else [decoded]:
        if not isinstance(item, dict):
            raise InputError("a reading must be a JSON object")
        yield {name: at(item, path) for name, path in paths.items()}


def path_of(route: Route, name: str) -> str:
    """Return the path of an attribute in the payload, by default its own name."""
    return route.fields.get(name, name)


def _paths(route: Route, topic: Topic) -> dict[str, str]:
    return {name: path_of(route, name) for name in (*FIXED, *(a.name for a in topic.attributes))}


def at(value: Any, path: str) -> Any:
    """Return the value at a path of names and indices, or ``None`` if it does not exist.

    A name can contain dots; the longest existing name is used.

    >>> at({"a": [{"b": 7}]}, "a.0.b"), at({"a": 1}, "a.b"), at({"a": {"1.8.0": 7}}, "a.1.8.0")
    (7, None, 7)
    """
    if isinstance(value, dict):
        name, rest = path, ""
        while name not in value:
            name, dot, step = name.rpartition(".")
            if not dot:
                return None
            rest = f"{step}.{rest}" if rest else step
        return at(value[name], rest) if rest else value[name]
    step, _, rest = path.partition(".")
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return at(value[int(step)], rest) if rest else value[int(step)]
    return None


def _number_rows(route: Route, topic: Topic, payload: bytes) -> Iterator[dict[str, Any]]:
    numbers = _numbers(topic, route)
    if len(numbers) != 1:
        raise InputError(f"topic '{topic.name}' has {len(numbers)} attributes that the number could be")
    yield {numbers[0].name: _text(payload).strip()}


def _csv_rows(route: Route, _topic: Topic, payload: bytes) -> Iterator[dict[str, Any]]:
    for cells in _csv_cells(_text(payload)):
        if not cells:
            continue
        if len(cells) != len(route.columns):
            raise InputError(f"a line has {len(cells)} columns in place of {len(route.columns)}")
        yield {name: cell for name, cell in zip(route.columns, cells, strict=True) if name}


def _csv_cells(text: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(text.splitlines())
    except csv.Error as error:
        raise InputError(f"not CSV: {error}") from None


def _metric_rows(route: Route, topic: Topic, metrics: Metrics) -> Iterator[dict[str, Any]]:
    paths = _paths(route, topic)
    for row in metrics:
        known = {name: row[path] for name, path in paths.items() if path in row}
        if known.keys() - {"time"}:  # no metric of this topic has changed
            yield known


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text") from None


_ROWS: Mapping[Payload, Callable[[Route, Topic, Any], Iterable[dict[str, Any]]]] = {
    "json": _json_rows,
    "number": _number_rows,
    "csv": _csv_rows,
    "sparkplug": _metric_rows,
}
