"""Points for junctions: a component measures distances between points, not along roads.

Junctions are put into space so that two of them are at most ``reach`` apart exactly if there are at most
``reach`` roads between them; the predicate of the thesis' Table 5.16 then stands as printed.
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
    """A point of three coordinates for each junction; the first attempt that is exact."""
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
    """Where to begin: distances as near to those along roads as three dimensions allow (classical
    scaling), shaken."""
    far = np.minimum(hops, 4.0 * reach)
    inner = -0.5 * (far**2 - (far**2).mean(0) - (far**2).mean(1)[:, None] + (far**2).mean())
    values, vectors = np.linalg.eigh(inner)
    points = np.zeros((len(hops), 3))
    axes = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.0))
    points[:, : axes.shape[1]] = axes
    random: Points = np.random.default_rng(seed).normal(0.0, 0.3, points.shape)
    return 0.7 * points + random


def _settle(near: NDArray[np.bool_], points: Points, reach: int) -> Points:
    """Points moved until none is on the wrong side, as far as that can be had."""
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
