"""What all parts of a node's middleware know: the deployment, and which node this is."""

from __future__ import annotations

import msgspec

from ...model.protocol import Peer
from .deployment import Deployment
from .eatdds import Eatdds
from .modes import MODES, Mode
from .state import State
from .topic import Topic, TopicId


class Member(msgspec.Struct, frozen=True):
    """One node of a deployment."""

    deployment: Deployment
    me: Peer

    @property
    def mode(self) -> Mode:
        return MODES[self.deployment.mode]

    @property
    def rotation(self) -> Eatdds:
        return Eatdds(self.deployment, self.me)

    def topic(self, id: TopicId) -> Topic:
        return self.deployment.topics.by_id[id]

    def rendezvous(self, state: State, topic: TopicId) -> Peer:
        """The RN of a topic, as far as this node knows."""
        if self.mode.rotates:
            return self.rotation.known(state, topic).node
        return self.deployment.rendezvous(topic)
