"""Scope keys as text, equal in every back end.

Values of one key are joined by a unit separator. A key is joined to the key around it by a record separator.
A separator inside a value is escaped, so different keys never share a text.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.scope import join_values

_UNIT, _RECORD, _ESCAPE = "\x1f", "\x1e", "\x1d"
_ESCAPES = str.maketrans({c: f"{_ESCAPE}{i}" for i, c in enumerate((_UNIT, _RECORD, _ESCAPE))})
_ORIGINAL = {str(i): c for i, c in enumerate((_UNIT, _RECORD, _ESCAPE))}


def key_text(value: object) -> str | None:
    """Return the text of one value of a key, or ``None`` if it is missing.

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


def join_key(outer: str | None, parts: Sequence[str | None]) -> str:
    """Return the key of some values, inside an outer key if there is one."""
    inner = _UNIT.join(_escape(part) for part in parts if part is not None)
    return inner if outer is None else f"{outer}{_RECORD}{inner}"


def _escape(part: str) -> str:
    if _UNIT in part or _RECORD in part or _ESCAPE in part:
        return part.translate(_ESCAPES)
    return part


def values_of(key: str) -> list[str]:
    """Return the values of a key.

    >>> values_of(join_key(None, ["north", "3"]))
    ['north', '3']
    """
    return [_original(part) if _ESCAPE in part else part for part in key.split(_UNIT)]


def _original(part: str) -> str:
    head, *rest = part.split(_ESCAPE)
    return head + "".join(_ORIGINAL[more[0]] + more[1:] for more in rest)


def readable_key(key: str) -> str:
    """Return the label of a key: its values separated by commas.

    Of several values, a value that contains a comma is quoted.

    >>> readable_key(join_key(None, ["north", "3"])), readable_key(join_key(None, ["north", "lab,3"]))
    ('north,3', 'north,"lab,3"')
    """
    if _UNIT not in key and _ESCAPE not in key:
        return key
    return join_values(values_of(key))
