"""The events that a subscription is owed: those that take part in a complex event. [J2]

It is written from the definition, for arrays, independently of the protocols whose recall it judges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..series import Times

Taking = list[NDArray[np.bool_]]


def taking_part(matching: Sequence[Times], within: int) -> Taking:
    """Return for each attribute which of its matching events are in a complex event.

    Events match if the last is less than ``within`` later than the first: they lie in a half-open window that
    begins with one of them. ``matching`` contains the times of each attribute in order.

    >>> a, b = taking_part([np.array([0, 9, 20]), np.array([5, 29])], 10)
    >>> a.tolist(), b.tolist()
    ([True, True, True], [True, True])
    >>> a, b = taking_part([np.array([0, 9, 20]), np.array([10, 30])], 10)
    >>> a.tolist(), b.tolist()
    ([False, True, False], [True, False])
    """
    starts = np.unique(np.concatenate(matching))
    complete = np.ones(len(starts), np.bool_)
    for times in matching:
        complete &= np.searchsorted(times, starts + within) > np.searchsorted(times, starts)
    found = np.concatenate(([0], np.cumsum(complete)))
    return [
        found[np.searchsorted(starts, times, "right")]
        > found[np.searchsorted(starts, times - within, "right")]
        for times in matching
    ]
