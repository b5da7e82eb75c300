"""Evaluation on a batch: numpy masks for predicates, dense codes for scopes.

The results are equal to those of ``event`` on every event; the laws test it. Numbers are float64 with NaN for
missing. The exception is a plain int attribute compared with an int: it stays int64, with a mask of present
values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...engine.key_codes import are_distinct
from ...kernels.rank import mark
from ...model.batch import AXES
from ...model.space import Forest, dimensions, inside
from ...model.topic import Topic
from ..ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    ComparisonSign,
    Expression,
    Levels,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ..rewrite import COMPARED
from .event import kind
from .key_text import join_key, key_text
from .once import once

Mask = NDArray[np.bool_]
Masks = Callable[[pa.RecordBatch], Mask]
Floats = NDArray[np.float64]


def predicate(op: Expression, topic: Topic) -> Masks:
    """Return a function from a batch to the mask of events that satisfy a core predicate."""
    match op:
        case Truth(holds):
            return lambda batch: np.full(len(batch), holds)
        case And(left, right):
            a, b = predicate(left, topic), predicate(right, topic)
            return lambda batch: a(batch) & b(batch)
        case Or(left, right):
            a, b = predicate(left, topic), predicate(right, topic)
            return lambda batch: a(batch) | b(batch)
        case Name(name):
            return lambda batch: _truth(batch, name, True)
        case Not(Name(name)):
            return lambda batch: _truth(batch, name, False)
        case Compare(sign, left, right):
            return _comparison(sign, left, right, topic)
        case _:
            raise AssertionError(f"not a core predicate: {op}")


Words = NDArray[Any]
"""An unsigned integer for each event; bit f belongs to predicate f."""

MANY = 4
"""From this number of predicates over one attribute on, one table serves them all."""


def words(predicates: Sequence[Expression], topic: Topic, word: Any) -> Callable[[pa.RecordBatch], Words]:
    """Return a function from a batch to one word per event, with a bit for each core predicate that is true.

    Predicates that only compare one float attribute with constants are constant between these. They take one
    binary search and a table lookup together; the others are evaluated one by one.
    """
    alike: dict[str, list[int]] = {}
    for f, op in enumerate(predicates):
        if (name := _only_compares(op, topic)) is not None:
            alike.setdefault(name, []).append(f)
    tables = {
        name: _table({f: predicates[f] for f in numbers}, name, topic, word)
        for name, numbers in alike.items()
        if len(numbers) >= MANY
    }
    looked_up = {f for name in tables for f in alike[name]}
    tested = {f: predicate(op, topic) for f, op in enumerate(predicates) if f not in looked_up}

    def found(batch: pa.RecordBatch) -> Words:
        if len(predicates) == 1:
            return np.ascontiguousarray(tested[0](batch)).view(np.uint8)
        held = np.zeros(len(batch), word)
        for name, (bounds, table) in tables.items():
            mark(np.ascontiguousarray(floats(batch, name)), bounds, table, held)
        for f, test in tested.items():
            held |= test(batch).astype(word) << word(f)
        return held

    return found


def _only_compares(op: Expression, topic: Topic) -> str | None:
    """Return the only float attribute that a predicate compares with constants.

    Returns ``None`` for any other predicate.
    """
    match op:
        case And(left, right) | Or(left, right):
            names = {_only_compares(left, topic), _only_compares(right, topic)}
            return names.pop() if len(names) == 1 else None
        case Compare(_, Name(name), Number()) | Compare(_, Number(), Name(name)):
            return name if topic.by_name[name].kind == "float" else None
        case _:
            return None


def _table(predicates: Mapping[int, Expression], name: str, topic: Topic, word: Any) -> tuple[Floats, Words]:
    """Return the sorted constants, and the predicates that are true in each of the cells between them."""
    bounds = np.unique([float(c) for op in predicates.values() for c in _constants(op)])
    between = [np.nextafter(bounds[0], -np.inf), *np.nextafter(bounds, np.inf)]
    cells = np.empty(2 * len(bounds) + 2)
    cells[0:-1:2], cells[1:-1:2], cells[-1] = between, bounds, np.nan
    batch = pa.RecordBatch.from_pydict({name: cells})
    table = np.zeros(len(cells), word)
    for f, op in predicates.items():
        table |= predicate(op, topic)(batch).astype(word) << word(f)
    return bounds, table


def _constants(op: Expression) -> Iterator[float | int]:
    match op:
        case And(left, right) | Or(left, right) | Compare(_, left, right):
            yield from _constants(left)
            yield from _constants(right)
        case Number(value):
            yield value


def _comparison(sign: ComparisonSign, left: Expression, right: Expression, topic: Topic) -> Masks:
    kinds = {kind(left, topic), kind(right, topic)}
    compare = COMPARED[sign]
    if kinds == {"text"}:
        a, b = _texts(left), _texts(right)
        arrow = pc.equal if sign == "==" else pc.not_equal
        return lambda batch: _equality(arrow, a(batch), b(batch), len(batch))
    if kinds == {"int"}:
        i, j = _integers(left), _integers(right)

        def exactly(batch: pa.RecordBatch) -> Mask:
            (x, b_present), (y, too) = i(batch), j(batch)
            return np.broadcast_to(compare(x, y) & b_present & too, len(batch))

        return exactly
    f, g = number(left, topic), number(right, topic)
    if sign != "!=":
        return lambda batch: _broadcast(compare(f(batch), g(batch)), len(batch))

    def differ(batch: pa.RecordBatch) -> Mask:
        x, y = f(batch), g(batch)
        return _broadcast((x != y) & (x == x) & (y == y), len(batch))

    return differ


def _broadcast(mask: Any, size: int) -> Mask:
    return mask if np.ndim(mask) else np.full(size, mask)


def number(op: Expression, topic: Topic) -> Callable[[pa.RecordBatch], Any]:
    """Return a function from a batch to the floats of an expression.

    Missing values are NaN. The result is a scalar if the expression is constant.
    """
    match op:
        case Name(name):
            return lambda batch: floats(batch, name)
        case Number(literal):
            constant = np.float64(literal)
            return lambda _batch: constant
        case _ if kind(op, topic) == "int":
            whole = _integers(op)

            def convert(batch: pa.RecordBatch) -> Any:
                found, is_present = whole(batch)
                return np.where(is_present, found.astype(np.float64), np.nan)

            return convert
        case Negative(arg):
            inner = number(arg, topic)
            return lambda batch: -inner(batch)
        case Absolute(arg):
            inner = number(arg, topic)
            return lambda batch: np.abs(inner(batch))
        case Arithmetic(sign, left, right):
            a, b, operate = number(left, topic), number(right, topic), ARITHMETIC[sign]

            def compute(batch: pa.RecordBatch) -> Any:
                with np.errstate(all="ignore"):
                    return operate(a(batch), b(batch))

            return compute
        case _:
            raise AssertionError(f"not a core number: {op}")


def _divide(a: Any, b: Any) -> Any:
    return np.where(b == 0, np.nan, a / b)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
}


def floats(batch: pa.RecordBatch, name: str) -> Floats:
    """Return a numeric column as float64, with NaN where missing."""
    column = _column(batch, name)
    if column is None:
        return np.full(len(batch), np.nan)
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)


Whole = Callable[[pa.RecordBatch], tuple[Any, Any]]
"""int64 numbers, and a mask of the present ones."""


def _integers(op: Expression) -> Whole:
    """Return a function for exact int arithmetic. A result beyond 64 bits is missing."""
    match op:
        case Number(literal):
            constant = np.int64(literal)
            return lambda _batch: (constant, np.True_)
        case Name(name):
            return lambda batch: _whole_column(batch, name)
        case Negative(arg):
            return _whole_arithmetic("-", _integers(Number(0)), _integers(arg))
        case Absolute(arg):
            inner = _integers(arg)

            def absolute(batch: pa.RecordBatch) -> tuple[Any, Any]:
                found, is_present = inner(batch)
                return np.abs(found), is_present & (found != _LEAST)

            return absolute
        case Arithmetic(sign, left, right):
            return _whole_arithmetic(sign, _integers(left), _integers(right))
        case _:
            raise AssertionError(f"not a core int: {op}")


def _whole_column(batch: pa.RecordBatch, name: str) -> tuple[Any, Any]:
    column = _column(batch, name)
    if column is None:
        return np.int64(0), np.False_
    if not column.null_count:
        return column.to_numpy(), np.True_
    return column.fill_null(0).to_numpy(), column.is_valid().to_numpy(zero_copy_only=False)


def _whole_arithmetic(sign: str, left: Whole, right: Whole) -> Whole:
    operate, fits = ARITHMETIC[sign], _FITS[sign]

    def compute(batch: pa.RecordBatch) -> tuple[Any, Any]:
        (x, is_present), (y, too) = left(batch), right(batch)
        with np.errstate(all="ignore"):
            result = operate(x, y)
            return result, is_present & too & fits(x, y, result)

    return compute


_LEAST = np.iinfo(np.int64).min


def _product_fits(x: Any, y: Any, result: Any) -> Any:
    by = np.where((x == 0) | (x == -1), 1, x)
    return np.where(x == -1, y != _LEAST, (x == 0) | (result // by == y))


_FITS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda x, y, sum: ((x ^ sum) & (y ^ sum)) >= 0,
    "-": lambda x, y, difference: ((x ^ y) & (x ^ difference)) >= 0,
    "*": _product_fits,
}
"""Whether int64 arithmetic did not overflow."""


def _texts(op: Expression) -> Callable[[pa.RecordBatch], Any]:
    match op:
        case Text(literal):
            scalar = pa.scalar(literal)
            return lambda _batch: scalar
        case Name(name):
            missing = pa.scalar(None, pa.string())

            def read(batch: pa.RecordBatch) -> Any:
                column = _column(batch, name)
                return missing if column is None else column

            return read
        case _:
            raise AssertionError(f"not a core text: {op}")


def _equality(compare: Callable[[Any, Any], Any], a: Any, b: Any, size: int) -> Mask:
    """Compare two columns of text. Each entry of a dictionary is compared once."""
    if isinstance(a, pa.Scalar):
        a, b = b, a
    if isinstance(a, pa.DictionaryArray) and isinstance(b, pa.Scalar):
        entries = _mask(compare(a.dictionary, b), len(a.dictionary))
        indices = a.indices.cast(pa.int64()).fill_null(len(entries))  # int8 cannot count 128 entries
        return np.append(entries, False)[indices.to_numpy(zero_copy_only=False)]
    a, b = (v.dictionary_decode() if isinstance(v, pa.DictionaryArray) else v for v in (a, b))
    return _mask(compare(a, b), size)


def _mask(found: Any, size: int) -> Mask:
    if isinstance(found, pa.Scalar):
        return np.full(size, found.as_py() is True)
    return found.fill_null(False).to_numpy(zero_copy_only=False)


def _truth(batch: pa.RecordBatch, name: str, wanted: bool) -> Mask:
    column = _column(batch, name)
    if column is None:
        return np.zeros(len(batch), np.bool_)
    return _mask(column if wanted else pc.invert(column), len(batch))


def _column(batch: pa.RecordBatch, name: str) -> Any:
    at = batch.schema.get_field_index(name)
    return batch.column(at) if at >= 0 else None


# --- scopes --------------------------------------------------------------------------------------


class ScopeCodes(NamedTuple):
    """A scope for each row: ``keys[codes[i]]``, or no scope where the code is -1. Keys are distinct."""

    codes: NDArray[np.int32]
    keys: pa.StringArray


Scoping = Callable[[pa.RecordBatch], tuple[ScopeCodes, ...]]


def scoping(levels: Levels, forest: Forest | None = None) -> Scoping:
    """Return a function from a batch to the scopes of each event at each level.

    Levels are innermost first and aligned at the outermost.
    """
    if not levels and forest is None:
        return lambda batch: (ScopeCodes(np.zeros(len(batch), np.int32), pa.array([""])),)

    def encode(batch: pa.RecordBatch) -> tuple[ScopeCodes, ...]:
        found: list[ScopeCodes] = []
        around: ScopeCodes | None = None
        if forest is not None:
            regions = locate(forest, batch)
            around = _region_keys(forest, regions)
            found = _chains(forest, regions)
        for names in reversed(levels):
            parts = [encode_keys(_column(batch, name), len(batch)) for name in names]
            around = _inside(around, parts)
            found.insert(0, around)
        return tuple(found)

    return once(encode)


def encode_keys(column: Any, size: int) -> ScopeCodes:
    """Return a column as scope keys. Missing values are in no scope."""
    if column is None:
        return ScopeCodes(np.full(size, -1, np.int32), pa.array([], pa.string()))
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(-1)
    codes: NDArray[np.int32] = indices.to_numpy(zero_copy_only=False)
    values = column.dictionary
    if pa.types.is_string(values.type) and not values.null_count and are_distinct(values):
        return ScopeCodes(codes, values)
    texts = [key_text(value) for value in values.to_pylist()]
    return _distinct(codes, texts)


def _distinct(codes: NDArray[np.int32], texts: Sequence[str | None]) -> ScopeCodes:
    """Return codes of which those with equal texts are merged. Missing values are in no scope."""
    found: dict[str, int] = {}
    table = np.full(len(texts) + 1, -1, np.int32)  # the last entry serves code -1
    for i, text in enumerate(texts):
        if text is not None:
            table[i] = found.setdefault(text, len(found))
    return ScopeCodes(table[codes], pa.array(list(found), pa.string()))


def _inside(around: ScopeCodes | None, parts: list[ScopeCodes]) -> ScopeCodes:
    """Return the keys that combine the values of a composite key with the scope around it."""
    levels = parts if around is None else [around, *parts]
    if len(levels) == 1 and around is None and not _has_separators(levels[0].keys):
        return levels[0]
    present = np.logical_and.reduce([level.codes >= 0 for level in levels])
    mixed = levels[0].codes[present].astype(np.int64)
    distinct: list[tuple[int, ...]] = [(code,) for code in range(len(levels[0].keys))]
    for level in levels[
        1:
    ]:  # compacted after each value: the product of many keys would not fit into 64 bits
        found, mixed = np.unique(mixed * len(level.keys) + level.codes[present], return_inverse=True)
        pairs = (divmod(code, len(level.keys)) for code in found.tolist())
        distinct = [(*distinct[outer], inner) for outer, inner in pairs]
    texts = [level.keys.to_pylist() for level in levels]
    names = ([text[at] for text, at in zip(texts, path, strict=True)] for path in distinct)
    keys = [join_key(None, path) if around is None else join_key(path[0], path[1:]) for path in names]
    codes = np.full(len(present), -1, np.int32)
    codes[present] = mixed
    return ScopeCodes(codes, pa.array(keys, pa.string()))


def _has_separators(keys: pa.StringArray) -> bool:
    """Whether a key contains a character that must be escaped."""
    _, offsets, text = keys.buffers()
    if text is None or not len(keys):
        return False
    ends = np.frombuffer(offsets, np.int32)[[keys.offset, keys.offset + len(keys)]]
    data = np.frombuffer(text, np.uint8)[ends[0] : ends[1]]
    return bool(np.any(data - np.uint8(_LEAST_SEPARATOR) < _SEPARATORS))


_LEAST_SEPARATOR, _SEPARATORS = 0x1D, 3
"""The separators of keys have consecutive code points."""


def locate(forest: Forest, batch: pa.RecordBatch) -> NDArray[np.int32]:
    """Return the index of the smallest region of the forest that contains each event, or -1."""
    at = np.full(len(batch), _UNDECIDED, np.int32)
    for name, table in (("place", forest.by_place), ("source", forest.by_source)):
        if table and batch.schema.get_field_index(name) >= 0:
            column = encode_keys(_column(batch, name), len(batch))
            decided = [table.get(key, _UNDECIDED) for key in column.keys.to_pylist()]
            at = np.where(at == _UNDECIDED, np.array([*decided, _UNDECIDED], np.int32)[column.codes], at)
    axes = [floats(batch, axis) for axis in AXES if batch.schema.get_field_index(axis) >= 0]
    for shape, i in forest.innermost_first:
        if dimensions(shape) <= len(axes):
            at[(at == _UNDECIDED) & inside(shape, axes)] = i
    return np.maximum(at, -1)


_UNDECIDED = -2


def _region_keys(forest: Forest, regions: NDArray[np.int32]) -> ScopeCodes:
    return ScopeCodes(regions, pa.array([region.name for region in forest.regions], pa.string()))


def _chains(forest: Forest, regions: NDArray[np.int32]) -> list[ScopeCodes]:
    """Return the region around each event at each level."""
    found = []
    for level in range(forest.depth):
        outward = forest.depth - 1 - level
        table = [path[-1 - outward] if len(path) > outward else -1 for path in forest.chains]
        found.append(_region_keys(forest, np.array([*table, -1], np.int32)[regions]))
    return found
