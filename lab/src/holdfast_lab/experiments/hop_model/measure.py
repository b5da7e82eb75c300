"""Measure hops on a running overlay: each broker runs, and every notification is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import ReceivedNotification, advertise, publish, subscribe
from holdfast.network.protocols.cbps.content import Constraint, Filter

from .network import FanOuts

ROOT = "root"


class Travelled(NamedTuple):
    """Counts for some publishers that sent a notification to each leaf: notifications, links between brokers
    that they crossed, and those that crossed the root.
    """

    sent: int
    hops: int
    over_root: int


def place(path: Sequence[int]) -> str:
    """Return the name of a broker, given its path from the root."""
    return ".".join([ROOT, *map(str, path)])


def paths(network: FanOuts, depth: int) -> Iterator[tuple[int, ...]]:
    """Return the paths from the root to all brokers of a level."""
    return product(*(range(children) for children in network[:depth]))


def build_overlay(network: FanOuts) -> Overlay:
    """Build the brokers of a network and connect them, beginning with the leaves.

    Every broker learns all connections. Beginning with the root would take twice as many messages.
    """
    overlay = Overlay()
    for depth in reversed(range(len(network) + 1)):
        children = range(network[depth]) if depth < len(network) else ()
        for path in paths(network, depth):
            overlay.broker(place(path), to=[place((*path, child)) for child in children])
        overlay.settle()
    return overlay


def travel(network: FanOuts, publishers: Sequence[Sequence[int]]) -> Travelled:
    """Publish a notification for each leaf from some leaves; one subscriber at each leaf receives it.

    All leaves of a network are equivalent, so the mean for one publisher is the mean for all.
    """
    overlay = build_overlay(network)
    ends = [place(path) for path in paths(network, len(network))]
    names = [f"publisher {number}" for number, _ in enumerate(publishers, start=1)]
    for name, path in zip(names, publishers, strict=True):
        overlay.client(name, place(path))
        overlay.settle()
        overlay.ask(name, advertise("all", Filter((Constraint("for", "text", "any"),))))
    for end in ends:
        overlay.client(f"at {end}", end)
        overlay.ask(f"at {end}", subscribe("mine", Filter((Constraint("for", "text", "=", end),))))
    overlay.settle()
    for name in names:
        for end in ends:
            overlay.ask(name, publish({"for": end}))
        overlay.settle()
        for end in ends:
            (received,) = overlay.take(f"at {end}")
            assert isinstance(received, ReceivedNotification) and received.content == {"for": end}
    crossed: Counter[str] = Counter()
    for (_, to, cause), count in overlay.traffic.items():
        if cause == "notification" and to.startswith(ROOT):
            crossed[to] += count
    return Travelled(len(ends) * len(names), crossed.total(), crossed[ROOT])
