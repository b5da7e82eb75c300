"""The thresholds at which a condition starts and ends, for charts of readings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from ...lang.ops import Compare, Name, Number

_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


class ThresholdLine(NamedTuple):
    """A comparison with a number, ``attribute sign value``, in a condition's predicate.

    ``part`` is ``enter`` for the predicate that starts the condition and ``exit`` for the one that ends it.
    """

    part: str
    attribute: str
    sign: str
    value: float


def threshold_lines(condition: Any) -> list[ThresholdLine]:
    """Return the thresholds of a condition.

    They are the comparisons of an attribute with a number in its enter and exit predicates. The function
    works for conditions of any kind, also those without such predicates.
    """
    found = [
        ThresholdLine(part, *compared)
        for part in ("enter", "exit")
        for one in _nodes(getattr(condition, part, None))
        if (compared := _threshold(one)) is not None
    ]
    return list(dict.fromkeys(found))


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    if is_dataclass(value):
        for one in fields(value):
            yield from _nodes(getattr(value, one.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)


def _threshold(node: Any) -> tuple[str, str, float] | None:
    match node:
        case Compare(sign, Name(name), Number(value)):
            return name, sign, float(value)
        case Compare(sign, Number(value), Name(name)):
            return name, _MIRRORED.get(sign, sign), float(value)
    return None
