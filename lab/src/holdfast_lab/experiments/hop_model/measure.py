"""The same on a running overlay: every broker is one, and every notification is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from holdfast.protocols.cbps.client import Heard, advertise, publish, subscribe
from holdfast.protocols.cbps.content import Constraint, Filter
from holdfast.runtimes.overlay.memory.brokers import Overlay

from .network import FanOuts

ROOT = "root"


class Travelled(NamedTuple):
    """What notifications of one publisher, one to each leaf, made: how many there were, how many links
    between brokers they crossed, and how many of them came by the root."""

    sent: int
    hops: int
    over_root: int


def place(path: Sequence[int]) -> str:
    """The name of a broker, by the way from the root."""
    return ".".join([ROOT, *map(str, path)])


def paths(network: FanOuts) -> Iterator[tuple[int, ...]]:
    """The ways from the root to all brokers, parents first."""
    for depth in range(len(network) + 1):
        yield from product(*(range(children) for children in network[:depth]))


def travel(network: FanOuts, publisher: Sequence[int]) -> Travelled:
    """Publish from one leaf a notification for each leaf, where somebody waits for it alone.

    The leaves of a network are alike, so the average from one of them is that from all.
    """
    overlay = Overlay()
    brokers = [place(path) for path in paths(network)]
    ends = [place(path) for path in paths(network) if len(path) == len(network)]
    for broker in brokers:
        parent = broker.rpartition(".")[0]
        overlay.broker(broker, to=[parent] if parent else [])
    overlay.client("publisher", place(publisher))
    overlay.settle()
    overlay.ask("publisher", advertise("all", Filter((Constraint("for", "text", "any"),))))
    for end in ends:
        overlay.client(f"at {end}", end)
        overlay.ask(f"at {end}", subscribe("mine", Filter((Constraint("for", "text", "=", end),))))
    overlay.settle()
    for end in ends:
        overlay.ask("publisher", publish({"for": end}))
    overlay.settle()
    for end in ends:
        (heard,) = overlay.take(f"at {end}")
        assert isinstance(heard, Heard) and heard.content == {"for": end}
    between = {
        (a, b): count
        for (a, b, cause), count in overlay.traffic.items()
        if cause == "notification" and b.startswith(ROOT)
    }
    over_root = sum(count for (_, b), count in between.items() if b == ROOT)
    return Travelled(len(ends), sum(between.values()), over_root)
