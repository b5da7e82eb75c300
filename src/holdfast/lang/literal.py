"""Names, numbers, text and durations in the notation of the language. Reading and writing are inverse."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from ..kernels.functions import AGGREGATES
from ..model.instant import NEVER, SECOND, Duration
from ..model.unit import UNITS, Unit

RESERVED_WORDS = frozenset({
    "and", "or", "not", "in", "true", "false", "abs",
    "on", "where", "per", "scope", "within", "timely", "ordered", "late",
})  # fmt: skip
"""Words that cannot be names. Others (``state``, ``case``, ``from``…) are keywords only in certain places."""

STARTING_WORDS = frozenset({
    "accuracy", "all", "among", "any", "at", "backoff", "best", "beyond", "case", "closest",
    "correlate", "during", "each", "enter", "ever", "every", "exit", "expect", "filter", "for",
    "from", "gazetteer", "given", "here", "joined", "let", "levels", "of", "one", "over",
    "pairs", "region", "relate", "set", "slow", "starting", "state", "tell", "tick",
    "topic", "unknown", "until", "using", "whatever", "when", "while", *AGGREGATES,
})  # fmt: skip
"""Words that start or continue a statement: a name at the start of a statement cannot be one of them."""

QUERY_WORDS = STARTING_WORDS | {"last", "now"}
"""Words that cannot name a query, because some have a meaning of their own in a component."""

INT64 = range(-(2**63), 2**63)

_NAME = re.compile(r"[^\W\d]\w*")
_QUANTITY = re.compile(r"([\d.]+(?:[eE][+-]?\d+)?)[ \t]*(.*)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_UNPRINTABLE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]')


def is_name(text: str) -> bool:
    """Whether the text can be a name without quotes."""
    return _NAME.fullmatch(text) is not None and text not in RESERVED_WORDS


def read_number(text: str) -> int | float:
    """Parse a number. Digits alone are an int; a point or an exponent makes it a float."""
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = math.inf
    if value == math.inf:
        raise ValueError("the number is too large")
    return value


def read_exact(text: str) -> Fraction:
    """Parse a number exactly. Raises ``ValueError`` if no finite float is near it."""
    if not read_number(text):
        digits, *_ = re.split("[eE]", text)
        if any(map(int, re.findall(r"\d", digits))):
            raise ValueError("the number is too small")
        return Fraction(0)
    try:
        return Fraction(text)
    except ValueError:
        raise ValueError("the number has too many digits") from None


def finite(value: float | Fraction) -> float:
    """Return the nearest finite float. Raises ``ValueError`` if there is none."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest):
        raise ValueError("the number is too large")
    return nearest


def write_number(value: int | float) -> str:
    """Return the shortest text that is parsed as the same number, of the same type."""
    if not isinstance(value, int) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written: a number must be finite")
    return repr(value)


def split_quantity(text: str) -> tuple[str, str | None]:
    """Split ``25 °C`` into ``("25", "°C")``; the unit is ``None`` if there is none."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no quantity such as 25 °C")
    return found[1], found[2] or None


def read_text(quoted: str) -> str:
    """Parse a text in double quotes and resolve its escapes."""
    plain = _ESCAPE.sub(_unescape, quoted[1:-1])
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair does not stand for a character") from None


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code in _ESCAPES:
        return _ESCAPES[code]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    raise ValueError(f'unknown escape \\{code}; there are \\" \\\\ \\n \\t and \\uXXXX')


def write_text(value: str) -> str:
    """Return a text in quotes. Characters that are not printable are escaped."""
    names = {plain: f"\\{code}" for code, plain in _ESCAPES.items()}
    return '"' + _UNPRINTABLE.sub(lambda m: names.get(m[0], f"\\u{ord(m[0]):04x}"), value) + '"'


def read_duration(number: str, unit: str | None) -> Duration:
    """Convert a duration to whole microseconds. It needs a unit of time and must not be negative.

    >>> read_duration("1.5", "h")
    5400000000
    """
    if unit is None:
        raise ValueError(f"a duration needs a unit of time, such as {number} s")
    if UNITS[unit].dimension != UNITS["s"].dimension:
        raise ValueError(f"{unit} is not a unit of time; a duration is written as 30 s, 2 min, 500 ms or 1 h")
    length = read_exact(number) * UNITS[unit].factor * SECOND
    if length.denominator != 1:
        raise ValueError("a duration must be a whole number of microseconds")
    if length >= NEVER:
        raise ValueError("the duration is too long")
    if length < 0:
        raise ValueError("a duration cannot be negative")
    return int(length)


def describe_unit(unit: Unit | None) -> str:
    """Return the name of a unit for messages."""
    return "no unit" if unit is None else unit.name.removeprefix("Δ")
