"""What a publisher drops itself: events that nobody wants, and those that move no bit anywhere.  [S5]

Its broker passes subscriptions on to it, as to another broker, and it runs a replica of each state filter: so
what cannot matter does not even cross the first connection.  Until the broker has answered that it has heard
of all that is promised, everything is sent.  An event that happens while a new subscription is on its way
from the broker counts as before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...model.protocol import Peer
from .bundle import is_stored
from .condition import Conditions, Replicated
from .content import Filter, matches, satisfied
from .filtering import Filtering
from .message import Answer, Bundle, Key, Part, Placement
from .routing import Stored
from .watch import Moment

SELF: Peer = ""
"""The way to this publisher's own events, for its replicas."""


@dataclass(slots=True)
class Sourcing:
    """The subscriptions that the broker has passed on, and the replicas of those that are state filters.
    ``asked`` counts the questions whether the broker has heard all, and ``answered`` is the last answer."""

    wanted: dict[Key, Bundle] = field(default_factory=dict)
    replicas: dict[Part, Filtering] = field(default_factory=dict)
    asked: int = 0
    answered: int = 0

    def forget(self) -> None:
        """The connection is lost: another will say what is wanted."""
        self.wanted.clear()
        self.replicas.clear()
        self.asked += 1

    def promised(self, filters: Iterable[Filter], moment: Moment) -> int:
        """Something is promised; the number of the question."""
        for filter_ in filters:
            for replica in self.replicas.values():
                if matches("advertisement", filter_, "subscription", replica.subscription.filter):
                    replica.advertised(SELF, filter_)
                    replica.tell(moment)
        self.asked += 1
        return self.asked

    def recalled(self, filters: Iterable[Filter]) -> None:
        """Something is promised no longer."""
        for filter_ in filters:
            for replica in self.replicas.values():
                if matches("advertisement", filter_, "subscription", replica.subscription.filter):
                    replica.unadvertised(SELF, filter_)

    def subscribed(
        self, broker: Peer, bundle: Bundle, conditions: Conditions, promises: Iterable[Filter], moment: Moment
    ) -> None:
        """The broker passes on what somebody wants."""
        self.unsubscribed(bundle.key)
        self.wanted[bundle.key] = bundle
        stored = Stored(bundle, broker)
        for i, subscription in enumerate(bundle.subscriptions):
            if subscription.state is None:
                continue
            condition = conditions(subscription.state.definition)
            if isinstance(condition, Replicated):
                replica = self.replicas[Part(bundle.key, i)] = Filtering(
                    Part(bundle.key, i), stored, condition
                )
                for promise in promises:
                    if matches("advertisement", promise, "subscription", subscription.filter):
                        replica.advertised(SELF, promise)
                replica.tell(moment)

    def unsubscribed(self, key: Key) -> None:
        """It is wanted no longer."""
        if (bundle := self.wanted.pop(key, None)) is not None:
            for i in range(len(bundle.subscriptions)):
                self.replicas.pop(Part(key, i), None)

    def about(self, message: Placement | Answer, moment: Moment) -> None:
        """The broker says something about a condition."""
        if (replica := self.replicas.get(message.of)) is not None:
            replica.from_below(message, moment)

    def lets(self, bundle: Bundle, moment: Moment) -> bool:
        """Whether a bundle is to be sent: somebody may want what it says, or it is more than that."""
        said = bundle.notifications
        addressed = is_stored(bundle) or bundle.slips or any(one.flood_forward for one in said)
        wanted, seen = bool(addressed) or self.asked != self.answered, []
        for content in (one.content for one in said):
            for key, one in self.wanted.items():
                for i, subscription in enumerate(one.subscriptions):
                    if not satisfied(subscription.filter, content):
                        continue
                    if (replica := self.replicas.get(Part(key, i))) is None:
                        wanted = True
                    elif (sight := replica.sees(content)) is not None:
                        seen.append((replica, sight))
                        wanted |= replica.passes(sight, SELF, moment)
        for replica, sight in seen if wanted else ():
            replica.went(sight, moment)
        return wanted
