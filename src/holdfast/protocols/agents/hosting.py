"""A broker that starts agents: one beside each publisher that a strategy describes.  [B30, B35–B39, B69]

An agent is a client like any other, of which only the connection is short: what the broker sends to it is
handed to it here, and what it sends comes in as from a connection.  So the broker needs to know nothing of
agents.  An agent is there while a stored active subscription and an advertisement that came straight from a
publisher match, whichever came first; when either goes, it goes.

Agents talk by address.  Each lays a way to itself: a subscription to its address that a slip takes to the
publisher beside which the other lives.  So another agent can be reached if and only if its subscription is
stored here, and a lost connection on the way is known by that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.instant import Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Peer, Received, Send
from ..cbps.broker import Broker, BrokerState
from ..cbps.client import Client, ClientState, Heard, Submit, publish, subscribe
from ..cbps.connecting import Connections
from ..cbps.content import Constraint, Content, Filter, matches
from ..cbps.context import within
from ..cbps.message import Bundle, Key, Notification, RoutingSlip, Strategy, Subscription
from ..cbps.parts import pins
from ..cbps.routing import Routing
from .library import ADDRESS, RELATIONSHIP, Made, Message, Part, started
from .talk import Reading, Report, Wants

MARK = "agent "
"""How the names of connections of agents begin; a connection of somebody else never does."""

Place = tuple[Key, int, int]
"""Which strategy an agent is of: the bundle, the active subscription in it, the strategy in that."""


@dataclass(slots=True)
class Hosted:
    """An agent at work, and the client through which it speaks."""

    peer: Peer
    part: Part
    made: Made
    client: Client
    state: ClientState
    reached: set[str] = field(default_factory=set)
    """The other agents that can be reached, by address."""
    kept: list[tuple[str, Any]] = field(default_factory=list)
    """What others said before they could be answered."""


@dataclass(slots=True)
class HostingState:
    """The broker's state, and the agents."""

    broker: BrokerState
    agents: dict[Place, Hosted] = field(default_factory=dict)
    refused: dict[Place, str] = field(default_factory=dict)
    started: int = 0
    """How many agents were started: one that is started again has a new name, so that it is heard."""
    is_asked: bool = False
    """Whether an active subscription has ever come; until then a broker is nothing but a broker."""

    @property
    def connections(self) -> Connections:
        """How the broker is joined to others."""
        return self.broker.connections

    @property
    def routing(self) -> Routing:
        """What the broker has stored."""
        return self.broker.routing

    @property
    def account(self) -> dict[str, int]:
        """What the broker has done, and the agents that it runs, if any."""
        return {**self.broker.account, **({"agents": len(self.agents)} if self.agents else {})}


@dataclass(frozen=True)
class Hosting:
    """The machine: a broker that starts at most ``most`` agents."""

    broker: Broker
    most: int = 20_000

    def initial(self) -> HostingState:
        return HostingState(self.broker.initial())

    def handle(self, state: HostingState, given: Input) -> tuple[HostingState, list[Effect]]:
        turn = _Turn(self, state, given.now)
        turn.run(given)
        return state, turn.effects


class _Turn:
    """The work that one input makes, with all that agents add to it."""

    def __init__(self, hosting: Hosting, state: HostingState, now: Instant) -> None:
        self.hosting, self.state, self.now = hosting, state, now
        self.inputs: deque[Input] = deque()
        self.effects: list[Effect] = []
        self.by_peer = {hosted.peer: hosted for hosted in state.agents.values()}

    def run(self, given: Input) -> None:
        if isinstance(given, Received) and given.sender.startswith(MARK):
            return  # nobody outside is an agent
        self.inputs.append(given)
        while self.inputs:
            changes = False
            while self.inputs:
                one = self.inputs.popleft()
                changes |= not (isinstance(one, Received) and _only_says(one.message))
                self.state.is_asked |= isinstance(one, Received) and _is_active(one.message)
                self.take(one)
            if changes and self.state.is_asked:
                self.place()

    def take(self, given: Input) -> None:
        self.state.broker, effects = self.hosting.broker.handle(self.state.broker, given)
        for effect in effects:
            if isinstance(effect, Send) and effect.to.startswith(MARK):
                if hosted := self.by_peer.get(effect.to):
                    self.client(hosted, Received(self.now, "broker", effect.message))
            else:
                self.effects.append(effect)

    # --- which agents there are ---

    def place(self) -> None:
        """Start the agents that are called for, end the others, and tell each whom it can reach."""
        wanted = dict(self.called_for())
        for place in [place for place in self.state.agents if place not in wanted]:
            self.end(place)
        for place, strategy in wanted.items():
            if place not in self.state.agents and place not in self.state.refused:
                self.start(place, strategy)
        here = self.addresses()
        for hosted in list(self.state.agents.values()):
            self.reach(hosted, here)

    def called_for(self) -> Iterator[tuple[Place, Strategy]]:
        """Strategies whose slip matches what a publisher on this broker advertises."""
        stored = list(self.state.routing.in_force.values())
        active = [one.bundle for one in stored if one.bundle.active]
        if not active:
            return
        near = [
            advertisement.filter
            for one in stored
            if one.bundle.context and one.bundle.context.hop_count == 1 and not one.source.startswith(MARK)
            for advertisement in one.bundle.advertisements
        ]
        for bundle in active:
            for i, subscription in enumerate(bundle.active):
                for j, strategy in enumerate(subscription.strategies):
                    if any(matches("subscription", strategy.slip, "advertisement", one) for one in near):
                        yield (bundle.key, i, j), strategy

    def start(self, place: Place, strategy: Strategy) -> None:
        """Construct an agent, and let it begin.  [B35]"""
        try:
            if len(self.state.agents) >= self.hosting.most:
                raise UsageError(f"this broker has {self.hosting.most} agents, and takes no more")
            part, made = started(strategy)
        except UsageError as error:
            self.state.refused[place] = str(error)
            return
        self.state.started += 1
        client = Client(f"{part.name} {self.now} {self.state.started}", self.hosting.broker.conditions)
        hosted = Hosted(f"{MARK}{part.name} {place}", part, made, client, client.initial())
        self.state.agents[place] = self.by_peer[hosted.peer] = hosted
        hosted.state.sequence = self.now
        self.inputs.append(Joined(self.now, hosted.peer))
        self.client(hosted, Joined(self.now, "broker"))
        self.ask(hosted, subscribe("readings", strategy.slip, incoming=(within(1),)))
        mine = Subscription(Filter((Constraint(ADDRESS, "text", "=", part.name),)))
        slips = tuple(RoutingSlip("subscription", home) for _, home in part.partners)
        self.ask(hosted, Submit(Bundle(Key("", 0), slips=slips, subscriptions=(mine,)), "address"))

    def end(self, place: Place) -> None:
        hosted = self.state.agents.pop(place)
        del self.by_peer[hosted.peer]
        self.inputs.append(Left(self.now, hosted.peer, "the agent has ended"))

    # --- whom an agent can reach ---

    def addresses(self) -> set[str]:
        """The addresses to which a way is laid here."""
        found = set()
        for stored in self.state.routing.in_force.values():
            for subscription in stored.bundle.subscriptions if stored.bundle.slips else ():
                address = pins(subscription.filter).get(ADDRESS)
                if isinstance(address, str):
                    found.add(address)
        return found

    def reach(self, hosted: Hosted, here: set[str]) -> None:
        for name, _ in hosted.part.partners:
            if name in hosted.reached and name not in here:
                hosted.reached.discard(name)
                hosted.kept = [(sender, said) for sender, said in hosted.kept if sender != name]
                self.want(hosted, hosted.made.agent.lost(_short(name)))
            elif name in here and name not in hosted.reached:
                hosted.reached.add(name)
                self.want(hosted, hosted.made.agent.found(_short(name)))
                said = [message for sender, message in hosted.kept if sender == name]
                hosted.kept = [(sender, message) for sender, message in hosted.kept if sender != name]
                for message in said:
                    self.want(hosted, hosted.made.agent.hear(_short(name), message))

    # --- what agents hear and want ---

    def client(self, hosted: Hosted, given: Input) -> None:
        """Let the client of an agent take something."""
        hosted.state, effects = hosted.client.handle(hosted.state, given)
        for effect in effects:
            if isinstance(effect, Send):
                self.inputs.append(Received(self.now, hosted.peer, effect.message))
            elif isinstance(effect, Deliver) and isinstance(effect.what, Heard):
                self.heard(hosted, effect.what)

    def ask(self, hosted: Hosted, request: Submit) -> None:
        self.client(hosted, Asked(self.now, request))

    def heard(self, hosted: Hosted, what: Heard) -> None:
        if what.subscription == "readings":
            attribute = hosted.made.beside.attribute
            if (reading := _reading(what.content, attribute, hosted.part.relation.accuracy)) is not None:
                self.want(hosted, hosted.made.agent.read(reading))
            return
        sender = str(what.content.get("sender"))
        if sender not in dict(hosted.part.partners) or not what.payloads:
            return  # somebody who is no partner: it is not listened to
        try:
            message = msgspec.msgpack.decode(bytes.fromhex(what.payloads[0]), type=Message)
        except (ValueError, msgspec.MsgspecError):
            return
        if sender in hosted.reached:
            self.want(hosted, hosted.made.agent.hear(_short(sender), message))
        else:
            hosted.kept.append((sender, message))

    def want(self, hosted: Hosted, wants: Wants) -> None:
        own, part = hosted.part.name, hosted.part
        for want in wants:
            if isinstance(want, Report):
                self.ask(hosted, publish(_told(part, want)))
                continue
            to = next(name for name, _ in part.partners if _short(name) == want.to)
            said = Notification({ADDRESS: to, "sender": own})
            payload = msgspec.msgpack.encode(want.message).hex()
            self.ask(hosted, Submit(Bundle(Key("", 0), notifications=(said,), payloads=(payload,))))


def _only_says(message: object) -> bool:
    """Whether a message only says something, and changes nothing that is stored."""
    return isinstance(message, Bundle) and not (
        message.advertisements or message.subscriptions or message.slips or message.active
    )


def _is_active(message: object) -> bool:
    return isinstance(message, Bundle) and bool(message.active)


def _short(address: str) -> str:
    return address.rpartition("/")[2]


def _reading(content: Content, attribute: str | None, accuracy: str | None) -> Reading | None:
    """What an agent makes of a reading."""
    time, sequence = content.get("time"), content.get("sequence", -1)
    at = [content.get(name) for name in (("x", "y", "z") if attribute is None else (attribute,))]
    known = [float(value) for value in at if isinstance(value, int | float)]
    error = 0.0 if accuracy is None else content.get(accuracy)
    if not known or not isinstance(time, int) or not isinstance(sequence, int):
        return None
    if not isinstance(error, int | float) or error < 0:
        return None
    return Reading(time, sequence, tuple(known), float(error))


def _told(part: Part, report: Report) -> dict[str, Any]:
    """A report as a notification; the same report has the same content, whoever says it."""
    (tie,) = part.relation.ties or ()
    content: dict[str, Any] = {RELATIONSHIP: part.relationship, "status": report.status, "source": report.by}
    if tie.scope is not None:
        content["scope"] = tie.scope
    if report.reading is not None:
        content |= {"time": report.reading.time, "sequence": report.reading.sequence}
    return content | ({"value": report.value} if report.value == report.value else {})
