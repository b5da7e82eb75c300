"""The promises of a client: the filters that it has advertised.

A publisher advertises each of its sources separately. The index uses the values that promises pin, so a
notification is compared only with the promises of its own source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from .content import Content, Filter, satisfies
from .parts import pins
from .ranges import Value

Names = tuple[str, ...]
Values = tuple[Value | None, ...]


@dataclass(slots=True)
class PromiseIndex:
    """Filters by the names and values that they pin; equal filters are counted."""

    _by_pins: dict[Names, dict[Values, dict[Filter, int]]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Filter]:
        by_values = chain.from_iterable(values.values() for values in self._by_pins.values())
        return chain.from_iterable(by_values)

    def __bool__(self) -> bool:
        return bool(self._by_pins)

    def add(self, promises: Iterable[Filter]) -> None:
        """Add the filters of an advertisement; equal filters are counted."""
        for promise in promises:
            names, values = _index_key(promise)
            counts = self._by_pins.setdefault(names, {}).setdefault(values, {})
            counts[promise] = counts.get(promise, 0) + 1

    def remove(self, promises: Iterable[Filter]) -> None:
        """Remove promised filters. A filter that was added several times must be removed as often."""
        for promise in promises:
            names, values = _index_key(promise)
            counts = self._by_pins[names][values]
            counts[promise] -= 1
            if not counts[promise]:
                del counts[promise]
            if not counts:
                del self._by_pins[names][values]
            if not self._by_pins[names]:
                del self._by_pins[names]

    def fulfils_any(self, content: Content) -> bool:
        """Whether a notification conforms to at least one of the promises."""
        return any(
            fulfils(content, promise)
            for names, by_values in self._by_pins.items()
            for promise in by_values.get(tuple(content.get(name) for name in names), ())
        )


def _index_key(promise: Filter) -> tuple[Names, Values]:
    """Return the pinned names and values of a promise as index keys."""
    pinned = sorted(pins(promise).items())
    return tuple(name for name, _ in pinned), tuple(value for _, value in pinned)


def fulfils(content: Content, promise: Filter) -> bool:
    """Whether a notification conforms to the promise of an advertisement.

    It must have the pinned values and no value that the promise excludes. It may have further fields [B11],
    and values may be missing. Where coordinates are pinned, it must not have a place, which could contradict
    the coordinates.
    """
    pinned = pins(promise)
    if "x" in pinned and "place" in content and "place" not in pinned:
        return False
    shared = Filter(tuple(c for c in promise.constraints if c.name in pinned or c.name in content))
    return satisfies(shared, content)
