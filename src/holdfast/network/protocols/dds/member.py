"""The base class of a node's roles: the deployment, and the node's identity."""

from __future__ import annotations

import msgspec

from ....model.protocol import Peer
from .deployment import DdsDeployment
from .eatdds import EatddsRotation
from .modes import MODES, DdsMode
from .state import DdsState
from .topic import DdsTopic, TopicId


class DdsRole(msgspec.Struct, frozen=True):
    """One node of a deployment."""

    deployment: DdsDeployment
    me: Peer

    @property
    def mode(self) -> DdsMode:
        """The mode of the deployment."""
        return MODES[self.deployment.mode]

    @property
    def rotation(self) -> EatddsRotation:
        """The node's part in EATDDS."""
        return EatddsRotation(self.deployment, self.me)

    def topic(self, id: TopicId) -> DdsTopic:
        """Return the topic with an id."""
        return self.deployment.topics.by_id[id]

    def rendezvous(self, state: DdsState, topic: TopicId) -> Peer:
        """Return the RN of a topic as known here."""
        if self.mode.rotates:
            return self.rotation.holder(state, topic).node
        return self.deployment.rendezvous(topic)
