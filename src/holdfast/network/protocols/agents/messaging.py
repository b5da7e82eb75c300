"""Communication of agents: the choice of reachable partners, the inputs of agents, and their outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from ....model.instant import Instant
from ....model.protocol import Asked, Deliver, Effect, Input, Peer, Received, Send
from ..cbps.border import agent_of
from ..cbps.client import ReceivedNotification, SubmissionRefused, Submit, WithdrawSubmission, publish
from ..cbps.message import Bundle, BundleKey, PublishedNotification
from ..cbps.parts import pins
from ..cbps.routing import StoredBundle
from .hosted_agent import HostedAgent, reading_in, report_content
from .library import ADDRESS, INSTANCE, Message
from .shipped import WorkerCall
from .state import HostingState
from .talk import (
    AgentOutputs,
    AgentReading,
    AgentReport,
    KnowledgeLost,
    RunCode,
    SiblingMessage,
    SuccessorNotice,
)

MOST_PENDING = 100
"""The greatest number of messages that an agent stores until it can answer them."""


class AgentMessaging:
    """Handles the messages of agents while one input is processed.

    ``inputs`` collects inputs for the broker, and ``effects`` the effects for the host.
    """

    def __init__(self, state: HostingState, now: Instant) -> None:
        self.state, self.now = state, now
        self.inputs: deque[Input] = deque()
        self.effects: list[Effect] = []

    def end_faulty(self, hosted: HostedAgent, why: str) -> None:
        """End an agent that breaks a rule or cannot continue. The host implements this."""
        raise NotImplementedError

    def send(self, to: Peer, message: Any) -> None:
        """Send a message to a peer of the broker."""
        self.effects.append(self.state.connections.prepare(Send(to, message)))

    # --- ways to partners ---

    def record_ways(self, key: BundleKey, stored: StoredBundle | None) -> tuple[list[str], list[str]]:
        """Record or remove the ways that a bundle lays to its agent.

        Return two lists of addresses: the agents whose partners got or lost a way, and the agents whose other
        instances did.
        """
        tables = {ADDRESS: self.state.ways, INSTANCE: self.state.instances}
        maker, address = key.origin, agent_of(key)
        ways_before = self.state.laid_ways.pop(key, [])
        for field, at in ways_before:
            del tables[field][at][key]
            if not tables[field][at]:
                del tables[field][at]
        ways_now: list[tuple[str, str]] = []
        if address is not None and stored is not None and stored.bundle.slips:
            pinned = [pins(subscription.filter) for subscription in stored.bundle.subscriptions]
            ways_now = [(field, address) for field in tables for p in pinned if p.get(field) == maker]
        for field, at in ways_now:
            tables[field].setdefault(at, {})[key] = None
        if ways_now:
            self.state.laid_ways[key] = ways_now
        elif ways_before:
            self._forget(address, maker)
        ways, instances = ([at for f, at in (*ways_before, *ways_now) if f == field] for field in tables)
        return ways, instances

    def _forget(self, address: str | None, maker: str) -> None:
        """Discard stored messages of an instance that no longer takes part in a strategy."""
        for place in self.state.agents_by_partner.get(address or "", ()):
            hosted = self.state.agents[place]
            hosted.pending = [message for message in hosted.pending if message.bundle.origin != maker]

    def choose_partners(self, hosted: HostedAgent) -> None:
        """Choose the partner instances of an agent.

        A partner instance stays while it takes part. After that, the named successor is used. Otherwise
        another instance is used, which counts as a loss.
        """
        if not hosted.is_leading:
            return
        for at, name in hosted.partners.items():
            ways, before = self.state.ways.get(at, {}), hosted.ways_to_partners.get(at)
            if before not in ways and (ways or before is not None):
                self._rebind(hosted, at, name, ways)

    def _rebind(self, hosted: HostedAgent, at: str, name: str, ways: Collection[BundleKey]) -> None:
        """Connect an agent to another instance of a partner, in place of the former one if there was one."""
        agent, has_sent = hosted.built.agent, at in hosted.active_partners
        was_connected = hosted.ways_to_partners.pop(at, None) is not None
        successor, known = hosted.successors.get(at), hosted.ways_before.setdefault(at, frozenset(ways))
        way = next((way for way in reversed(list(ways)) if successor in (None, way.origin)), None)
        if successor is not None and way is None and known.issuperset(ways):
            return  # it has yet to lay its way
        del hosted.ways_before[at]
        hosted.successors.pop(at, None)
        is_lost = was_connected and (has_sent or not ways) if successor is None else way is None
        if is_lost:
            # A partner without messages may have been replaced by another instance. Only the subscriber's
            # broker knows whether there is one, so this agent reports nothing then.
            self.call_agent(hosted, agent.on_lost, name, reports=has_sent or successor is not None)
        hosted.active_partners.discard(at)
        if not ways or not hosted.is_leading:
            return
        hosted.ways_to_partners[at] = way or list(ways)[-1]
        if hosted.succeeds_lost:
            self.send_to_partner(hosted, at, KnowledgeLost())
        call = agent.on_partner_changed if has_sent and not is_lost else agent.on_found
        self.call_agent(hosted, call, name)
        pending, hosted.pending = hosted.pending, []
        for notification in pending:
            self.on_notification(hosted, notification)

    # --- inputs and outputs of agents ---

    def pass_to_client(self, hosted: HostedAgent, given: Input) -> None:
        """Pass an input to the client of an agent and handle its effects."""
        hosted.state, effects = hosted.client.handle(hosted.state, given)
        for effect in effects:
            match effect:
                case Send():
                    self.inputs.append(Received(self.now, hosted.peer, effect.message))
                case Deliver(ReceivedNotification() as what):
                    self.on_notification(hosted, what)
                case Deliver(SubmissionRefused(_, why)) if hosted.place in self.state.agents:
                    self.end_faulty(hosted, why)

    def request(self, hosted: HostedAgent, request: Submit | WithdrawSubmission) -> None:
        """Pass a request to the client of an agent."""
        self.pass_to_client(hosted, Asked(self.now, request))

    def on_notification(self, hosted: HostedAgent, notification: ReceivedNotification) -> None:
        """Handle a notification for an agent: a reading, or a message of a sibling or partner."""
        if notification.subscription == "readings":
            accuracy = hosted.parameters.relation.accuracy
            reading = reading_in(notification.content, hosted.built.member, accuracy)
            if reading is not None:
                self.on_reading(hosted, reading)
            return
        at, maker = agent_of(notification.bundle) or "", notification.bundle.origin
        is_sibling = notification.subscription == INSTANCE and at == hosted.address
        if not notification.payloads or not (is_sibling or at in hosted.partners):
            return  # the sender is no partner
        try:
            payload = bytes.fromhex(notification.payloads[0])
            if is_sibling:
                self.on_sibling_message(hosted, maker, msgspec.msgpack.decode(payload, type=SiblingMessage))
                return
            message = msgspec.msgpack.decode(payload, type=Message)
        except (ValueError, msgspec.MsgspecError):
            return
        way = hosted.ways_to_partners.get(at)
        if way is None or way.origin != maker:
            hosted.pending = [*hosted.pending, notification][-MOST_PENDING:]
        else:
            self._on_partner_message(hosted, at, message)

    def _on_partner_message(self, hosted: HostedAgent, at: str, message: Message) -> None:
        """Handle a message of a partner: a notice about its instances, or a message for the agent."""
        agent, name = hosted.built.agent, hosted.partners[at]
        if isinstance(message, SuccessorNotice):
            hosted.successors[at] = message.name
        elif isinstance(message, KnowledgeLost):
            if agent.reports:
                self.report_doubt(hosted)
            self.call_agent(hosted, agent.on_lost, name, reports=False)
            self.call_agent(hosted, agent.on_found, name)
        elif isinstance(message, agent.accepts):
            hosted.active_partners.add(at)
            self.on_engaged(hosted)
            self.call_agent(hosted, agent.on_message, name, message)

    def on_reading(self, hosted: HostedAgent, reading: AgentReading) -> None:
        """Handle a reading of the publisher beside an agent."""
        raise NotImplementedError

    def report_doubt(self, hosted: HostedAgent) -> None:
        """Report to the subscriber that the relationship is unknown."""
        for scope in hosted.parameters.scopes:
            doubt = AgentReport("unknown", hosted.parameters.name, None, float("nan"), scope)
            self.request(hosted, publish(report_content(hosted.parameters, doubt)))

    def on_engaged(self, hosted: HostedAgent) -> None:
        """Handle the first message of another agent to this instance. The host implements this."""
        raise NotImplementedError

    def on_sibling_message(self, hosted: HostedAgent, sender: str, word: SiblingMessage) -> None:
        """Handle a message of another instance of the same agent. The host implements this."""
        raise NotImplementedError

    def message_to(self, field: str, to: str, message: msgspec.Struct) -> Submit:
        """Return the request that sends a message to one instance of an agent."""
        payloads = (msgspec.msgpack.encode(message).hex(),)
        notifications = (PublishedNotification({field: to}),)
        return Submit(Bundle(BundleKey("", 0), notifications=notifications, payloads=payloads))

    def call_agent(
        self, hosted: HostedAgent, call: Callable[..., AgentOutputs], *about: Any, reports: bool = True
    ) -> None:
        """Call a method of an agent and carry out its outputs. An error ends only this agent."""
        if hosted.place not in self.state.agents:
            return
        try:
            wants = call(*about)
        except Exception as error:
            self.end_faulty(hosted, f"{type(error).__name__}: {error}")
            return
        self.carry_out(hosted, [want for want in wants if reports or not isinstance(want, AgentReport)])

    def carry_out(self, hosted: HostedAgent, wants: AgentOutputs) -> None:
        """Carry out the outputs of an agent: send messages and reports, and call shipped code."""
        for want in wants:
            if hosted.place not in self.state.agents or not hosted.is_leading:
                return
            match want:
                case AgentReport() if hosted.is_shared and not hosted.claim:
                    pass  # without a reading it knows nothing that another instance does not
                case AgentReport():
                    self.request(hosted, publish(report_content(hosted.parameters, want)))
                case RunCode(call, arguments):
                    work = WorkerCall(hosted.worker, hosted.code, hosted.peer, call, arguments)
                    self.effects.append(Deliver(work))
                case _:
                    self.send_to_partner(hosted, hosted.addresses[want.to], want.message)

    def send_to_partner(self, hosted: HostedAgent, at: str, message: msgspec.Struct) -> None:
        """Send a message to another agent if that agent can be reached."""
        if (way := hosted.ways_to_partners.get(at)) is not None:
            self.request(hosted, self.message_to(ADDRESS, way.origin, message))
