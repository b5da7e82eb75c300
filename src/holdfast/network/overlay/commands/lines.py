"""Conversion of JSON lines to events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ....errors import InputError, did_you_mean
from ....model.event import Event, Value
from ....model.instant import Instant, from_datetime, parse_datetime
from ....model.topic import RESERVED, Attribute, Kind, Topic

_KINDS: Mapping[Kind, str] = {
    "float": "a number",
    "int": "a whole number of 64 bits",
    "text": "text",
    "bool": "true or false",
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode
AXES = ("x", "y", "z")
SHOWN = 20
"""The number of digits of an overlong number that an error message shows."""


@dataclass
class LineReader:
    """Reads lines as events of declared topics. Without declarations, it infers a topic from its first event.

    ``topic`` and ``source`` are defaults for lines without these fields.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    topic: str | None = None
    source: str | None = None
    sequence: int = 0

    def __post_init__(self) -> None:
        self._closed = bool(self.topics)
        if self.topic is None and len(self.topics) == 1:
            (self.topic,) = self.topics

    def event(self, line: str | bytes, now: Instant) -> Event:
        """Return the event of a line; its time defaults to ``now``. Raise an `InputError` for an invalid
        line.
        """
        try:
            fields = _decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InputError(f"not a JSON object: {error}") from None
        name, source = fields.get("topic", self.topic), fields.get("source", self.source)
        if not isinstance(name, str) or not name:
            raise InputError("it has no topic; add one, or give --topic")
        if not isinstance(source, str) or not source.strip():
            raise InputError("it has no source; add one, or give --source")
        topic = self._topic(name, fields)
        time = _time(fields["time"]) if "time" in fields else now
        values = {a.name: _value(a, fields.get(a.name)) for a in topic.attributes}
        return Event(name, time, source, values, self._sequence(fields), _location(fields), _place(fields))

    def _topic(self, name: str, fields: Mapping[str, Any]) -> Topic:
        """Return the declared topic with a name, or infer it from the fields of its first event."""
        if name not in self.topics:
            if self._closed:
                hint = did_you_mean(name, self.topics) or f"Declared: {', '.join(self.topics)}."
                raise InputError(f"topic '{name}' is not declared. {hint}")
            self.topics[name] = _infer_topic(name, fields)
        topic = self.topics[name]
        if unknown := fields.keys() - topic.by_name.keys() - RESERVED:
            missing = sorted(unknown)[0]
            hint = did_you_mean(missing, topic.by_name) or ""
            raise InputError(f"topic '{name}' has no attribute '{missing}'. {hint}".rstrip())
        return topic

    def _sequence(self, fields: Mapping[str, Any]) -> int:
        number = fields.get("sequence", self.sequence)
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise InputError(f"sequence {number!r} is not a whole number of 64 bits")
        self.sequence = max(self.sequence, number + 1)
        return number


def _infer_topic(name: str, fields: Mapping[str, Any]) -> Topic:
    """Return the topic of a first event. All numbers are floats."""
    kinds: dict[type, Kind] = {bool: "bool", int: "float", float: "float", str: "text"}
    found = [(key, value) for key, value in fields.items() if key not in RESERVED]
    return Topic(name, tuple(Attribute(key, kinds.get(type(value), "float")) for key, value in found))


def _time(text: Any) -> Instant:
    """Return the instant of a time in ISO 8601; raise an `InputError` for any other text."""
    if not isinstance(text, str):
        raise InputError(f"time {text!r} is not text in ISO 8601, such as 2007-09-13T13:35:00Z")
    try:
        time = parse_datetime(text)
        if time.tzinfo is None:
            day = text.strip()
            raise InputError(f"time {text!r} has no zone: write it like {day}Z or {day}+02:00")
        return from_datetime(time)
    except (OverflowError, ValueError):
        raise InputError(f"time {text!r} is not ISO 8601, such as 2007-09-13T13:35:00Z") from None


def _place(fields: Mapping[str, Any]) -> str | None:
    place = fields.get("place")
    if place is not None and not isinstance(place, str):
        raise InputError(f"place {place!r} is not text")
    return place


def _location(fields: Mapping[str, Any]) -> tuple[float, ...] | None:
    known = [_value(Attribute(axis, "float"), fields.get(axis)) for axis in AXES]
    present = [float(at) for at in known if at is not None]
    if known[: len(present)] != present:
        raise InputError("coordinates need x before y, and y before z")
    return tuple(present) or None


def _value(attribute: Attribute, value: Any) -> Value:
    """Return a value that fits the attribute's kind; raise an `InputError` otherwise."""
    match attribute.kind, value:
        case _, None:
            return None
        case ("text", str()) | ("bool", bool()):
            return value
        case _, bool() | str():
            pass
        case "float", int() | float():
            try:
                return float(value)
            except OverflowError:
                digits = str(value)
                why = f"{digits[:SHOWN]}… has {len(digits)} digits; a number has 308 at most"
                raise InputError(f"{attribute.name} {why}") from None
        case "int", int() if -(2**63) <= value < 2**63:
            return value
    raise InputError(f"{attribute.name} {value!r} is not {_KINDS[attribute.kind]}")
