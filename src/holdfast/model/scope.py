"""A scope of several values as people read it, so that no two are read alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR, QUOTE, ESCAPE = ",", '"', "\\"


def listed(values: Sequence[str]) -> str:
    """Values with commas between them; of several one that has a comma or a quote itself stands in quotes.

    >>> listed(["north", "3"]), listed(["north", "lab,3"]), listed(["lab,3"])
    ('north,3', 'north,"lab,3"', 'lab,3')
    """
    return values[0] if len(values) == 1 else SEPARATOR.join(map(quoted, values))


def unlisted(text: str, size: int) -> list[str] | None:
    """The values of which so many were listed; ``None`` if there are not so many.

    >>> unlisted('north,"lab,3"', 2), unlisted("lab,3", 1), unlisted("north", 2)
    (['north', 'lab,3'], ['lab,3'], None)
    """
    if size == 1:
        return [text]
    parts = _PART.findall(SEPARATOR + text)
    found = [_plain(part) for part in parts]
    return found if len(found) == size and listed(found) == text else None


_PART = re.compile(r',("(?:[^"\\]|\\.)*"|[^,"]*)', re.DOTALL)


def _plain(part: str) -> str:
    return _ESCAPED.sub(r"\1", part[1:-1]) if part.startswith(QUOTE) else part


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def quoted(value: str) -> str:
    """A value as it stands among others."""
    if SEPARATOR not in value and QUOTE not in value:
        return value
    escaped = value.replace(ESCAPE, ESCAPE + ESCAPE).replace(QUOTE, ESCAPE + QUOTE)
    return f"{QUOTE}{escaped}{QUOTE}"


def once_listed(scope: str | None) -> str | None:
    """A scope of several values as it was shown before they were quoted.

    >>> once_listed('north,"lab,3"'), once_listed("north,3"), once_listed(None)
    ('north,lab,3', 'north,3', None)
    """
    if scope is None or QUOTE not in scope:
        return scope
    found, at, inside = list[str](), 0, False
    while at < len(scope):
        sign = scope[at]
        if inside and sign == ESCAPE:
            at += 1
            found.append(scope[at : at + 1])
        elif sign == QUOTE:
            inside = not inside
        else:
            found.append(sign)
        at += 1
    return "".join(found)
