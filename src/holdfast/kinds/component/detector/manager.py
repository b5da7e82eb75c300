"""Components on the nodes of a network: the information space and the manager beside a broker. [F50, F51,
F75, F76]"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from ....model.event import Status, Value
from ....model.instant import Instant
from ....model.space import Point, Rectangle
from . import component
from .knowledge import Knowledge
from .smc import Smc
from .stability import Stability, info_time, interval_for, observe
from .subscriptions import SearchWindow, TopicRegion, middle, subscriptions
from .topic_levels import levels

TIME, SOURCE, STATUS, SIGNATURE = "~time", "~source", "~status", "~signature"
"""Names of values that a delivered event has beside its attributes."""


class DeliveredEvent(Protocol):
    """An event as publish/subscribe delivers it.

    `client` is `sps/` followed by the name of the component. `time` is the time of publication. A `repeated`
    event does not change the stabilization interval.
    """

    @property
    def client(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def location(self) -> Point: ...
    @property
    def publisher(self) -> str: ...
    @property
    def time(self) -> Instant: ...
    @property
    def values(self) -> Mapping[str, Value]: ...
    @property
    def repeated(self) -> bool: ...


@dataclass(slots=True)
class Managed:
    """The state of the components on a node, and the delay of events to the node."""

    stability: Stability = field(default_factory=Stability)
    states: dict[str, component.InstantState] = field(default_factory=dict)
    windows: dict[str, SearchWindow] = field(default_factory=dict)
    """The area around the node in which each component searches for the closest reading."""
    found: dict[str, set[str]] = field(default_factory=dict)
    """For each component, the queries that have received a reading so near that no reading outside the window
    can be nearer."""


class Components:
    """The manager of an application's components on one node.

    The network calls `insert` for each component, `take` for each delivered event, and `advance` at the time
    that `due` returns.
    """

    def __init__(
        self, smcs: Mapping[str, Smc], space: Rectangle, at: Point, window: SearchWindow | None = None
    ) -> None:
        self._smcs, self._space, self._at, self._window = smcs, space, at, window
        self._levels = levels(smcs.values())

    def initial(self) -> Managed:
        """Return the initial state of a node."""
        return Managed()

    def insert(self, state: Managed, name: str) -> None:
        """Start the component `name` on the node."""
        state.states[name] = component.InstantState()
        state.found[name] = set()
        if self._window is not None:
            state.windows[name] = self._window

    def topic(self, name: str) -> str:
        """Return the topic of a component's events."""
        return self._smcs[name].topic

    def speaker(self, name: str, values: Mapping[str, Value]) -> str:
        """Return the name under which a scope of a component publishes its events."""
        signature = values.get(SIGNATURE)
        return name if signature is None else f"{name} {signature}"

    def needs(self, state: Managed, name: str) -> Iterator[TopicRegion]:
        """Yield the subscriptions that a component needs at the node."""
        for input in self._smcs[name].inputs.values():
            yield from subscriptions(input.query, self._at, self._space, state.windows.get(name))

    def widened(self, state: Managed, name: str) -> bool:
        """Enlarge the search window of a component whose queries have not yet found the closest reading.

        Return whether the window grew. The caller then subscribes to the larger region. [F64]
        """
        window = state.windows.get(name)
        wider = window and not self._closest(name) <= state.found[name] and window.wider()
        if not wider:
            return False
        state.windows[name] = wider
        return True

    def _closest(self, name: str) -> set[str]:
        """Return the queries of a component that select the closest location."""
        inputs = self._smcs[name].inputs.items()
        return {query for query, input in inputs if middle(input.query, self._at) is not None}

    def _finds(self, state: Managed, name: str, event: DeliveredEvent) -> None:
        """Mark the queries for which `event` is close enough that no event outside the search window can be
        closer."""
        for own_name in self._closest(name) - state.found[name] if name in state.windows else ():
            query = self._smcs[name].inputs[own_name].query
            at = middle(query, self._at)
            assert at is not None
            if event.topic in query.topics and math.dist(at, event.location) <= state.windows[name].half:
                state.found[name].add(own_name)

    def take(self, state: Managed, event: DeliveredEvent, now: Instant) -> None:
        """Give a delivered event to its component and update the stabilization interval. `now` is the node's
        clock."""
        name, known = event.client.removeprefix("sps/"), knowledge(event)
        if name not in state.states:
            return
        if not event.repeated:
            level = self._levels[self._smcs[name].topic]
            wanted = interval_for(max(now - known.time, 0), max(now - event.time, 0), level)
            state.stability = observe(state.stability, wanted, now)
        self._finds(state, name, event)
        component.take(self._smcs[name], state.states[name], known)

    def advance(self, state: Managed, now: Instant) -> Iterable[tuple[str, Point, dict[str, Any]]]:
        """Evaluate each component up to the InfoS time of its level. Yield the events as component, location
        and values."""
        for name, own in state.states.items():
            smc = self._smcs[name]
            until = info_time(state.stability, now, self._levels[smc.topic]) + 1
            for published in component.advance(smc, own, until):
                event = published.event
                values = dict(event.attributes) | {
                    TIME: event.time,
                    SOURCE: event.source,
                    STATUS: event.status,
                    SIGNATURE: event.signature,
                }
                yield name, event.at if event.at is not None and len(event.at) > 1 else self._at, values

    def due(self, state: Managed) -> Instant | None:
        """Return the time of the node's clock at which the next evaluation is possible, or `None`."""
        found = []
        for name, own in state.states.items():
            behind = self._levels[self._smcs[name].topic] * state.stability.interval
            found += [first[0][0] + behind + 1 for first in (own.held, own.wakes, own.holds) if first]
        return min(found, default=None)


def knowledge(event: DeliveredEvent) -> Knowledge:
    """Convert a delivered event, which is a reading or an event of a component, to knowledge."""
    attributes = {name: value for name, value in event.values.items() if not name.startswith("~")}
    status = cast("Status", event.values.get(STATUS, "atomic"))
    signature = event.values.get(SIGNATURE)
    return Knowledge(
        event.topic,
        int(str(event.values.get(TIME, event.time))),
        str(event.values.get(SOURCE, event.publisher)),
        attributes,
        tuple(event.location),
        None,
        status,
        None if signature is None else str(signature),
    )
