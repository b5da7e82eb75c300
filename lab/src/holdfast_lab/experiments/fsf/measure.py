"""One run: a network, its subscriptions, and the replay of all events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from holdfast.model.correlation import Simple
from holdfast.protocols.fsf.covering import Box, Boxes, Exact, Probabilistic, Verdict
from holdfast.protocols.fsf.policy import POLICIES, Policy
from holdfast.runtimes.overlay.memory.fsf import FsfNetwork

from .grid import Cell, Measured
from .network import Layout, layout
from .setting import Setting
from .stream import Stretch
from .workload import Subscription, workload

EXACTLY = Exact()


@dataclass(frozen=True)
class Draw:
    """What chance decides: the network, and who subscribes to what, in which order."""

    layout: Layout
    subscriptions: tuple[Subscription, ...]
    redrawn: int


def draw(setting: Setting, stretch: Stretch, seed: int, count: int) -> Draw:
    """The same for all approaches; fewer subscriptions are the first of more."""
    random = np.random.default_rng((seed, setting.nodes, setting.groups))
    laid = layout(setting, stretch, random)
    users = laid.routers if setting.at_routers else (*laid.routers, *laid.sensors.values())
    return Draw(laid, *workload(setting, stretch, users, count, random))


def measure(setting: Setting, stretch: Stretch, cell: Cell) -> Measured:
    """What a network with so many subscriptions costs and brings."""
    drawn = draw(setting, stretch, cell.seed, cell.subscriptions)
    chosen = policy(setting, cell.approach)
    audit = Audit(chosen.filtering) if isinstance(chosen.filtering, Probabilistic) else None
    network = FsfNetwork(drawn.layout.links, replace(chosen, filtering=audit) if audit else chosen, cell.seed)
    for name, attribute in stretch.sensors:
        network.advertise(drawn.layout.sensors[name], name, attribute)
    for subscription in drawn.subscriptions:
        network.subscribe(subscription.node, subscription.name, subscription.wanted)
    network.publish_all(events(stretch))
    delivered, surplus = arrived(drawn.subscriptions, network.delivered)
    return Measured(
        network.subscription_load,
        sum(network.subscriptions[link] for link in drawn.layout.between_routers),
        network.publication_load,
        sum(len(subscription.owed) for subscription in drawn.subscriptions),
        delivered,
        surplus,
        network.asked,
        network.covered,
        network.undecided,
        audit.missed if audit else 0,
    )


@dataclass
class Audit:
    """Set filtering by points, and how often the exact one finds a gap that it has not found."""

    filtering: Probabilistic
    missed: int = 0

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator) -> Verdict:
        """What points say."""
        verdict = self.filtering.decide(box, boxes, chance)
        if verdict is Verdict.COVERED:
            self.missed += EXACTLY.decide(box, boxes, chance) is Verdict.NOT_COVERED
        return verdict


def policy(setting: Setting, approach: str) -> Policy:
    """The approach, with the setting's number of points."""
    found = POLICIES[approach]
    if setting.points is None or not isinstance(found.filtering, Probabilistic):
        return found
    return replace(found, filtering=replace(found.filtering, most=setting.points))


def events(stretch: Stretch) -> list[Simple]:
    """All that is published, in the order of time."""
    return sorted(
        (
            Simple(attribute, name, int(time), float(value))
            for name, attribute in stretch.sensors
            for time, value in zip(*stretch.series[name], strict=True)
        ),
        key=lambda event: (event.time, event.sensor),
    )


def arrived(subscriptions: Iterable[Subscription], delivered: Mapping[str, set[Simple]]) -> tuple[int, int]:
    """How many events have come that were owed, and how many that were not."""
    due = beyond = 0
    for subscription in subscriptions:
        came = {(event.sensor, event.time) for event in delivered[subscription.name]}
        due += len(came & subscription.owed)
        beyond += len(came - subscription.owed)
    return due, beyond
