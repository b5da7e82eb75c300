"""A broker that starts agents: one beside each publisher that a strategy describes. [B30, B35–B39, B69]

An agent is an ordinary client with a local connection. This module passes the broker's messages on to agents,
and their messages enter the broker as from a connection. So the broker does not know about agents. An agent
exists while a stored active subscription and an advertisement directly from a publisher match, whatever the
order of their arrival.

Agents communicate by address. Each lays a way to itself: a subscription to its name that a slip carries to
the publisher beside which the partner runs. So another agent can be reached if and only if its subscription
is stored here. The withdrawal of that subscription shows the loss of a connection on the way. Where several
brokers start the same agent, one of these instances takes part (see `instances`). Clients cannot forge the
maker of a bundle, so none can pose as an agent.

The broker of the subscriber knows all advertisements. When the advertisements that required an agent are
withdrawn, it reports the relationship as unknown. So the subscriber is informed even if all agents have
ended.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from ....errors import UsageError
from ....model.instant import Instant
from ....model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Received, Send
from ..cbps.border import agent_name
from ..cbps.broker import CbpsBroker
from ..cbps.client import CbpsClient, subscribe
from ..cbps.context import within_hops
from ..cbps.message import (
    AgentStrategy,
    Bundle,
    BundleKey,
    BundleRefusal,
    CodeRequest,
    CodeText,
    PublishedNotification,
)
from .code_shipping import CodeShipping
from .hosted_agent import HostedAgent, report_content
from .instances import InstanceLeading
from .library import address, build_agent, decode_parameters
from .place_index import MARK, AgentPlace, strategy_of
from .shipped import ShippedAgent, WorkerDone, WorkerResult
from .state import HostingState
from .talk import AgentReport


@dataclass(frozen=True)
class AgentHost:
    """The machine of a broker with agents.

    It starts at most ``max_agents`` agents, and at most ``max_per_subscriber`` for one subscriber. It runs
    shipped code only if its digest is in ``allowed``, or if ``is_trusted`` accepts the signature of the
    digest.
    """

    broker: CbpsBroker
    max_agents: int = 20_000
    max_per_subscriber: int = 20_000
    allowed: frozenset[str] = frozenset()
    is_trusted: Callable[[str, str], bool] = lambda _digest, _signed: False

    def initial(self) -> HostingState:
        """Return the state of the machine before its first input."""
        state = HostingState(self.broker.initial())
        state.routing.changed = {}
        return state

    def handle(self, state: HostingState, given: Input) -> tuple[HostingState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        turn = _HostStep(self, state, given.now)
        turn.run(given)
        return state, turn.effects


class _HostStep(CodeShipping, InstanceLeading):
    """Handles one input of the broker and its effects on agents."""

    def __init__(self, hosting: AgentHost, state: HostingState, now: Instant) -> None:
        super().__init__(state, now)
        self.hosting, self.allowed, self.is_trusted = hosting, hosting.allowed, hosting.is_trusted
        self.hand_over_effects: list[Effect] = []

    def run(self, given: Input) -> None:
        """Handle an input, then update agents until nothing changes any more."""
        match given:
            case Received(_, sender) if sender.startswith(MARK):
                return  # only local agents may use such a name
            case Received(_, sender, CodeRequest(digest)):
                self.on_code_request(sender, digest)
            case Received(_, sender, CodeText(digest, text)):
                self.on_code(sender, digest, text)
            case Asked(_, WorkerResult() as worked):
                self.on_result(worked)
            case _:
                self.inputs.append(given)
        if isinstance(given, Left):
            self.state.codes.on_left(given.peer)
        while self.inputs or self.state.routing.changed:
            while self.inputs:
                self.pass_to_broker(self.inputs.popleft())
            self.update_agents()
        self.effects[:0] = self.hand_over_effects

    def pass_to_broker(self, given: Input) -> None:
        """Pass an input to the broker. Pass the broker's messages for agents to the agents' clients."""
        self.state.broker, effects = self.hosting.broker.handle(self.state.broker, given)
        for effect in effects:
            if isinstance(effect, Send) and effect.to.startswith(MARK):
                if hosted := self.state.by_peer.get(effect.to):
                    self.pass_to_client(hosted, Received(self.now, "broker", effect.message))
            else:
                self.effects.append(effect)

    # --- which agents there are ---

    def update_agents(self) -> None:
        """Start and end agents after a change of stored bundles. Update the partners of affected agents."""
        state, routing = self.state, self.state.routing
        keys, routing.changed = list(routing.changed or ()), {}
        if not state.is_active:
            if not any((stored := routing.in_force.get(key)) and stored.bundle.active for key in keys):
                return
            state.is_active, keys = True, list(routing.in_force)
        places: dict[AgentPlace, None] = {}
        addresses_with_ways: dict[str, None] = {}
        addresses_with_instances: dict[str, None] = {}
        for key in keys:
            stored = routing.in_force.get(key)
            places |= state.place_index.update(key, stored)
            ways, instances = self.record_ways(key, stored)
            addresses_with_ways |= dict.fromkeys(ways)
            addresses_with_instances |= dict.fromkeys(instances)
            self.index_code(key, stored)
        for place in places:
            self.update_agent(place)
        for partner in addresses_with_instances:
            if hosted := state.by_address.get(partner):
                self.update_siblings(hosted)
        for place in dict.fromkeys(
            place
            for agent_address in addresses_with_ways
            for place in state.agents_by_partner.get(agent_address, ())
        ):
            if hosted := state.agents.get(place):
                self.choose_partners(hosted)

    def update_agent(self, place: AgentPlace) -> None:
        """Start, change or end the agent of a place as its strategy and the advertisements require."""
        state = self.state
        strategy, hosted = strategy_of(state.routing, place), state.agents.get(place)
        self._track_publishers(place, strategy)
        if strategy is None or not state.place_index.is_near(place):
            if hosted is not None:
                if strategy is not None and hosted.siblings:
                    self.hand_over(hosted)
                self.end_agent(hosted)
            return
        if hosted is None and place not in state.refusals:
            self.start_agent(place, strategy)
        elif hosted is not None and hosted.strategy != strategy:
            self.change_strategy(hosted, strategy)
        if (now := state.agents.get(place)) and state.place_index.is_shared(place):
            self.share(now)

    def hand_over(self, hosted: HostedAgent) -> None:
        """Let another instance continue when the publisher is withdrawn.

        These messages precede the withdrawal of the ways on which they are sent.
        """
        inputs, self.inputs = self.inputs, deque()
        effects, self.effects = self.effects, self.hand_over_effects
        self.leave_siblings(hosted)
        while self.inputs:
            self.pass_to_broker(self.inputs.popleft())
        self.inputs, self.effects = inputs, effects

    def _track_publishers(self, place: AgentPlace, strategy: AgentStrategy | None) -> None:
        """Record whether a matching publisher exists at any broker. Report a doubt if the last one is
        withdrawn.
        """
        state = self.state
        if strategy is None:
            state.refusals.pop(place, None)
            state.with_publisher.discard(place)
        elif state.place_index.is_somewhere(place):
            state.with_publisher.add(place)
        elif place in state.with_publisher:
            state.with_publisher.discard(place)
            self.report_missing(place, strategy)

    def start_agent(self, place: AgentPlace, strategy: AgentStrategy, *, doubt: bool = False) -> None:
        """Build and start an agent; with ``doubt``, an earlier agent's state is unknown. [B35]"""
        state, key = self.state, place[0]
        try:
            if len(state.agents) >= self.hosting.max_agents:
                raise UsageError(f"this broker has {self.hosting.max_agents} agents, and takes no more")
            if state.of_origin[key.origin] >= self.hosting.max_per_subscriber:
                most = self.hosting.max_per_subscriber
                raise UsageError(f"a subscriber may have {most} agents at a broker")
            part, made = build_agent(strategy)
            active = state.routing.in_force[key].bundle.active[place[1]]
            is_shipped = isinstance(made.agent, ShippedAgent)
            code = self.code_of(place, active) if is_shipped else ""
            if is_shipped and not code:
                return  # it has yet to come
        except UsageError as error:
            self.refuse(place, str(error))
            return
        at = address(key, part.name)
        client = CbpsClient(self.new_origin(at), self.hosting.broker.conditions)
        peer = f"{MARK}{state.started_count} {at}"
        hosted = HostedAgent(place, peer, strategy, part, made, client, code, doubt)
        hosted.state.sequence = self.now
        state.agents[place] = state.by_peer[hosted.peer] = state.by_address[at] = hosted
        state.of_origin[key.origin] += 1
        state.workers[hosted.worker] += 1
        for partner in hosted.partners:
            state.agents_by_partner.setdefault(partner, {})[place] = None
        self.inputs.append(Joined(self.now, hosted.peer))
        self.pass_to_client(hosted, Joined(self.now, "broker"))
        self.request(hosted, subscribe("readings", strategy.slip, incoming=(within_hops(1),)))
        self.update_siblings(hosted)

    def new_origin(self, at: str) -> str:
        """Return a new origin for the bundles of an agent."""
        self.state.started_count += 1
        node = self.state.connections.topology.me
        return agent_name(at, node, self.now, self.state.started_count)

    def change_strategy(self, hosted: HostedAgent, strategy: AgentStrategy) -> None:
        """Apply a changed strategy to an agent. The agent continues to run unless it must be replaced."""
        try:
            part, made = build_agent(strategy)
        except UsageError as error:
            self.end_faulty(hosted, str(error))
            return
        old = hosted.parameters
        now, before = ((one.name, one.partners, one.settings) for one in (part, old))
        is_alike = type(made.agent) is type(hosted.built.agent) and made.member == hosted.built.member
        if now != before or not is_alike:
            self.end_agent(hosted)
            self.start_agent(hosted.place, strategy, doubt=True)
            return
        hosted.strategy, hosted.parameters = strategy, part
        if not hosted.is_leading:
            hosted.built = made
            return
        self.call_agent(hosted, hosted.built.agent.change_relation, part.relation)

    def end_agent(self, hosted: HostedAgent) -> None:
        """Remove an agent and close its connection to the broker."""
        state, place = self.state, hosted.place
        del state.agents[place], state.by_peer[hosted.peer], state.by_address[hosted.address]
        state.of_origin -= Counter({place[0].origin: 1})
        for partner in hosted.partners:
            del state.agents_by_partner[partner][place]
            if not state.agents_by_partner[partner]:
                del state.agents_by_partner[partner]
        state.workers -= Counter({hosted.worker: 1})
        if hosted.code and not state.workers[hosted.worker]:
            self.effects.append(Deliver(WorkerDone(hosted.worker)))
        self.inputs.append(Left(self.now, hosted.peer, "the agent has ended"))

    def end_faulty(self, hosted: HostedAgent, why: str) -> None:
        """End an agent that breaks a rule or cannot continue, and inform its subscriber."""
        self.end_agent(hosted)
        self.refuse(hosted.place, f"the agent '{hosted.parameters.name}' ended: {why}")

    def refuse(self, place: AgentPlace, why: str) -> None:
        """Record why no agent runs at a place, and send the refusal to the subscriber."""
        self.state.refusals[place] = why
        if stored := self.state.routing.in_force.get(place[0]):
            self.send(stored.source, BundleRefusal(place[0], why))

    def report_missing(self, place: AgentPlace, strategy: AgentStrategy) -> None:
        """Report the relationship as unknown after the last publisher was withdrawn, if the subscriber is
        connected here.

        The knowledge of the agent is lost, so later agents begin with a doubt.
        """
        stored = self.state.routing.in_force[place[0]]
        again = tuple(replace(active, again=True) for active in stored.bundle.active)
        stored.bundle = replace(stored.bundle, active=again)
        if stored.source not in self.state.connections.marks:
            return
        try:
            part = decode_parameters(strategy)
        except UsageError:
            return
        key = BundleKey(self.new_origin(address(place[0], part.name)), 1)
        doubts = (AgentReport("unknown", part.name, None, float("nan"), scope) for scope in part.scopes)
        notifications = tuple(PublishedNotification(report_content(part, doubt)) for doubt in doubts)
        self.send(stored.source, Bundle(key, notifications=notifications))
