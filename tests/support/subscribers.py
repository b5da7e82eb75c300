"""Subscribers that edit their definitions and release the old ones, in a storm of brokers."""

from __future__ import annotations

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.model.topic import Attribute, Topic
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ConditionUnknown,
    ReleaseSubscription,
    SubscriptionClosed,
    advertise,
    publish,
    watch,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support.storm import Storm

T = Topic("T", (Attribute("value", "float"),))
FORMS = {
    "a state": "topic T (value float)\nstate Warm on T [value > {}; value < {}] per source",
    "a state at a broker": "topic T (value float)\n"
    "state Warm on T [value > {}; value < {}] per source ordered 1 s late apply",
    "a guard": "topic T (value float)\nstate Warm on T [value > {} for 2 s; value < {}] per source",
}
LINKS = [("b1", "b0"), ("b2", "b0"), ("b3", "b1")]
HOMES = {"p0": "b1", "p1": "b2", "p2": "b3", "s0": "b0", "s1": "b3"}


class SubscriberScenario(Storm):
    """Four brokers, three publishers, and two subscribers with a log for each of their subscriptions."""

    def __init__(self, form, seed):
        super().__init__(LINKS, HOMES, seed)
        self.form, self.time, self.serial = form, 0, 0
        for name in ("p0", "p1", "p2"):
            self.net.ask(name, advertise("mine", advertisement_for(T, source=name)))
        self.logs, self.present, self.released = {}, {}, set()
        for who in ("s0", "s1"):
            self.edit(who)
        self.net.settle()

    def edit(self, who):
        """Another definition in place of the present one, which is released."""
        if who in self.present:
            self.release(who)
        self.serial += 1
        name = self.present[who] = f"{who} {self.serial}"
        self.logs[name] = []
        high = self.chance.choice((20, 25, 30))
        self.net.ask(who, watch(name, FORMS[self.form].format(high, high - 5)))

    def release(self, who):
        name = self.present.pop(who)
        self.net.settle()
        self.receive()
        self.net.ask(who, ReleaseSubscription(name))
        self.released.add(name)
        self.logs[name].append("released")

    def say(self, name, value, *, late=0):
        self.time += SECOND
        self.net.advance(SECOND)
        event = Event("T", self.time - late, name, {"value": value}, self.time)
        self.net.ask(name, publish(to_content(event)))
        self.net.settle()
        self.receive()
        return event

    def receive(self):
        for who in ("s0", "s1"):
            for what in self.net.take(who):
                match what:
                    case ConditionChange(name, output) if output.status in ("ingress", "egress"):
                        self.logs[name].append((output.scope, output.status, output.event.sequence))
                    case ConditionUnknown(name, _, scope):
                        self.logs[name].append((scope, "unknown", None))
                    case SubscriptionClosed(name):
                        self.logs[name].append("closed")

    def heal(self):
        super().heal()
        self.net.settle()
        self.receive()
