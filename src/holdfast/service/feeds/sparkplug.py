"""Decoding of Sparkplug B: metrics of edge nodes and their devices.

A data message can refer to a metric by a number, which only the node's birth message explains. `Nodes` stores
the birth messages and requests one that was missed. No maintained library works with paho 2. The format needs
only four wire types and a dozen fields of Protocol Buffers, which are decoded here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import InputError
from ...model.event import Value

_BIRTHS = ("NBIRTH", "DBIRTH")
_DATA = ("NDATA", "DDATA")
_TIMESTAMP, _METRICS = 1, 2  # fields of a payload
_NAME, _ALIAS, _AT, _KIND, _IS_NULL = 1, 2, 3, 4, 7  # fields of a metric
_INT, _LONG, _FLOAT, _DOUBLE, _BOOLEAN, _STRING = 10, 11, 12, 13, 14, 15  # the fields that hold its value
_SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}
"""The bits of the integer types with a sign."""
_REBIRTH = b"\x12\x1a\x0a\x14Node Control/Rebirth\x20\x0b\x70\x01"
"""A command with the metric ``Node Control/Rebirth`` set to true."""

Field = tuple[int, Any]


class Metric(NamedTuple):
    """One metric with its value. ``kind`` is the number of its type, or ``None`` if the message omits it."""

    name: str | None
    alias: int | None
    at: int | None
    """Milliseconds since 1970."""
    kind: int | None
    value: Value


# --- the payload ---


def metrics(payload: bytes) -> list[Metric]:
    """Decode the metrics of a payload. A metric without a time has the time of the payload."""
    try:
        found = list(_fields(payload))
        at = next((value for number, value in found if number == _TIMESTAMP), None)
        return [_metric(value, at) for number, value in found if number == _METRICS]
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"not a Sparkplug B payload: {error}") from None


def _metric(raw: bytes, at: int | None) -> Metric:
    fields = dict(_fields(raw))
    name = fields.get(_NAME)
    return Metric(
        None if name is None else name.decode(),
        fields.get(_ALIAS),
        fields.get(_AT, at),
        fields.get(_KIND),
        _value(fields),
    )


def _value(fields: Mapping[int, Any]) -> Value:
    """Return the value of a metric, or ``None`` for null.

    Tables, templates and bytes are not supported and become ``None``, too.
    """
    if fields.get(_IS_NULL):
        return None
    number = next(
        (number for number in (_INT, _LONG, _FLOAT, _DOUBLE, _BOOLEAN, _STRING) if number in fields), 0
    )
    match number:
        case 10 | 11:
            return int(fields[number])
        case 12:
            return float(struct.unpack("<f", fields[number])[0])
        case 13:
            return float(struct.unpack("<d", fields[number])[0])
        case 14:
            return bool(fields[number])
        case 15:
            return str(fields[number].decode())
    return None


def _fields(raw: bytes) -> Iterator[Field]:
    """Yield the fields of a Protocol Buffers message as numbers with their values, integers or bytes."""
    at = 0
    while at < len(raw):
        key, at = _whole(raw, at)
        match key & 7:
            case 0:
                value, at = _whole(raw, at)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, at = _whole(raw, at)
            case 5:
                size = 4
            case other:
                raise ValueError(f"a field of kind {other}")
        if at + size > len(raw):
            raise ValueError("it ends too early")
        yield key >> 3, raw[at : at + size]
        at += size


def _whole(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(raw):
            raise ValueError("it ends too early")
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
        byte = raw[at]
        number, at, shift = number | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return number & (1 << 64) - 1, at


# --- nodes ---


class _EdgeNode(NamedTuple):
    """Facts from the birth messages of an edge node and its devices.

    ``aliases`` has names by alias, ``kinds`` has types by device and name.
    """

    aliases: dict[int, str]
    kinds: dict[tuple[str, str], int]


class Nodes:
    """The known edge nodes.

    ``ask`` is called to request the birth message of a node whose birth was missed.
    """

    def __init__(self, ask: Callable[[str, bytes], Any]) -> None:
        self._ask = ask
        self._nodes: dict[tuple[str, str], _EdgeNode] = {}
        self._asked: set[tuple[str, str]] = set()

    def rows(self, channel: str, payload: bytes) -> list[dict[str, Value]]:
        """Return a message as rows of metrics by name, one row for each time; ``time`` is in milliseconds."""
        match channel.split("/"):
            case [_, group, kind, edge, *rest] if kind in (*_BIRTHS, *_DATA):
                return self._rows((group, edge), kind, "/".join(rest), metrics(payload))
        return []  # death, command and state messages contain no readings

    def _rows(
        self, key: tuple[str, str], kind: str, device: str, found: list[Metric]
    ) -> list[dict[str, Value]]:
        if kind == "NBIRTH" or key not in self._nodes:
            self._nodes[key] = _EdgeNode({}, {})
        node = self._nodes[key]
        if kind in _BIRTHS:
            self._asked.discard(key)
            _note_birth(node, device, found)
        rows: dict[int | None, dict[str, Value]] = {}
        for metric in found:
            name = metric.name or node.aliases.get(-1 if metric.alias is None else metric.alias)
            if name is None:
                self._ask_for_birth(key)
                raise InputError(
                    f"metric number {metric.alias} has no name: its birth message was missed and is requested"
                )
            bits = _SIGNED.get(metric.kind or node.kinds.get((device, name), 0))
            row = rows.setdefault(metric.at, {} if metric.at is None else {"time": metric.at})
            row[name] = _to_signed(metric.value, bits)
        return list(rows.values())

    def _ask_for_birth(self, key: tuple[str, str]) -> None:
        if key not in self._asked:
            self._asked.add(key)
            self._ask(f"spBv1.0/{key[0]}/NCMD/{key[1]}", _REBIRTH)


def _note_birth(node: _EdgeNode, device: str, found: list[Metric]) -> None:
    for metric in found:
        if metric.name is not None and metric.alias is not None:
            node.aliases[metric.alias] = metric.name
        if metric.name is not None and metric.kind is not None:
            node.kinds[device, metric.name] = metric.kind


def _to_signed(value: Value, bits: int | None) -> Value:
    """Convert an integer that was encoded without its sign.

    >>> _to_signed(253, 8), _to_signed(253, None)
    (-3, 253)
    """
    if bits is None or type(value) is not int:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
