"""One run: a network, its subscriptions, and the replay of all events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from holdfast.model.correlation import Simple
from holdfast.network.overlay.memory.fsf import FsfNetwork
from holdfast.network.protocols.fsf.covering import Box, Boxes, ExactCovering, ProbabilisticCovering, Verdict
from holdfast.network.protocols.fsf.policy import POLICIES, FsfPolicy

from .grid import FsfCell, FsfMeasurement
from .network import FsfLayout, layout
from .setting import FsfSetting
from .stream import Recording
from .workload import FsfSubscription, workload

EXACTLY = ExactCovering()


@dataclass(frozen=True)
class Draw:
    """The random parts of a run: the network, and the subscriptions in their order."""

    layout: FsfLayout
    subscriptions: tuple[FsfSubscription, ...]
    redrawn: int


def draw(setting: FsfSetting, recording: Recording, seed: int, count: int) -> Draw:
    """Draw a network and subscriptions.

    They are the same for all approaches; fewer subscriptions are the first of more.
    """
    random = np.random.default_rng((seed, setting.nodes, setting.groups))
    laid = layout(setting, recording, random)
    users = laid.routers if setting.at_routers else (*laid.routers, *laid.sensors.values())
    return Draw(laid, *workload(setting, recording, users, count, random))


def measure(setting: FsfSetting, recording: Recording, cell: FsfCell) -> FsfMeasurement:
    """Measure the cost and the deliveries of one run."""
    drawn = draw(setting, recording, cell.seed, cell.subscriptions)
    chosen = policy(setting, cell.approach)
    audit = Audit(chosen.filtering) if isinstance(chosen.filtering, ProbabilisticCovering) else None
    network = FsfNetwork(drawn.layout.links, replace(chosen, filtering=audit) if audit else chosen, cell.seed)
    for name, attribute in recording.sensors:
        network.advertise(drawn.layout.sensors[name], name, attribute)
    for subscription in drawn.subscriptions:
        network.subscribe(subscription.node, subscription.name, subscription.wanted)
    network.publish_all(events(recording))
    delivered, surplus = count_arrivals(drawn.subscriptions, network.delivered)
    return FsfMeasurement(
        network.subscription_load,
        sum(network.subscriptions[link] for link in drawn.layout.between_routers),
        network.publication_load,
        sum(len(subscription.owed) for subscription in drawn.subscriptions),
        delivered,
        surplus,
        network.test_count,
        network.covered_count,
        network.undecided_count,
        audit.missed if audit else 0,
    )


@dataclass
class Audit:
    """Set filtering by points that counts how often exact filtering finds a gap which the points miss."""

    filtering: ProbabilisticCovering
    missed: int = 0

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator) -> Verdict:
        """Return the decision by points."""
        verdict = self.filtering.decide(box, boxes, chance)
        if verdict is Verdict.COVERED:
            self.missed += EXACTLY.decide(box, boxes, chance) is Verdict.NOT_COVERED
        return verdict


def policy(setting: FsfSetting, approach: str) -> FsfPolicy:
    """Return the policy of an approach, with the setting's number of points."""
    found = POLICIES[approach]
    if setting.points is None or not isinstance(found.filtering, ProbabilisticCovering):
        return found
    return replace(found, filtering=replace(found.filtering, most=setting.points))


def events(recording: Recording) -> list[Simple]:
    """Return all events in the order of time."""
    return sorted(
        (
            Simple(attribute, name, int(time), float(value))
            for name, attribute in recording.sensors
            for time, value in zip(*recording.series[name], strict=True)
        ),
        key=lambda event: (event.time, event.sensor),
    )


def count_arrivals(
    subscriptions: Iterable[FsfSubscription], delivered: Mapping[str, set[Simple]]
) -> tuple[int, int]:
    """Return how many due events were delivered, and how many others."""
    due = beyond = 0
    for subscription in subscriptions:
        came = {(event.sensor, event.time) for event in delivered[subscription.name]}
        due += len(came & subscription.owed)
        beyond += len(came - subscription.owed)
    return due, beyond
