"""Conversion between events of the model and notifications.

The notification of an event has the fields ``topic``, ``time`` (in µs), ``source`` and ``sequence``, and all
attributes. If the location is known, it also has ``place``, ``x``, ``y`` and ``z``. Missing values are
omitted.
"""

from __future__ import annotations

from itertools import takewhile

from ....model.event import UNNUMBERED, Event
from ....model.instant import EARLIEST, LATEST
from ....model.topic import Kind, Topic
from .content import Constraint, Content, Filter
from .ranges import LONG, Type, Value, type_of

AXES = ("x", "y", "z")
TYPE: dict[Kind, Type] = {"float": "double", "int": "long", "text": "text", "bool": "bool"}


def to_content(event: Event) -> dict[str, Value]:
    """Return the content of an event's notification."""
    content: dict[str, Value] = {
        "topic": event.topic,
        "time": event.time,
        "source": event.source,
        "sequence": event.sequence,
    }
    if event.place is not None:
        content["place"] = event.place
    content.update(zip(AXES, event.location or (), strict=False))
    content.update({n: v for n, v in event.attributes.items() if v is not None and v == v})
    return content


def to_event(topic: Topic, content: Content) -> Event | None:
    """Return the event of a notification; ``None`` if it is not an event of the topic.

    An attribute is missing if its type differs from the declared type.
    """
    time, sequence = whole_number(content.get("time")), whole_number(content.get("sequence", UNNUMBERED))
    source, place = content.get("source"), content.get("place")
    if content.get("topic") != topic.name or sequence is None or not isinstance(source, str):
        return None
    if time is None or not EARLIEST <= time <= LATEST:
        return None
    attributes = {a.name: _of_kind(a.kind, content.get(a.name)) for a in topic.attributes}
    where = place if isinstance(place, str) else None
    return Event(topic.name, time, source, attributes, sequence, location_of(content), where)


def location_fields(event: Event) -> dict[str, Value]:
    """Return the location of an event as fields of a notification. An advertisement may pin these fields."""
    fields: dict[str, Value] = dict(zip(AXES, event.location or (), strict=False))
    return fields if event.place is None else {"place": event.place, **fields}


def advertisement_for(topic: Topic, **pinned: Value) -> Filter:
    """Return the filter that a publisher of a topic advertises. ``pinned`` values help brokers to place state
    filters.
    """
    types: dict[str, Type] = {"time": "long", "source": "text", "sequence": "long"}
    types |= {attribute.name: TYPE[attribute.kind] for attribute in topic.attributes}
    return Filter(
        (
            Constraint("topic", "text", "=", topic.name),
            *(Constraint(name, type_of(value), "=", value) for name, value in pinned.items()),
            *(Constraint(name, type_, "any") for name, type_ in types.items() if name not in pinned),
        )
    )


def whole_number(value: Value | None) -> int | None:
    """Return the value if it is a 64-bit integer; otherwise ``None``."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value in LONG else None


def _of_kind(kind: Kind, value: Value | None) -> Value | None:
    """Return a value that fits an attribute's kind; otherwise ``None``."""
    match kind, value:
        case ("text", str()) | ("bool", bool()):
            return value
        case _, bool() | str() | None:
            return None
        case "float", int() | float():
            return float(value)
        case "int", int():
            return value if value in LONG else None
    return None


def location_of(content: Content) -> tuple[float, ...] | None:
    """Return the coordinates before the first missing axis; ``None`` if there are none."""
    values = (_of_kind("float", content.get(axis)) for axis in AXES)
    return tuple(takewhile(lambda at: at is not None, values)) or None  # type: ignore[arg-type]
