"""Covering of states: decides from definitions whether one condition is active whenever another is active.

``[eA; xA]`` covers ``[eB; xB]`` under three conditions. eB ⇒ eA: A starts when B does, unless A is active. xA
⇒ xB: when A ends, B ends. eB ∧ xA is impossible: B does not start with the event that ends A. The test here
is complete: the predicates divide all events into at most sixteen classes, and the two filters together have
four states, so checking every possible step is sufficient.

Several states together cover a state if one of them is active whenever that state is active, even if none of
them covers it alone. For example, ``[v > 20; v < 10]`` and ``[v < 30; v > 40]`` together cover any condition
on ``v``. The test is the same, with as many bits as there are states.

Covering does not make B computable from the events that A passes, because A drops events while it is active.
Covering is therefore only reported to users (``explain``); brokers forward every state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, isinf

from .content import Box, Filter
from .ranges import EVERYTHING, LINE, Cut, Value, ValueRange, Values, between

Truths = tuple[bool, ...]
Region = tuple[Filter, ...]
"""A disjunction of filters: a union of boxes. ``()`` is false, ``(Filter(),)`` is true."""

MOST_PIECES = 10_000
"""The greatest number of boxes into which predicates may divide the events. Beyond it the answer is "not
covered".
"""
MOST_TOGETHER = 6
"""The greatest number of states that are tested together."""


@dataclass(frozen=True)
class EnterLeave:
    """A state ``[enter; leave]`` with two predicates over boxes."""

    enter: Region
    leave: Region

    @property
    def is_momentary(self) -> bool:
        """Whether the state ends as soon as it starts, because its exit is always satisfied. [S3]"""
        return any(not filter_.constraints for filter_ in self.leave)


def covers_state(a: EnterLeave | Sequence[EnterLeave], b: EnterLeave) -> bool:
    """Whether A, or one of several states A, is active whenever B is, for every sequence of events.

    Return false if the test would be too expensive.
    """
    states = (a,) if isinstance(a, EnterLeave) else a
    if len(states) > MOST_TOGETHER:
        return any(covers_state(state, b) for state in states)
    return all(any(bits[:-1]) or not bits[-1] for bits in reachable_bits(*states, b))


def reachable_bits(*filters: EnterLeave) -> Iterator[Truths]:
    """Yield the bits of the filters after every event of every sequence."""
    possible = truth_classes(tuple(r for filter_ in filters for r in (filter_.enter, filter_.leave)))
    momentary = [filter_.is_momentary for filter_ in filters]
    start = (False,) * len(filters)
    seen, ahead = {start}, [start]
    while ahead:
        bits = ahead.pop()
        for truths in possible:
            passes = [truths[2 * i + bit] for i, bit in enumerate(bits)]
            after = tuple(bit ^ (p and not m) for bit, p, m in zip(bits, passes, momentary, strict=True))
            yield tuple(bit or (p and m) for bit, p, m in zip(after, passes, momentary, strict=True))
            if after not in seen:
                seen.add(after)
                ahead.append(after)


# Which predicates some event satisfies together

Masks = tuple[int, ...]
"""A box: for each attribute, a bit mask of its allowed samples."""


def truth_classes(regions: tuple[Region, ...]) -> set[Truths]:
    """Return the combinations of truth values that predicates can have; all combinations if the test is too
    expensive.
    """
    samples = _samples(filter_.box for region in regions for filter_ in region)
    everything = tuple((1 << len(values)) - 1 for values in samples.values())
    pieces: dict[Truths, list[Masks]] = {(): [everything]}
    for region in regions:
        boxes = [_masks(filter_.box, samples) for filter_ in region]
        divided: dict[Truths, list[Masks]] = {}
        for truths, pieces_of_class in pieces.items():
            divided[*truths, True], divided[*truths, False] = _divide(pieces_of_class, boxes)
            if sum(map(len, divided.values())) > MOST_PIECES:
                return _all(len(regions))
        pieces = divided
    return {truths for truths, pieces_of_class in pieces.items() if pieces_of_class}


def _all(count: int) -> set[Truths]:
    return {tuple(bool(word >> i & 1) for i in range(count)) for word in range(1 << count)}


def _divide(remaining: list[Masks], boxes: list[Masks]) -> tuple[list[Masks], list[Masks]]:
    """Return the parts of ``remaining`` inside a union of boxes, and the parts outside."""
    inside: list[Masks] = []
    for box in boxes:
        outside: list[Masks] = []
        for piece in remaining:
            common = tuple(p & b for p, b in zip(piece, box, strict=True))
            if all(common):
                inside.append(common)
                outside += _minus(piece, box)
            else:
                outside.append(piece)
        remaining = outside
        if len(inside) + len(outside) > MOST_PIECES:
            break
    return inside, remaining


def _minus(piece: Masks, box: Masks) -> Iterator[Masks]:
    """Yield disjoint parts of a piece outside a box, at most one for each attribute."""
    for i, (p, b) in enumerate(zip(piece, box, strict=True)):
        if p & ~b:
            yield (*(q & c for q, c in zip(piece[:i], box[:i], strict=True)), p & ~b, *piece[i + 1 :])


Sample = Value | Fraction | None
"""A value that represents all values that no constraint distinguishes from it. ``None`` is a missing
attribute.
"""


def _samples(boxes: Iterable[Box]) -> Mapping[str, list[Sample]]:
    """Return, for each attribute, a sample from every part into which the boxes divide its values."""
    ranges: dict[str, set[ValueRange]] = {}
    for box in boxes:
        for name, values in box.items():
            ranges.setdefault(name, set()).update(values)
    return {name: [None, *_from_each_part(attribute_ranges)] for name, attribute_ranges in ranges.items()}


def _from_each_part(ranges: set[ValueRange]) -> Iterator[Sample]:
    """Yield a sample from every part into which ranges divide their lines."""
    lines = {LINE[piece.type] for piece in ranges}
    for kind in ("double", "text", "bool"):
        if LINE[kind] in lines:
            whole = EVERYTHING[kind]
            pieces = [whole, *(piece for piece in ranges if LINE[piece.type] == LINE[kind])]
            for low, high in pairwise(sorted({cut for piece in pieces for cut in (piece.low, piece.high)})):
                yield from _numbers(low, high) if kind == "double" else [low[1] if kind == "text" else low[0]]


def _numbers(low: Cut, high: Cut) -> Iterator[Sample]:
    """Yield an integer and a fraction between two cuts, where they exist."""
    found = between("long", low, high)
    if found is not None:
        yield found.low[0]
    if low[0] < high[0]:
        yield _between_whole_ones(low[0], high[0])
    elif found is None:
        yield low[0]


def _between_whole_ones(begin: float, end: float) -> Fraction:
    """Return a number between ``begin`` and ``end`` that is not an integer."""
    if isinf(begin):
        begin, end = (0, 1) if isinf(end) else (ceil(end) - 1, end)
    return (Fraction(begin) + Fraction(min(end, floor(begin) + 1))) / 2


def _masks(box: Box, samples: Mapping[str, list[Sample]]) -> Masks:
    """Return the mask of a box's allowed samples for each attribute."""
    return tuple(
        sum(1 << i for i, value in enumerate(values) if name not in box or _in(value, box[name]))
        for name, values in samples.items()
    )


def _in(value: Sample, values: Values) -> bool:
    return value is not None and any(value in piece for piece in values)
