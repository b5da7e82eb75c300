"""Positions of junctions for components, which measure distances between points and not along roads.

Two junctions are at most ``reach`` apart in space exactly if at most ``reach`` roads connect them. So the
predicate of Table 5.16 can be used as printed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.model.space import Point

MARGIN = 0.05
ATTEMPTS = 20

Points = NDArray[np.float64]


def layout(hops: NDArray[np.float64], reach: int) -> list[Point]:
    """Return a position in three dimensions for each junction; the first exact attempt is used."""
    near = hops <= reach
    for seed in range(ATTEMPTS):
        points = np.round(_settle(near, _spread(hops, reach, seed), reach), 3)
        if np.array_equal(_apart(points) <= reach, near):
            return [tuple(point) for point in points.tolist()]
    raise InputError(
        f"no points in space were found for {len(hops)} junctions that tell which are within {reach} roads; "
        "give a smaller map"
    )


def _spread(hops: NDArray[np.float64], reach: int, seed: int) -> Points:
    """Return initial positions by classical scaling of the distances along roads, with random noise."""
    far = np.minimum(hops, 4.0 * reach)
    inner = -0.5 * (far**2 - (far**2).mean(0) - (far**2).mean(1)[:, None] + (far**2).mean())
    values, vectors = np.linalg.eigh(inner)
    points = np.zeros((len(hops), 3))
    axes = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.0))
    points[:, : axes.shape[1]] = axes
    random: Points = np.random.default_rng(seed).normal(0.0, 0.3, points.shape)
    return 0.7 * points + random


def _settle(near: NDArray[np.bool_], points: Points, reach: int) -> Points:
    """Move the points so that as few pairs as possible have the wrong distance."""
    from scipy.optimize import minimize

    def wrong(flat: Points) -> tuple[float, Points]:
        """By how much distances are too long or too short, squared, and in which direction that grows."""
        at = flat.reshape(points.shape)
        between = at[:, None] - at[None]
        apart = np.sqrt((between**2).sum(-1) + 1e-12)
        by = np.where(near, np.maximum(apart - (reach - MARGIN), 0), -np.maximum(reach + MARGIN - apart, 0))
        return float((by**2).sum()), (4.0 * (by / apart)[..., None] * between).sum(1).ravel()

    return np.asarray(minimize(wrong, points.ravel(), jac=True, method="L-BFGS-B").x).reshape(points.shape)


def _apart(points: Points) -> NDArray[np.float64]:
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
