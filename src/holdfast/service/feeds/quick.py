"""A fast path for common JSON messages: one object whose values have the declared types.

Any other message is left to the general ``mapping.read``, which also explains errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ...errors import InputError
from ...model.event import UNNUMBERED, Event, Value
from ...model.instant import Instant
from ...model.topic import Topic
from .arrival import check_arrival
from .mapping import Found, Route, at, of_kind, path_of, time_of

_TYPES: Mapping[str, type] = {"float": float, "int": int, "text": str, "bool": bool}
_AXES = ("x", "y", "z")
_WHOLE = range(-(2**63), 2**63)
_decode = msgspec.json.Decoder().decode


class QuickReader:
    """A cache of fast readers of JSON messages. A reader is created at the first message on its channel."""

    def __init__(self, find: Callable[[str], Sequence[Found]]) -> None:
        self._find = find
        self._known: dict[str, _ChannelReader] = {}

    def read(
        self, channel: str, topics: Mapping[str, Topic], payload: bytes, now: Instant
    ) -> tuple[Event, bool] | None:
        """Return the event of a message, and whether its time was corrected.

        Returns ``None`` if the message needs the general reader.
        """
        reader = self._known.get(channel)
        if reader is None or topics.get(reader.topic.name) is not reader.topic:
            if (reader := self._make_reader(channel, topics)) is None:
                return None
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[channel] = reader
        return reader.read(payload, now)

    def _make_reader(self, channel: str, topics: Mapping[str, Topic]) -> _ChannelReader | None:
        if len(parts := self._find(channel)) != 1:
            return None
        route, captured = found = parts[0]
        topic = topics.get(route.topic or captured.get("topic", ""))
        if topic is None or route.payload != "json" or route.items is not None:
            return None
        if not {"time", "sequence", *_AXES}.isdisjoint(captured) or not all(
            map(str.strip, captured.values())
        ):
            return None
        try:
            return _reader(found, topic)
        except InputError:  # the channel contains an invalid value
            return None


def _reader(found: Found, topic: Topic) -> _ChannelReader:
    route, captured = found
    fixed = {
        attribute.name: of_kind(attribute, captured.get(attribute.name)) for attribute in topic.attributes
    }
    wanted = tuple(
        (attribute.name, path_of(route, attribute.name), _TYPES[attribute.kind])
        for attribute in topic.attributes
        if attribute.name not in captured
    )
    paths = [path_of(route, axis).split(".") for axis in _AXES]
    axes = frozenset(".".join(steps[: i + 1]) for steps in paths for i in range(len(steps)))
    return _ChannelReader(topic, route, captured.get("source"), captured.get("place"), fixed, wanted, axes)


@dataclass(frozen=True, slots=True)
class _ChannelReader:
    """The properties of a channel's messages that are known in advance.

    These are the topic, the values from the channel, and the path and type of each attribute.
    """

    topic: Topic
    route: Route
    source: str | None
    place: str | None
    fixed: Mapping[str, Value]
    """All attributes in their order, with the values from the channel."""
    wanted: tuple[tuple[str, str, type], ...]
    axes: frozenset[str]
    """Keys of the payload that could contain a location."""

    def read(self, payload: bytes, now: Instant) -> tuple[Event, bool] | None:
        """Return the event of a message, and whether its time was corrected.

        Returns ``None`` if the message needs the general reader.
        """
        try:
            row = _decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if type(row) is not dict or (values := self._values(row)) is None:
            return None
        route = self.route
        source = self.source or _get(row, path_of(route, "source"))
        place = self.place or _get(row, path_of(route, "place"))
        sequence = _get(row, path_of(route, "sequence"))
        if sequence is None:
            sequence = UNNUMBERED
        if not _are_right(source, place, sequence) or not self.axes.isdisjoint(row):
            return None
        time = time_of(route, _get(row, path_of(route, "time")), now)
        return check_arrival(Event(self.topic.name, time, source, values, sequence, None, place), now)

    def _values(self, row: dict[str, Any]) -> dict[str, Value] | None:
        """Return the attributes of a message, or ``None`` if a value has another type than declared."""
        values = dict(self.fixed)
        for name, path, kind in self.wanted:
            value = _get(row, path)
            if type(value) is not kind and value is not None:
                if kind is not float or type(value) is not int:
                    return None
                value = float(value) if value in _WHOLE else None
                if value is None:
                    return None
            elif kind is int and value is not None and value not in _WHOLE:
                return None
            values[name] = value
        return values


def _get(row: dict[str, Any], path: str) -> Any:
    return at(row, path) if "." in path else row.get(path)


def _are_right(source: Any, place: Any, sequence: Any) -> bool:
    if type(source) is not str or not source.strip():
        return False
    if place is not None and type(place) is not str:
        return False
    return type(sequence) is int and UNNUMBERED <= sequence < 2**63
