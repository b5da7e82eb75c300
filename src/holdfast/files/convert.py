"""Conversion of columns of files to the declared kinds.

Each conversion returns the new column, and a mask of the rows whose value is not of the kind; these rows are
null. A missing value stays missing: null and NaN. In text that is to become a number or a boolean, blank
text, ``nan``, ``na``, ``n/a``, ``null`` and ``none`` in any case are missing too. Infinity is a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.topic import Kind

Mask = np.ndarray[Any, np.dtype[np.bool_]]
"""One boolean for each row."""

TRUE = ("true", "1", "1.0", "yes", "on", "t", "y")
FALSE = ("false", "0", "0.0", "no", "off", "f", "n")
MISSING = ("", "nan", "na", "n/a", "null", "none")

_FLOAT = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))$"
_SHORT_INT = r"^-?\d{1,18}$"
_EXACT = 2**53


class WrongType(Exception):
    """Raised when no value of a column's type can be of the kind."""


def convert(column: pa.Array, kind: Kind) -> tuple[pa.Array, Mask]:
    """Convert a column to ``float``, ``int``, ``text`` or ``bool``.

    Return it with the mask of the rows that failed.
    """
    plain = decode(column)
    if pa.types.is_null(plain.type):
        return pa.nulls(len(plain), _ARROW[kind]), no_rows(plain)
    return _CONVERSIONS[kind](plain)


def decode(column: pa.Array) -> pa.Array:
    """Return a column without encodings.

    Encodings are dictionaries, run lengths, and types of text other than ``string``.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if is_text(column.type):
        return _as_string(column)
    return column


def is_text(type: pa.DataType) -> bool:
    """Whether values of a type are text, or bytes that can only be text."""
    return bool(
        pa.types.is_string(type)
        or pa.types.is_large_string(type)
        or pa.types.is_string_view(type)
        or pa.types.is_binary(type)
        or pa.types.is_large_binary(type)
        or pa.types.is_binary_view(type)
    )


def no_rows(column: pa.Array) -> Mask:
    """Return a mask that selects no row."""
    return np.zeros(len(column), np.bool_)


def truths(mask: pa.Array) -> Mask:
    """Return a mask as a numpy array. Null is false."""
    result: Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return result


def trim(text: pa.Array) -> pa.Array:
    """Return trimmed text. Blank text and words such as ``nan`` become null."""
    text = pc.ascii_trim_whitespace(text)
    trimmed_text = pc.invert(pc.is_in(pc.ascii_lower(text), pa.array(MISSING)))
    return pc.if_else(trimmed_text, text, pa.scalar(None, pa.string()))


def name_text(text: pa.Array) -> pa.Array:
    """Return names without change. Blank text becomes null."""
    blank = pc.equal(pc.ascii_trim_whitespace(text), "")
    return pc.if_else(blank, pa.scalar(None, pa.string()), text) if pc.any(blank).as_py() else text


def _as_string(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    if not pa.types.is_binary(column.type):
        text.validate(full=True)  # Parquet promises UTF-8 and does not check it
    return text


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _to_text(column: pa.Array) -> tuple[pa.Array, Mask]:
    if is_text(column.type):
        return column, no_rows(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if not (_is_number(column.type) or pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type)):
        raise WrongType
    return column.cast(pa.string()), no_rows(column)


def _to_float(column: pa.Array) -> tuple[pa.Array, Mask]:
    if is_text(column.type):
        return _float_of_text(column)
    if not _is_number(column.type):
        raise WrongType
    return column.cast(pa.float64(), safe=False), no_rows(column)


def _float_of_text(text: pa.Array) -> tuple[pa.Array, Mask]:
    trimmed_text = trim(text)  # first: a cast that fails costs half a microsecond for each row that does
    try:
        return trimmed_text.cast(pa.float64()), no_rows(text)
    except pa.ArrowInvalid:
        good = pc.match_substring_regex(trimmed_text, _FLOAT)
        numbers = pc.if_else(good, trimmed_text, pa.scalar(None, pa.string()))
        return numbers.cast(pa.float64()), truths(pc.invert(good))


def _to_int(column: pa.Array) -> tuple[pa.Array, Mask]:
    if is_text(column.type):
        return _int_of_text(column)
    if not _is_number(column.type):
        raise WrongType
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    try:
        return column.cast(pa.int64()), no_rows(column)
    except pa.ArrowInvalid:
        return _int_by_value(column)


def _int_of_text(text: pa.Array) -> tuple[pa.Array, Mask]:
    trimmed_text = trim(text)
    short = pc.match_substring_regex(trimmed_text, _SHORT_INT)
    if pc.all(short).as_py() in (True, None):
        return trimmed_text.cast(pa.int64()), no_rows(text)
    numbers = pc.if_else(short, trimmed_text, pa.scalar(None, pa.string())).cast(pa.int64())
    rest = truths(pc.invert(short))
    return _convert_rest(numbers, trimmed_text, rest)


def _int_by_value(column: pa.Array) -> tuple[pa.Array, Mask]:
    rest = truths(pc.is_valid(column))
    return _convert_rest(pa.nulls(len(column), pa.int64()), column, rest)


def _convert_rest(numbers: pa.Array, column: pa.Array, rest: Mask) -> tuple[pa.Array, Mask]:
    """Convert the rows in ``rest`` one by one.

    Return the column, and the mask of rows that are not integers.
    """
    at = np.flatnonzero(rest)
    found = [exact_int(value) for value in column.take(pa.array(at)).to_pylist()]
    bad = no_rows(column)
    bad[at] = [value is None for value in found]
    filled = pc.replace_with_mask(numbers, pa.array(rest), pa.array(found, pa.int64()))
    return filled, bad


def exact_int(value: Any) -> int | None:
    """Return the 64-bit integer that a text or number represents exactly, or ``None``."""
    try:
        number = _int_of_word(value) if isinstance(value, str) else int(value)
    except (ValueError, OverflowError):
        return None
    is_whole = isinstance(value, str) or number == value
    return number if is_whole and -(2**63) <= number < 2**63 else None


def _int_of_word(word: str) -> int:
    """Parse an integer. ``5.0`` and ``1e3`` are integers too.

    From 2**53 on a float does not represent every integer, so such text is refused.
    """
    if word.isascii() and word.lstrip("+-").isdecimal():
        return int(word)
    number = float(word)
    if not number.is_integer() or abs(number) >= _EXACT or "_" in word:
        raise ValueError(word)
    return int(number)


def _to_bool(column: pa.Array) -> tuple[pa.Array, Mask]:
    if pa.types.is_boolean(column.type):
        return column, no_rows(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    elif not is_text(column.type) and not _is_number(column.type):
        raise WrongType
    words = pc.ascii_lower(trim(column if is_text(column.type) else column.cast(pa.string())))
    yes, no = pc.is_in(words, pa.array(TRUE)), pc.is_in(words, pa.array(FALSE))
    known = pc.or_(yes, no)
    truth = pc.if_else(known, yes, pa.scalar(None, pa.bool_()))
    return truth, truths(pc.and_(pc.is_valid(words), pc.invert(known)))


_ARROW: dict[Kind, pa.DataType] = {
    "float": pa.float64(),
    "int": pa.int64(),
    "text": pa.string(),
    "bool": pa.bool_(),
}
_CONVERSIONS = {"float": _to_float, "int": _to_int, "text": _to_text, "bool": _to_bool}
