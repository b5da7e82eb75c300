"""Sparkplug B: metrics of edge nodes and their devices, by the names that their births told.

No kept library reads it beside Paho 2, and little of Protocol Buffers is needed: four ways to write a
field, and a dozen fields.  What a host application must know of nodes is here as well: a metric may come
with a number in place of its name, which only the birth explains; who missed that asks for it again.
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
"""The bits of the kinds of numbers that may be below zero."""
_REBIRTH = b"\x12\x1a\x0a\x14Node Control/Rebirth\x20\x0b\x70\x01"
"""A command with one metric, which is true."""

Field = tuple[int, Any]


class Metric(NamedTuple):
    """One value; ``kind`` is the number of its type, where the message says it."""

    name: str | None
    alias: int | None
    at: int | None
    """Milliseconds since 1970."""
    kind: int | None
    value: Value


# --- the payload ---


def metrics(payload: bytes) -> list[Metric]:
    """The metrics of a payload, each with the payload's time if it has none of its own."""
    try:
        found = list(_fields(payload))
        at = next((value for number, value in found if number == _TIMESTAMP), None)
        return [_metric(value, at) for number, value in found if number == _METRICS]
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"not a Sparkplug B payload: {error}") from None


def _metric(raw: bytes, at: int | None) -> Metric:
    said = dict(_fields(raw))
    name = said.get(_NAME)
    return Metric(
        None if name is None else name.decode(),
        said.get(_ALIAS),
        said.get(_AT, at),
        said.get(_KIND),
        _value(said),
    )


def _value(said: Mapping[int, Any]) -> Value:
    """What the metric says; tables, templates and bytes say nothing here."""
    if said.get(_IS_NULL):
        return None
    number = next(
        (number for number in (_INT, _LONG, _FLOAT, _DOUBLE, _BOOLEAN, _STRING) if number in said), 0
    )
    match number:
        case 10 | 11:
            return int(said[number])
        case 12:
            return float(struct.unpack("<f", said[number])[0])
        case 13:
            return float(struct.unpack("<d", said[number])[0])
        case 14:
            return bool(said[number])
        case 15:
            return str(said[number].decode())
    return None


def _fields(raw: bytes) -> Iterator[Field]:
    """The fields of a message: whole numbers, or bytes."""
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


class _Node(NamedTuple):
    """What the births of a node and of its devices said: names by alias, kinds by device and name."""

    aliases: dict[int, str]
    kinds: dict[tuple[str, str], int]


class Nodes:
    """What is known of edge nodes; ``ask`` publishes a command to one whose birth was not heard."""

    def __init__(self, ask: Callable[[str, bytes], Any]) -> None:
        self._ask = ask
        self._nodes: dict[tuple[str, str], _Node] = {}
        self._asked: set[tuple[str, str]] = set()

    def rows(self, channel: str, payload: bytes) -> list[dict[str, Value]]:
        """What a message says: metrics by name for each time, in milliseconds, under ``time``."""
        match channel.split("/"):
            case [_, group, kind, edge, *rest] if kind in (*_BIRTHS, *_DATA):
                return self._rows((group, edge), kind, "/".join(rest), metrics(payload))
        return []  # deaths, commands and states bring no readings

    def _rows(
        self, key: tuple[str, str], kind: str, device: str, found: list[Metric]
    ) -> list[dict[str, Value]]:
        if kind == "NBIRTH" or key not in self._nodes:
            self._nodes[key] = _Node({}, {})
        node = self._nodes[key]
        if kind in _BIRTHS:
            self._asked.discard(key)
            _born(node, device, found)
        rows: dict[int | None, dict[str, Value]] = {}
        for one in found:
            name = one.name or node.aliases.get(-1 if one.alias is None else one.alias)
            if name is None:
                self._ask_for_birth(key)
                raise InputError(
                    f"the metric with the number {one.alias} has no name: its birth was missed, and asked for"
                )
            bits = _SIGNED.get(one.kind or node.kinds.get((device, name), 0))
            row = rows.setdefault(one.at, {} if one.at is None else {"time": one.at})
            row[name] = _signed(one.value, bits)
        return list(rows.values())

    def _ask_for_birth(self, key: tuple[str, str]) -> None:
        if key not in self._asked:
            self._asked.add(key)
            self._ask(f"spBv1.0/{key[0]}/NCMD/{key[1]}", _REBIRTH)


def _born(node: _Node, device: str, found: list[Metric]) -> None:
    for one in found:
        if one.name is not None and one.alias is not None:
            node.aliases[one.alias] = one.name
        if one.name is not None and one.kind is not None:
            node.kinds[device, one.name] = one.kind


def _signed(value: Value, bits: int | None) -> Value:
    """A number that was written as if it were positive.

    >>> _signed(253, 8), _signed(253, None)
    (-3, 253)
    """
    if bits is None or type(value) is not int:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
