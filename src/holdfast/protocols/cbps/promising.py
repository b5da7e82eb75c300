"""What a client has advertised.

Publishers advertise each source apart.  A promise is found by the values that it pins, so a notification is
compared with the promises of its own source, however many there are of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .content import Content, Filter, satisfied
from .parts import pins
from .ranges import Value

Names = tuple[str, ...]
Values = tuple[Value | None, ...]


@dataclass(slots=True)
class Promises:
    """Filters by the names and the values that they pin; equal ones are counted."""

    _by_pins: dict[Names, dict[Values, dict[Filter, int]]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Filter]:
        return (promise for values in self._by_pins.values() for some in values.values() for promise in some)

    def __bool__(self) -> bool:
        return bool(self._by_pins)

    def add(self, promises: Iterable[Filter]) -> None:
        for promise in promises:
            names, values = _pinned(promise)
            some = self._by_pins.setdefault(names, {}).setdefault(values, {})
            some[promise] = some.get(promise, 0) + 1

    def remove(self, promises: Iterable[Filter]) -> None:
        for promise in promises:
            names, values = _pinned(promise)
            some = self._by_pins[names][values]
            some[promise] -= 1
            if not some[promise]:
                del some[promise]
            if not some:
                del self._by_pins[names][values]
            if not self._by_pins[names]:
                del self._by_pins[names]

    def keeps(self, content: Content) -> bool:
        """Whether a notification keeps one of the promises."""
        return any(
            keeps(content, promise)
            for names, by_values in self._by_pins.items()
            for promise in by_values.get(tuple(content.get(name) for name in names), ())
        )


def _pinned(promise: Filter) -> tuple[Names, Values]:
    pinned = sorted(pins(promise).items())
    return tuple(name for name, _ in pinned), tuple(value for _, value in pinned)


def keeps(content: Content, promise: Filter) -> bool:
    """Whether a notification keeps what an advertisement promises: it has the pinned values, and none
    that is not allowed.  It may have more [B11], and a value may be missing; but where coordinates are
    pinned, no place may say that it happened elsewhere."""
    pinned = pins(promise)
    if "x" in pinned and "place" in content and "place" not in pinned:
        return False
    shared = Filter(tuple(c for c in promise.constraints if c.name in pinned or c.name in content))
    return satisfied(shared, content)
