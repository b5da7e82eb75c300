"""Scope keys as text: the same text for the same key in every compiler.

Values of one key are joined by a unit separator, a key is joined to the key around it by a record
separator; a separator inside a value is escaped, so different keys never share a text.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.scope import listed

_UNIT, _RECORD, _ESCAPE = "\x1f", "\x1e", "\x1d"
_ESCAPES = str.maketrans({c: f"{_ESCAPE}{i}" for i, c in enumerate((_UNIT, _RECORD, _ESCAPE))})
_ORIGINAL = {str(i): c for i, c in enumerate((_UNIT, _RECORD, _ESCAPE))}


def key_text(value: object) -> str | None:
    """The text of a key's value, ``None`` where it is missing.

    >>> key_text("room-12"), key_text(3), key_text(2.5), key_text(True), key_text(float("nan"))
    ('room-12', '3', '2.5', 'true', None)
    """
    match value:
        case str():
            return value
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value + 0.0) if value == value else None
        case _:
            return str(value)


def joined(outer: str | None, parts: Sequence[str | None]) -> str:
    """The key of several values, inside an outer key if there is one."""
    inner = _UNIT.join(_escaped(part) for part in parts if part is not None)
    return inner if outer is None else f"{outer}{_RECORD}{inner}"


def _escaped(part: str) -> str:
    if _UNIT in part or _RECORD in part or _ESCAPE in part:
        return part.translate(_ESCAPES)
    return part


def values_of(key: str) -> list[str]:
    """The values of a key.

    >>> values_of(joined(None, ["north", "3"]))
    ['north', '3']
    """
    return [_original(part) if _ESCAPE in part else part for part in key.split(_UNIT)]


def _original(part: str) -> str:
    head, *rest = part.split(_ESCAPE)
    return head + "".join(_ORIGINAL[more[0]] + more[1:] for more in rest)


def shown(key: str) -> str:
    """The key as people read it: values with a comma between them; of several one that has a comma itself
    stands in quotes.

    >>> shown(joined(None, ["north", "3"])), shown(joined(None, ["north", "lab,3"]))
    ('north,3', 'north,"lab,3"')
    """
    if _UNIT not in key and _ESCAPE not in key:
        return key
    return listed(values_of(key))
