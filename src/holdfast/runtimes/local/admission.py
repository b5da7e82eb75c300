"""Checks of events against their topics. An invalid event raises an error with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np

from ...errors import UsageError, did_you_mean
from ...model.event import UNNUMBERED, Event, Value
from ...model.instant import EARLIEST, LATEST
from ...model.topic import Attribute, Topic

INSTANT = "whole microseconds since 1970 (holdfast.instant makes them of a datetime or of text)"


def with_sequence(topic: Topic, event: Event, sequence: int) -> Event:
    """Return an event with attributes in their declared types and a sequence number.

    ``sequence`` is used if the event has none. Raises ``UsageError`` for an invalid time, source, place or
    value.
    """
    if type(event.time) is int and not EARLIEST <= event.time <= LATEST:
        raise UsageError(f"an event's time must lie in the years 1 to 9999; {event.time} does not")
    if type(event.time) is not int:
        raise UsageError(f"an event's time must be {INSTANT}, not {event.time!r:.60}")
    if type(event.source) is not str or not event.source.strip():
        raise UsageError(f"an event's source must be text, not {event.source!r}")
    if type(event.sequence) is not int or not -(2**63) <= event.sequence < 2**63:
        raise UsageError(f"an event's sequence must be a 64-bit int, not {event.sequence!r}")
    if event.place is not None and type(event.place) is not str:
        raise UsageError(f"an event's place must be text, not {event.place!r:.60}")
    if not isinstance(event.attributes, Mapping):
        raise UsageError(f"an event's attributes must be a dict, not {event.attributes!r:.60}")
    location = None if event.location is None else _to_location(event.location)
    attributes = conform_attributes(topic, event.attributes)
    has_number = event.sequence != UNNUMBERED
    if has_number and attributes is event.attributes and location is None:
        return event
    return Event(
        event.topic,
        event.time,
        event.source,
        attributes,
        event.sequence if has_number else sequence,
        location,
        event.place,
    )


_ADMITTED_AS_IT_IS: dict[str, type | None] = {"float": float, "text": str, "bool": bool, "int": None}


def conform_attributes(topic: Topic, attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the attributes in their declared types and order. Missing attributes are ``None``."""
    declared = topic.attributes
    if len(attributes) == len(declared):
        for a in declared:
            if type(attributes.get(a.name)) is not _ADMITTED_AS_IT_IS[a.kind]:
                break
        else:
            return attributes
    for name in attributes:
        if name not in topic.by_name:
            has = ", ".join(a.name for a in declared)
            hint = did_you_mean(name, topic.by_name) or ""
            raise UsageError(f"topic '{topic.name}' has no '{name}'; it has {has}. {hint}".rstrip())
    return {a.name: _of_kind(topic, a, attributes.get(a.name)) for a in declared}


def _to_location(location: Sequence[float]) -> tuple[float, ...] | None:
    """Return the coordinates as floats, up to the first missing one.

    Returns ``None`` if the first coordinate is missing.
    """
    try:
        known = tuple(takewhile(lambda c: c == c, map(float, location)))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"an event's location must be one to three numbers, not {location!r}") from None
    if len(location) > 3:
        raise UsageError(f"an event's location must be one to three numbers, not {location!r}")
    return known or None


def _of_kind(topic: Topic, attribute: Attribute, value: Value) -> Value:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    match attribute.kind:
        case _ if value is None:
            return None
        case "text" if isinstance(value, str):
            return value
        case "bool" if isinstance(value, (bool, np.bool_)):
            return bool(value)
        case "float" if is_number and (not isinstance(value, int) or abs(value) < 2**1023):
            return float(value)
        case "int" if is_number and isinstance(value, (int, np.integer)) and -(2**63) <= value < 2**63:
            return int(value)
    raise UsageError(f"'{attribute.name}' of topic '{topic.name}' must be {attribute.kind}, not {value!r}")
