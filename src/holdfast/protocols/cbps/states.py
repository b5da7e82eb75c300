"""Covering of states: one condition holds whenever another does, decided from the definitions alone.

``[eA; xA]`` covers ``[eB; xB]`` if eB ⇒ eA (A starts when B does, unless it holds already), xA ⇒ xB (when A
ends, B ends) and eB ∧ xA cannot hold together (B does not start with the event that ends A).  Here the
question is decided in full: the predicates divide all events into at most sixteen classes, and the two
filters together have four states, so it is enough to look at every step that some events can lead to.

Several states together cover one if one of them holds whenever that does, though none of them need cover it
alone: ``[v > 20; v < 10]`` and ``[v < 30; v > 40]`` cover whatever there is of ``v``.  The same question is
asked, of as many bits as there are states.

That B holds only while A does is not enough to compute B from what A lets pass: A drops what comes while it
holds.  So it is people who are told (``explain``), and brokers pass every state on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, isinf

from .content import Box, Filter
from .ranges import EVERYTHING, LINE, Cut, Range, Value, Values, between

Truths = tuple[bool, ...]
Region = tuple[Filter, ...]
"""A disjunction of filters: a union of boxes.  ``()`` is false, ``(Filter(),)`` is true."""

MOST_PIECES = 10_000
"""If the predicates divide the events into more boxes than this, nothing is said to be covered."""
MOST_TOGETHER = 6
"""More states than this are not said to cover anything together."""


@dataclass(frozen=True)
class State:
    """``[enter; leave]``, two predicates over boxes."""

    enter: Region
    leave: Region

    @property
    def momentary(self) -> bool:
        """Whether it ends as soon as it starts: the exit is ``true`` [S3]."""
        return any(not filter_.constraints for filter_ in self.leave)


def covers(a: State | Sequence[State], b: State) -> bool:
    """Whether A, or one of several, holds whenever B does, for every sequence of events; "no" if that is too
    much work."""
    some = _several(a)
    if len(some) > MOST_TOGETHER:
        return any(covers(one, b) for one in some)
    return all(any(holds[:-1]) or not holds[-1] for holds in reached(*some, b))


def _several(a: State | Sequence[State]) -> Sequence[State]:
    return (a,) if isinstance(a, State) else a


def reached(*filters: State) -> Iterator[Truths]:
    """Which filters hold, after every event of every sequence."""
    possible = classes(tuple(region for one in filters for region in (one.enter, one.leave)))
    stays = [one.momentary for one in filters]
    start = (False,) * len(filters)
    seen, ahead = {start}, [start]
    while ahead:
        bits = ahead.pop()
        for truths in possible:
            passes = [truths[2 * i + bit] for i, bit in enumerate(bits)]
            after = tuple(bit ^ (p and not m) for bit, p, m in zip(bits, passes, stays, strict=True))
            yield tuple(bit or (p and m) for bit, p, m in zip(after, passes, stays, strict=True))
            if after not in seen:
                seen.add(after)
                ahead.append(after)


# Which predicates some event satisfies together

Masks = tuple[int, ...]
"""A box: for each attribute, which of its samples it allows."""


def classes(regions: tuple[Region, ...]) -> set[Truths]:
    """The truth values that predicates can have together; all, if it is too much work to tell."""
    samples = _samples(filter_.box for region in regions for filter_ in region)
    everything = tuple((1 << len(values)) - 1 for values in samples.values())
    pieces: dict[Truths, list[Masks]] = {(): [everything]}
    for region in regions:
        boxes = [_masks(filter_.box, samples) for filter_ in region]
        divided: dict[Truths, list[Masks]] = {}
        for truths, some in pieces.items():
            divided[*truths, True], divided[*truths, False] = _divide(some, boxes)
            if sum(map(len, divided.values())) > MOST_PIECES:
                return _all(len(regions))
        pieces = divided
    return {truths for truths, some in pieces.items() if some}


def _all(count: int) -> set[Truths]:
    return {tuple(bool(word >> i & 1) for i in range(count)) for word in range(1 << count)}


def _divide(pieces: list[Masks], boxes: list[Masks]) -> tuple[list[Masks], list[Masks]]:
    """The parts of some pieces that lie in a union of boxes, and the parts outside."""
    inside: list[Masks] = []
    for box in boxes:
        outside: list[Masks] = []
        for piece in pieces:
            common = tuple(p & b for p, b in zip(piece, box, strict=True))
            if all(common):
                inside.append(common)
                outside += _minus(piece, box)
            else:
                outside.append(piece)
        pieces = outside
        if len(inside) + len(outside) > MOST_PIECES:
            break
    return inside, pieces


def _minus(piece: Masks, box: Masks) -> Iterator[Masks]:
    """What a box leaves of a piece: one part for each attribute, disjoint from those before."""
    for i, (p, b) in enumerate(zip(piece, box, strict=True)):
        if p & ~b:
            yield (*(q & c for q, c in zip(piece[:i], box[:i], strict=True)), p & ~b, *piece[i + 1 :])


Sample = Value | Fraction | None
"""A value that stands for all that no constraint tells from it; ``None`` is a missing attribute."""


def _samples(boxes: Iterable[Box]) -> Mapping[str, list[Sample]]:
    """For each attribute a sample from every part into which the boxes divide its values."""
    ranges: dict[str, set[Range]] = {}
    for box in boxes:
        for name, values in box.items():
            ranges.setdefault(name, set()).update(values)
    return {name: [None, *_from_each_part(some)] for name, some in ranges.items()}


def _from_each_part(ranges: set[Range]) -> Iterator[Sample]:
    lines = {LINE[piece.type] for piece in ranges}
    for kind in ("double", "text", "bool"):
        if LINE[kind] in lines:
            whole = EVERYTHING[kind]
            cuts = {
                cut for piece in ranges if LINE[piece.type] == LINE[kind] for cut in (piece.low, piece.high)
            }
            for low, high in pairwise(sorted(cuts | {whole.low, whole.high})):
                yield from _numbers(low, high) if kind == "double" else [low[1] if kind == "text" else low[0]]


def _numbers(low: Cut, high: Cut) -> Iterator[Sample]:
    """A whole number between two cuts and one that is not whole, as far as there are such."""
    found = between("long", low, high)
    if found is not None:
        yield found.low[0]
    if low[0] < high[0]:
        yield _between_whole_ones(low[0], high[0])
    elif found is None:
        yield low[0]


def _between_whole_ones(begin: float, end: float) -> Fraction:
    """A number between two others that is not whole."""
    if isinf(begin):
        begin, end = (0, 1) if isinf(end) else (ceil(end) - 1, end)
    return (Fraction(begin) + Fraction(min(end, floor(begin) + 1))) / 2


def _masks(box: Box, samples: Mapping[str, list[Sample]]) -> Masks:
    return tuple(
        sum(1 << i for i, value in enumerate(some) if name not in box or _in(value, box[name]))
        for name, some in samples.items()
    )


def _in(value: Sample, values: Values) -> bool:
    return value is not None and any(value in piece for piece in values)
