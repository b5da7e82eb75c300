"""The expected notifications, computed with rolling windows of pandas. [F85]

This code shares nothing with Holdfast's machines. For each road it computes the mean of a window at each
reading, and just after each reading leaves the window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UsageError
from holdfast.model.instant import Duration, Instant

from .definition import CONGESTION, HIGH, LOOP_WINDOW, NEAR, REACH, SLOW, SPEED_WINDOW, Limits
from .scene import JourneyScene, user_name

if TYPE_CHECKING:
    import pandas as pd


class Notice(NamedTuple):
    """A notification as far as two computations must agree."""

    component: str
    scope: str | None
    status: str
    time: Instant
    since: Instant | None
    value: float | None


def notifications_of(scene: JourneyScene, limits: Limits) -> list[Notice]:
    """Return all notifications of a scene, in order."""
    pandas = _pandas()
    times = pandas.to_datetime(scene.traffic.times, unit="us")
    paces = np.where(scene.traffic.vehicles > 0, scene.paces, np.nan)
    columns = {"road": scene.traffic.roads, "time": times, "loop": scene.densities, "pace": paces}
    readings = pandas.DataFrame(columns)
    last = pandas.Timestamp(scene.last, unit="us")
    notifications: list[Notice] = []
    for index, of_road in readings.groupby("road"):
        road = scene.map.roads[int(index)]
        by_time = of_road.set_index("time")
        loop = _window_means(by_time["loop"], LOOP_WINDOW, last)
        pace = _window_means(by_time["pace"].dropna(), SPEED_WINDOW, last)
        high = _toggles(loop, loop > limits.busy, loop < limits.busy)
        slow = _toggles(pace, pace < limits.slow, pace > limits.fast)
        congested = _congestion(high, slow)
        for component, events in ((HIGH, high), (SLOW, slow), (CONGESTION, congested)):
            notifications += _lasting(component, road.name, events)
        notifications += _near(scene, road.name, scene.map.hops[:, road.start] <= REACH, congested)
    return sorted(notifications, key=order)


def order(notifications: Notice) -> Any:
    """Return the sort key of a notification."""
    return (notifications.time, notifications.component, notifications.scope or "", notifications.status)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        why = "the computation to compare with needs pandas: pip install 'holdfast[spark]'"
        raise UsageError(why) from error
    return pandas


def _window_means(values: pd.Series, window: Duration, last: pd.Timestamp) -> pd.Series:
    """Compute the mean of a window at each reading, and 1 µs after each reading leaves the window."""
    pandas = _pandas()
    length = pandas.Timedelta(window, unit="us")
    left = values.index + length + pandas.Timedelta(1, unit="us")
    at = values.index.union(left)
    rolling = values.reindex(at[at <= last]).rolling(length, min_periods=1, closed="both")
    return rolling.apply(_mean, raw=True)


def _mean(values: NDArray[np.float64]) -> float:
    there = values[~np.isnan(values)]
    return math.fsum(there) / len(there)


def _toggles(values: pd.Series, starts: pd.Series, ends: pd.Series) -> pd.DataFrame:
    """Return when a condition starts (1) and ends (-1), with the values at these times."""
    state = values.where(starts | ends).mask(starts, 1.0).mask(ends, 0.0).ffill().fillna(0.0)
    change = state.diff().fillna(state)
    return _pandas().DataFrame({"change": change, "value": values})[change != 0]


def _congestion(high: pd.DataFrame, slow: pd.DataFrame) -> pd.DataFrame:
    """Return the congestion of a road: it starts when the road is busy and slow, and ends when it is no
    longer slow.
    """
    at = high.index.union(slow.index)
    busy = high["change"].reindex(at).ffill() == 1
    slowly = slow["change"].reindex(at).ffill()
    level = slow["value"].reindex(at).ffill()
    return _toggles(level, busy & (slowly == 1), slowly == -1)


def _lasting(component: str, scope: str, events: pd.DataFrame) -> list[Notice]:
    since: Instant | None = None
    found = []
    for at, change, value in zip(_micros(events), events["change"], events["value"], strict=True):
        status = "ingress" if change == 1 else "egress"
        found.append(Notice(component, scope, status, at, since, float(value)))
        since = at if change == 1 else None
    return found


def _near(scene: JourneyScene, road: str, close: NDArray[np.bool_], congested: pd.DataFrame) -> list[Notice]:
    """Return a report for each start and end to every user whose last junction is near the road."""
    return [
        Notice(NEAR, f"{user_name(int(user))},{road}", "atomic", at, None, float(value))
        for at, value in zip(_micros(congested), congested["value"], strict=True)
        for user in np.flatnonzero(close[scene.users[:, np.searchsorted(scene.times, at, side="right") - 1]])
    ]


def _micros(events: pd.DataFrame) -> list[Instant]:
    return [int(at) for at in events.index.astype("datetime64[us]").astype("int64")]
