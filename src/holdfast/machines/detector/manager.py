"""Components on the nodes of a network: the information space and manager that stand beside a broker.

[F50, F51, F75, F76]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...model.event import Status, Value
from ...model.instant import Instant
from ...model.space import Point, Rectangle
from . import component
from .dag import levels
from .knowledge import Knowledge
from .smc import Smc
from .stability import Stability, info_time, needed, observed
from .subscriptions import Subscription, Window, middle, subscriptions

TIME, SOURCE, STATUS, SIGNATURE = "~time", "~source", "~status", "~signature"
"""What an event of a component says beside its attributes."""


class Heard(Protocol):
    """An event as publish/subscribe tells of it; its client is the component, after ``sps/``."""

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
    """The components of a node, and how long events take to it."""

    stability: Stability = field(default_factory=Stability)
    states: dict[str, component.State] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    """How far the components look that want what is closest."""
    found: dict[str, set[str]] = field(default_factory=dict)
    """Their queries that have heard something so near that nothing beyond is nearer."""


class Components:
    """A manager for the components of an application; each node has one of its own."""

    def __init__(
        self, smcs: Mapping[str, Smc], space: Rectangle, at: Point, window: Window | None = None
    ) -> None:
        self._smcs, self._space, self._at, self._window = smcs, space, at, window
        self._levels = levels(smcs.values())

    def initial(self) -> Managed:
        return Managed()

    def insert(self, state: Managed, name: str) -> None:
        state.states[name] = component.State()
        state.found[name] = set()
        if self._window is not None:
            state.windows[name] = self._window

    def topic(self, name: str) -> str:
        return self._smcs[name].topic

    def speaker(self, name: str, values: Mapping[str, Value]) -> str:
        signature = values.get(SIGNATURE)
        return name if signature is None else f"{name} {signature}"

    def needs(self, state: Managed, name: str) -> Iterator[Subscription]:
        for one in self._smcs[name].inputs.values():
            yield from subscriptions(one.query, self._at, self._space, state.windows.get(name))

    def widened(self, state: Managed, name: str) -> bool:
        """Where nothing is closest yet in the window of a query, look farther; whether one can.  [F64]"""
        window = state.windows.get(name)
        wider = window and not self._closest(name) <= state.found[name] and window.wider()
        if not wider:
            return False
        state.windows[name] = wider
        return True

    def _closest(self, name: str) -> set[str]:
        inputs = self._smcs[name].inputs.items()
        return {each for each, one in inputs if middle(one.query, self._at) is not None}

    def _finds(self, state: Managed, name: str, event: Heard) -> None:
        for each in self._closest(name) - state.found[name] if name in state.windows else ():
            query = self._smcs[name].inputs[each].query
            at = middle(query, self._at)
            assert at is not None
            if event.topic in query.topics and math.dist(at, event.location) <= state.windows[name].half:
                state.found[name].add(each)

    def take(self, state: Managed, event: Heard, now: Instant) -> None:
        name, known = event.client.removeprefix("sps/"), knowledge(event)
        if name not in state.states:
            return
        if not event.repeated:
            level = self._levels[self._smcs[name].topic]
            wanted = needed(max(now - known.time, 0), max(now - event.time, 0), level)
            state.stability = observed(state.stability, wanted, now)
        self._finds(state, name, event)
        component.take(self._smcs[name], state.states[name], known)

    def advance(self, state: Managed, now: Instant) -> Iterable[tuple[str, Point, dict[str, Any]]]:
        """Each level as far as its InfoS time."""
        for name, own in state.states.items():
            smc = self._smcs[name]
            until = info_time(state.stability, now, self._levels[smc.topic]) + 1
            for told in component.advance(smc, own, until):
                event = told.event
                values = dict(event.attributes) | {
                    TIME: event.time,
                    SOURCE: event.source,
                    STATUS: event.status,
                    SIGNATURE: event.signature,
                }
                yield name, event.at if event.at is not None and len(event.at) > 1 else self._at, values

    def due(self, state: Managed) -> Instant | None:
        """When InfoS time has come so far that something can be evaluated."""
        found = []
        for name, own in state.states.items():
            behind = self._levels[self._smcs[name].topic] * state.stability.interval
            found += [first[0][0] + behind + 1 for first in (own.held, own.wakes, own.ripe) if first]
        return min(found, default=None)


def knowledge(event: Heard) -> Knowledge:
    """What an event says: a reading, or what a component found."""
    attributes = {name: value for name, value in event.values.items() if not name.startswith("~")}
    status: Any = event.values.get(STATUS, "atomic")
    said: Status = status
    signature = event.values.get(SIGNATURE)
    return Knowledge(
        event.topic,
        int(str(event.values.get(TIME, event.time))),
        str(event.values.get(SOURCE, event.publisher)),
        attributes,
        tuple(event.location),
        None,
        said,
        None if signature is None else str(signature),
    )
