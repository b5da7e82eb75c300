"""The subscriptions of the study: two series, drawn as the document describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VALUES = 10_000
"""The values of a dimension are the whole numbers from 1 to this."""

Draw = Callable[[np.random.Generator, int, int], NDArray[np.int64]]
"""``draw(random, ranks, count)`` returns ``count`` numbers from 1 to ``ranks``."""


def uniform(random: np.random.Generator, ranks: int, count: int) -> NDArray[np.int64]:
    """Draw ranks with equal probability."""
    return random.integers(1, ranks + 1, count)


def zipf(random: np.random.Generator, ranks: int, count: int) -> NDArray[np.int64]:
    """Draw rank r with a probability proportional to 1/r."""
    share = np.cumsum(1 / np.arange(1, ranks + 1))
    return np.searchsorted(share, random.random(count) * share[-1], "right") + 1


@dataclass(frozen=True)
class SubsumptionSeries:
    """A series of the study: numbers of dimensions and attributes, and the largest number of
    subscriptions.
    """

    name: str
    draw: Draw
    dimensions: tuple[int, ...]
    attributes: tuple[int, ...]
    most: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of subscriptions after which the remaining ones are counted."""
        return tuple(2**i for i in range(3, self.most.bit_length()))


SERIES = (
    SubsumptionSeries("zipf", zipf, tuple(2**i for i in range(3, 10)), (1, 2, 3, 4), 65_536),
    SubsumptionSeries("uniform", uniform, tuple(2**i for i in range(3, 12)), (1,), 8_192),
)


class Subscriptions(NamedTuple):
    """Subscriptions as boxes, in the form of the kernel."""

    sizes: NDArray[np.int16]
    attributes: NDArray[np.int16]
    bounds: NDArray[np.int32]


def subscriptions(
    series: SubsumptionSeries, dimensions: int, attributes: int, random: np.random.Generator
) -> Subscriptions:
    """Draw the largest number of subscriptions of a series, each with one to ``attributes`` attributes."""
    count = series.most
    sizes = random.integers(1, attributes + 1, count)
    names = np.zeros((count, attributes), np.int64)
    for j in range(attributes):
        again = np.arange(count)
        while len(again):
            names[again, j] = series.draw(random, dimensions, len(again)) - 1
            again = again[(names[again, :j] == names[again, j : j + 1]).any(axis=1)]
    shape = (count, attributes)
    starts, lengths = (series.draw(random, VALUES, count * attributes).reshape(shape) for _ in range(2))
    bounds = np.stack((starts, np.minimum(VALUES, starts + lengths - 1)), axis=2)
    names[np.arange(attributes) >= sizes[:, None]] = dimensions
    order = np.argsort(names, axis=1, kind="stable")
    return Subscriptions(
        sizes.astype(np.int16),
        np.take_along_axis(names, order, 1).astype(np.int16),
        np.take_along_axis(bounds, order[:, :, None], 1).astype(np.int32),
    )
