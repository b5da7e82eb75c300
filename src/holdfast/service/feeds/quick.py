"""Most messages are one JSON object with values of the declared kinds: what they say, without ado.

Whatever is not as expected is left to the careful way (``mapping.read``), which says what is wrong.
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
from .arrival import arrived
from .mapping import Found, Route, at, of_kind, path_of, time_of

_TYPES: Mapping[str, type] = {"float": float, "int": int, "text": str, "bool": bool}
_AXES = ("x", "y", "z")
_WHOLE = range(-(2**63), 2**63)
_decode = msgspec.json.Decoder().decode


class Quick:
    """Readers of channels, each made when its first message comes."""

    def __init__(self, find: Callable[[str], Sequence[Found]]) -> None:
        self._find = find
        self._known: dict[str, _Reader] = {}

    def read(
        self, channel: str, topics: Mapping[str, Topic], payload: bytes, now: Instant
    ) -> tuple[Event, bool] | None:
        """The event of a message; nothing if it must be read with care."""
        reader = self._known.get(channel)
        if reader is None or topics.get(reader.topic.name) is not reader.topic:
            if (reader := self._made(channel, topics)) is None:
                return None
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[channel] = reader
        return reader.read(payload, now)

    def _made(self, channel: str, topics: Mapping[str, Topic]) -> _Reader | None:
        if len(some := self._find(channel)) != 1:
            return None
        route, said = found = some[0]
        topic = topics.get(route.topic or said.get("topic", ""))
        if topic is None or route.payload != "json" or route.items is not None:
            return None
        if not {"time", "sequence", *_AXES}.isdisjoint(said) or not all(map(str.strip, said.values())):
            return None
        try:
            return _reader(found, topic)
        except InputError:  # the channel says something that cannot be
            return None


def _reader(found: Found, topic: Topic) -> _Reader:
    route, said = found
    fixed = {one.name: of_kind(one, said.get(one.name)) for one in topic.attributes}
    wanted = tuple(
        (one.name, path_of(route, one.name), _TYPES[one.kind])
        for one in topic.attributes
        if one.name not in said
    )
    paths = [path_of(route, axis).split(".") for axis in _AXES]
    axes = frozenset(".".join(steps[: i + 1]) for steps in paths for i in range(len(steps)))
    return _Reader(topic, route, said.get("source"), said.get("place"), fixed, wanted, axes)


@dataclass(frozen=True, slots=True)
class _Reader:
    """What is known of a channel's messages before they come: its topic, what the channel itself says, and
    where each attribute stands, with which type."""

    topic: Topic
    route: Route
    source: str | None
    place: str | None
    fixed: Mapping[str, Value]
    """All attributes in their order, with those that the channel says."""
    wanted: tuple[tuple[str, str, type], ...]
    axes: frozenset[str]
    """Where a location would begin."""

    def read(self, payload: bytes, now: Instant) -> tuple[Event, bool] | None:
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
        return arrived(Event(self.topic.name, time, source, values, sequence, None, place), now)

    def _values(self, row: dict[str, Any]) -> dict[str, Value] | None:
        """The attributes; nothing if one is of another kind."""
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
