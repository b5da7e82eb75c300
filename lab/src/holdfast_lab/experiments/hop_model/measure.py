"""The same on a running overlay: every broker is one, and every notification is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import ReceivedNotification, advertise, publish, subscribe
from holdfast.network.protocols.cbps.content import Constraint, Filter

from .network import FanOuts

ROOT = "root"


class Travelled(NamedTuple):
    """What notifications of publishers, one to each leaf, made: how many there were, how many links
    between brokers they crossed, and how many of them came by the root."""

    sent: int
    hops: int
    over_root: int


def place(path: Sequence[int]) -> str:
    """The name of a broker, by the way from the root."""
    return ".".join([ROOT, *map(str, path)])


def paths(network: FanOuts, depth: int) -> Iterator[tuple[int, ...]]:
    """The ways from the root to all brokers of a level."""
    return product(*(range(children) for children in network[:depth]))


def build_overlay(network: FanOuts) -> Overlay:
    """The brokers of a network, joined from the leaves on.

    Every broker learns who is joined to whom.  What is joined early is told to few: joined from the root on,
    they would need twice as many messages.
    """
    overlay = Overlay()
    for depth in reversed(range(len(network) + 1)):
        children = range(network[depth]) if depth < len(network) else ()
        for path in paths(network, depth):
            overlay.broker(place(path), to=[place((*path, child)) for child in children])
        overlay.settle()
    return overlay


def travel(network: FanOuts, publishers: Sequence[Sequence[int]]) -> Travelled:
    """Publish from some leaves a notification for each leaf, where somebody waits for it alone.

    The leaves of a network are alike, so the average from one of them is that from all.
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
    between = {
        (a, b): count
        for (a, b, cause), count in overlay.traffic.items()
        if cause == "notification" and b.startswith(ROOT)
    }
    over_root = sum(count for (_, b), count in between.items() if b == ROOT)
    return Travelled(len(ends) * len(names), sum(between.values()), over_root)
