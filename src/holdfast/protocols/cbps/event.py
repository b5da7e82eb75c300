"""Events of the model as notifications, and back.

A notification of an event has the fields ``topic``, ``time`` (whole microseconds), ``source`` and
``sequence``, as far as they are known ``place``, ``x``, ``y`` and ``z``, and the attributes; what is
missing is left out.
"""

from __future__ import annotations

from itertools import takewhile

from ...model.event import UNNUMBERED, Event
from ...model.instant import EARLIEST, LATEST
from ...model.topic import Kind, Topic
from .content import Constraint, Content, Filter
from .ranges import LONG, Type, Value, type_of

AXES = ("x", "y", "z")
TYPE: dict[Kind, Type] = {"float": "double", "int": "long", "text": "text", "bool": "bool"}


def to_content(event: Event) -> dict[str, Value]:
    """The notification of an event."""
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
    """The event of a notification; nothing if it is none of that topic.

    An attribute of another kind than the topic declares is missing.
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


def whereabouts(event: Event) -> dict[str, Value]:
    """Where an event happened, as fields that an advertisement may pin."""
    there: dict[str, Value] = dict(zip(AXES, event.location or (), strict=False))
    return there if event.place is None else {"place": event.place, **there}


def advertised(topic: Topic, **pinned: Value) -> Filter:
    """What a publisher of a topic promises.  What it pins, such as its source, helps to place filters."""
    free: dict[str, Type] = {"time": "long", "source": "text", "sequence": "long"}
    free |= {attribute.name: TYPE[attribute.kind] for attribute in topic.attributes}
    return Filter(
        (
            Constraint("topic", "text", "=", topic.name),
            *(Constraint(name, type_of(value), "=", value) for name, value in pinned.items()),
            *(Constraint(name, type_, "any") for name, type_ in free.items() if name not in pinned),
        )
    )


def whole_number(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in LONG else None


def _of_kind(kind: Kind, value: Value | None) -> Value | None:
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
    """The coordinates as far as there is no gap."""
    known = takewhile(lambda at: at is not None, (_of_kind("float", content.get(axis)) for axis in AXES))
    return tuple(known) or None  # type: ignore[arg-type]
