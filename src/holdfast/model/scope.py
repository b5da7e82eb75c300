"""The text of a scope with several values. Different values have different texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR, QUOTE, ESCAPE = ",", '"', "\\"


def join_values(values: Sequence[str]) -> str:
    """Return values joined with commas. Of several values, one that contains a comma or a quote is quoted.

    >>> join_values(["north", "3"]), join_values(["north", "lab,3"]), join_values(["lab,3"])
    ('north,3', 'north,"lab,3"', 'lab,3')
    """
    return values[0] if len(values) == 1 else SEPARATOR.join(map(quote_value, values))


def split_values(text: str, size: int) -> list[str] | None:
    """Split a text into ``size`` values, or return ``None`` if it does not have that many.

    >>> split_values('north,"lab,3"', 2), split_values("lab,3", 1), split_values("north", 2)
    (['north', 'lab,3'], ['lab,3'], None)
    """
    if size == 1:
        return [text]
    parts = _PART.findall(SEPARATOR + text)
    found = [_plain(part) for part in parts]
    return found if len(found) == size and join_values(found) == text else None


_PART = re.compile(r',("(?:[^"\\]|\\.)*"|[^,"]*)', re.DOTALL)


def _plain(part: str) -> str:
    return _ESCAPED.sub(r"\1", part[1:-1]) if part.startswith(QUOTE) else part


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def quote_value(value: str) -> str:
    """Return a value, in quotes if it needs them in a list."""
    if SEPARATOR not in value and QUOTE not in value:
        return value
    escaped = value.replace(ESCAPE, ESCAPE + ESCAPE).replace(QUOTE, ESCAPE + QUOTE)
    return f"{QUOTE}{escaped}{QUOTE}"
