"""A broker and a client on one mote talk without the radio; to others there is one connection each."""

from __future__ import annotations

from collections import deque

from holdfast.model.protocol import Asked, Deliver, Fired, Input, Received, Send, SetTimer, Started
from holdfast.network.motes.connection import Terms
from holdfast.network.motes.mote import BROKER, PUBLISHER, SUBSCRIBER, Mote
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    CbpsClient,
    ReceivedNotification,
    Submit,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import bytes_of

TERMS = Terms(rto=1_000, tries=3, queue=10, segment=50, size=bytes_of, losable=lambda message: False)
HEAT = Filter((Constraint("topic", "text", "=", "heat"),))


def no_conditions(definition: str):
    raise AssertionError(definition)


def broker() -> CbpsBroker:
    return CbpsBroker(no_conditions)


def client(name: str) -> CbpsClient:
    return CbpsClient(name, no_conditions, lease=9_000)


class MoteHarness:
    """Motes whose frames arrive at once."""

    def __init__(self, **machines: Mote) -> None:
        self.machines = machines
        self.states = {name: machine.initial() for name, machine in machines.items()}
        self.deliveries: list[tuple[str, str, float]] = []
        self.timers: set[tuple[str, str]] = set()
        self.frames = 0
        self.on_the_way: deque[tuple[str, Received]] = deque()
        for name in machines:
            self._take(name, Started(0, 0))
        self._settle()

    def notify(self, name: str, given: Input) -> None:
        self._take(name, given)
        self._settle()

    def ask(self, name: str, role: str, request: Submit) -> None:
        self.notify(name, Asked(1, (role, request)))

    def _settle(self) -> None:
        while self.on_the_way:
            self._take(*self.on_the_way.popleft())

    def _take(self, name: str, given: Input) -> None:
        self.states[name], effects = self.machines[name].handle(self.states[name], given)
        for effect in effects:
            match effect:
                case Send(to, frame):
                    self.frames += 1
                    if to in self.states:
                        self.on_the_way.append((to, Received(0, name, frame)))
                case Deliver(ReceivedNotification(subscription, _, content)):
                    self.deliveries.append((name, subscription, content["value"]))
                case SetTimer(timer):
                    self.timers.add((name, timer))


def publishing(value: float) -> Submit:
    return publish({"topic": "heat", "value": value})


def test_machines_on_one_mote_do_not_use_the_radio():
    roles = {BROKER: broker(), PUBLISHER: client("p"), SUBSCRIBER: client("s")}
    motes = MoteHarness(a=Mote(roles, (), TERMS))
    motes.ask("a", PUBLISHER, advertise("heat", HEAT))
    motes.ask("a", SUBSCRIBER, subscribe("mine", HEAT))
    motes.ask("a", PUBLISHER, publishing(1.0))
    assert motes.deliveries == [("a", "mine", 1.0)]
    assert motes.frames == 0


def test_a_client_without_a_broker_has_its_connection_to_one():
    motes = MoteHarness(
        b=Mote({BROKER: broker(), SUBSCRIBER: client("s")}, ("c",), TERMS),
        c=Mote({PUBLISHER: client("p")}, ("b",), TERMS),
    )
    motes.ask("c", PUBLISHER, advertise("heat", HEAT))
    motes.ask("b", SUBSCRIBER, subscribe("theirs", HEAT))
    motes.ask("c", PUBLISHER, publishing(2.0))
    assert motes.deliveries == [("b", "theirs", 2.0)]
    assert motes.frames > 4


def test_timers_go_to_the_machine_that_set_them():
    motes = MoteHarness(a=Mote({BROKER: broker(), SUBSCRIBER: client("s")}, ("b",), TERMS))
    assert motes.timers == {("a", "subscriber renew"), ("a", "connection b")}
    motes.ask("a", SUBSCRIBER, subscribe("mine", HEAT))
    assert ("a", "broker leases") in motes.timers
    before = motes.frames
    motes.notify("a", Fired(2, "connection b"))
    assert motes.frames == before + 1, "hello is said again"
    motes.timers.clear()
    motes.notify("a", Fired(3_000, "subscriber renew"))
    assert ("a", "subscriber renew") in motes.timers
