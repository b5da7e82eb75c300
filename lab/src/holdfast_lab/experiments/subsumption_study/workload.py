"""The subscriptions of the study: two series, drawn as the document says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VALUES = 10_000
"""The contents of a dimension are the whole numbers from 1 to this."""

Draw = Callable[[np.random.Generator, int, int], NDArray[np.int64]]
"""``draw(random, ranks, count)``: so many numbers from 1 to ``ranks``."""


def uniform(random: np.random.Generator, ranks: int, count: int) -> NDArray[np.int64]:
    """Every rank is equally likely."""
    return random.integers(1, ranks + 1, count)


def zipf(random: np.random.Generator, ranks: int, count: int) -> NDArray[np.int64]:
    """Rank r is drawn with a probability in proportion to 1/r."""
    share = np.cumsum(1 / np.arange(1, ranks + 1))
    return np.searchsorted(share, random.random(count) * share[-1], "right") + 1


@dataclass(frozen=True)
class SubsumptionSeries:
    """A series of the study: which numbers of dimensions and attributes are tried, up to how many items."""

    name: str
    draw: Draw
    dimensions: tuple[int, ...]
    attributes: tuple[int, ...]
    most: int

    @property
    def counts(self) -> tuple[int, ...]:
        """After how many subscriptions the remaining ones are counted."""
        return tuple(2**i for i in range(3, self.most.bit_length()))


SERIES = (
    SubsumptionSeries("zipf", zipf, tuple(2**i for i in range(3, 10)), (1, 2, 3, 4), 65_536),
    SubsumptionSeries("uniform", uniform, tuple(2**i for i in range(3, 12)), (1,), 8_192),
)


class Subscriptions(NamedTuple):
    """Boxes as the kernel takes them."""

    sizes: NDArray[np.int16]
    attributes: NDArray[np.int16]
    bounds: NDArray[np.int32]


def subscriptions(
    series: SubsumptionSeries, dimensions: int, attributes: int, random: np.random.Generator
) -> Subscriptions:
    """As many subscriptions as the series has at most, each with one to so many attributes."""
    count = series.most
    sizes = random.integers(1, attributes + 1, count)
    names = np.zeros((count, attributes), np.int64)
    for j in range(attributes):
        again = np.arange(count)
        while len(again):
            names[again, j] = series.draw(random, dimensions, len(again)) - 1
            again = again[(names[again, :j] == names[again, j : j + 1]).any(axis=1)]
    starts, lengths = (
        series.draw(random, VALUES, count * attributes).reshape(count, attributes) for _ in range(2)
    )
    bounds = np.stack((starts, np.minimum(VALUES, starts + lengths - 1)), axis=2)
    names[np.arange(attributes) >= sizes[:, None]] = dimensions
    order = np.argsort(names, axis=1, kind="stable")
    return Subscriptions(
        sizes.astype(np.int16),
        np.take_along_axis(names, order, 1).astype(np.int16),
        np.take_along_axis(bounds, order[:, :, None], 1).astype(np.int32),
    )
