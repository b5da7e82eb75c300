"""A broker that starts agents: one beside each publisher that a strategy describes.  [B30, B35–B39, B69]

An agent is a client like any other, of which only the connection is short: what the broker sends to it is
handed to it here, and what it sends comes in as from a connection.  So the broker needs to know nothing of
agents.  An agent is there while a stored active subscription and an advertisement that came straight from a
publisher match, whichever came first; when either goes, it goes.

Agents talk by address.  Each lays a way to itself: a subscription to its name that a slip takes to the
publisher beside which the other lives.  So another agent can be reached if and only if its subscription is
stored here, and a lost connection on the way is known by that.  Where several brokers start the same
agent, one of these instances takes part (`leading`).  Who has made a bundle, a client cannot forge;
so nobody speaks, or lays a way, in an agent's name.

The broker to which the subscriber is connected knows all advertisements.  When those are gone that called for
an agent, whatever the reason, it says that the relationship is unknown: so the subscriber hears it, even if
all agents are gone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from ...errors import UsageError
from ...model.instant import Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Received, Send
from ..cbps.border import agent_name
from ..cbps.broker import Broker
from ..cbps.client import Client, subscribe
from ..cbps.context import within
from ..cbps.message import (
    Bundle,
    Code,
    Key,
    Notification,
    Refusal,
    Strategy,
    Wanted,
)
from .hosted import Hosted, told
from .leading import Leading
from .library import address, part_of, started
from .placing import MARK, Place, strategy_of
from .shipped import Done, Shipped, Worked
from .shipping import Shipping
from .state import HostingState
from .talk import Report


@dataclass(frozen=True)
class Hosting:
    """The machine: a broker that starts at most ``most`` agents, of one subscriber ``most_each``, and of the
    code that others ship only what is ``allowed``, by digest, or for which somebody ``vouches``, by who has
    signed the digest."""

    broker: Broker
    most: int = 20_000
    most_each: int = 20_000
    allowed: frozenset[str] = frozenset()
    vouches: Callable[[str, str], bool] = lambda _digest, _signed: False

    def initial(self) -> HostingState:
        state = HostingState(self.broker.initial())
        state.routing.changed = {}
        return state

    def handle(self, state: HostingState, given: Input) -> tuple[HostingState, list[Effect]]:
        turn = _Turn(self, state, given.now)
        turn.run(given)
        return state, turn.effects


class _Turn(Shipping, Leading):
    """The work that one input makes, with all that agents add to it."""

    def __init__(self, hosting: Hosting, state: HostingState, now: Instant) -> None:
        super().__init__(state, now)
        self.hosting, self.allowed, self.vouches = hosting, hosting.allowed, hosting.vouches
        self.handed_over: list[Effect] = []

    def run(self, given: Input) -> None:
        match given:
            case Received(_, sender) if sender.startswith(MARK):
                return  # nobody outside is an agent
            case Received(_, sender, Wanted(digest)):
                self.wanted(sender, digest)
            case Received(_, sender, Code(digest, text)):
                self.code(sender, digest, text)
            case Asked(_, Worked() as worked):
                self.worked(worked)
            case _:
                self.inputs.append(given)
        if isinstance(given, Left):
            self.state.codes.left(given.peer)
        while self.inputs or self.state.routing.changed:
            while self.inputs:
                self.take(self.inputs.popleft())
            self.place()
        self.effects[:0] = self.handed_over

    def take(self, given: Input) -> None:
        self.state.broker, effects = self.hosting.broker.handle(self.state.broker, given)
        for effect in effects:
            if isinstance(effect, Send) and effect.to.startswith(MARK):
                if hosted := self.state.by_peer.get(effect.to):
                    self.client(hosted, Received(self.now, "broker", effect.message))
            else:
                self.effects.append(effect)

    # --- which agents there are ---

    def place(self) -> None:
        """Start the agents that are called for, end the others, and tell each whom it can reach: those that
        what has changed concerns."""
        state, routing = self.state, self.state.routing
        keys, routing.changed = list(routing.changed or ()), {}
        if not state.is_asked:
            if not any((stored := routing.in_force.get(key)) and stored.bundle.active for key in keys):
                return
            state.is_asked, keys = True, list(routing.in_force)
        concerned: dict[Place, None] = {}
        moved: dict[str, None] = {}
        met: dict[str, None] = {}
        for key in keys:
            stored = routing.in_force.get(key)
            concerned |= state.placing.changed(key, stored)
            ways, instances = self.lay(key, stored)
            moved |= dict.fromkeys(ways)
            met |= dict.fromkeys(instances)
            self.note(key, stored)
        for place in concerned:
            self.consider(place)
        for at in met:
            if hosted := state.by_address.get(at):
                self.meet(hosted)
        for place in dict.fromkeys(place for at in moved for place in state.talkers.get(at, ())):
            if hosted := state.agents.get(place):
                self.reach(hosted)

    def consider(self, place: Place) -> None:
        """Whether there is to be an agent, and whether there is one."""
        state = self.state
        strategy, hosted = strategy_of(state.routing, place), state.agents.get(place)
        self._find(place, strategy)
        if strategy is None or not state.placing.is_near(place):
            if hosted is not None:
                if strategy is not None and hosted.siblings:
                    self.hand_over(hosted)
                self.end(hosted)
            return
        if hosted is None and place not in state.refused:
            self.start(place, strategy)
        elif hosted is not None and hosted.strategy != strategy:
            self.amend(hosted, strategy)
        if (now := state.agents.get(place)) and state.placing.is_shared(place):
            self.share(now)

    def hand_over(self, hosted: Hosted) -> None:
        """Let another instance continue, as the publisher goes.  This is sent before others learn that it has
        gone: then the ways on which it is sent are taken away."""
        inputs, self.inputs = self.inputs, deque()
        effects, self.effects = self.effects, self.handed_over
        self.leave(hosted)
        while self.inputs:
            self.take(self.inputs.popleft())
        self.inputs, self.effects = inputs, effects

    def _find(self, place: Place, strategy: Strategy | None) -> None:
        """Whether there is a publisher anywhere, and whether there was one."""
        state = self.state
        if strategy is None:
            state.refused.pop(place, None)
            state.found.discard(place)
        elif state.placing.is_somewhere(place):
            state.found.add(place)
        elif place in state.found:
            state.found.discard(place)
            self.missing(place, strategy)

    def start(self, place: Place, strategy: Strategy, *, doubt: bool = False) -> None:
        """Construct an agent, and let it begin, with a doubt if there was another.  [B35]"""
        state, key = self.state, place[0]
        try:
            if len(state.agents) >= self.hosting.most:
                raise UsageError(f"this broker has {self.hosting.most} agents, and takes no more")
            if state.of_origin[key.origin] >= self.hosting.most_each:
                raise UsageError(f"a subscriber may have {self.hosting.most_each} agents at a broker")
            part, made = started(strategy)
            active = state.routing.in_force[key].bundle.active[place[1]]
            is_shipped = isinstance(made.agent, Shipped)
            code = self.code_of(place, active) if is_shipped else ""
            if is_shipped and not code:
                return  # it has yet to come
        except UsageError as error:
            self.refuse(place, str(error))
            return
        at = address(key, part.name)
        client = Client(self.name(at), self.hosting.broker.conditions)
        hosted = Hosted(place, f"{MARK}{state.started} {at}", strategy, part, made, client, code, doubt)
        hosted.state.sequence = self.now
        state.agents[place] = state.by_peer[hosted.peer] = state.by_address[at] = hosted
        state.of_origin[key.origin] += 1
        state.workers[hosted.worker] += 1
        for partner in hosted.partners:
            state.talkers.setdefault(partner, {})[place] = None
        self.inputs.append(Joined(self.now, hosted.peer))
        self.client(hosted, Joined(self.now, "broker"))
        self.ask(hosted, subscribe("readings", strategy.slip, incoming=(within(1),)))
        self.meet(hosted)

    def name(self, at: str) -> str:
        """A new name of an agent as a maker of bundles."""
        self.state.started += 1
        node = self.state.connections.topology.me
        return agent_name(at, node, self.now, self.state.started)

    def amend(self, hosted: Hosted, strategy: Strategy) -> None:
        """The subscriber has said something else: the agent goes on, unless it is to be another."""
        try:
            part, made = started(strategy)
        except UsageError as error:
            self.fail(hosted, str(error))
            return
        old = hosted.part
        now, before = ((one.name, one.partners, one.settings) for one in (part, old))
        is_alike = type(made.agent) is type(hosted.made.agent) and made.beside == hosted.made.beside
        if now != before or not is_alike:
            self.end(hosted)
            self.start(hosted.place, strategy, doubt=True)
            return
        hosted.strategy, hosted.part = strategy, part
        if not hosted.leads:
            hosted.made = made
            return
        self.give(hosted, hosted.made.agent.reset, part.relation)

    def end(self, hosted: Hosted) -> None:
        state, place = self.state, hosted.place
        del state.agents[place], state.by_peer[hosted.peer], state.by_address[hosted.address]
        state.of_origin -= Counter({place[0].origin: 1})
        for partner in hosted.partners:
            del state.talkers[partner][place]
            if not state.talkers[partner]:
                del state.talkers[partner]
        state.workers -= Counter({hosted.worker: 1})
        if hosted.code and not state.workers[hosted.worker]:
            self.effects.append(Deliver(Done(hosted.worker)))
        self.inputs.append(Left(self.now, hosted.peer, "the agent has ended"))

    def fail(self, hosted: Hosted, why: str) -> None:
        """An agent does what it may not, or cannot go on: it ends, and its subscriber is told."""
        self.end(hosted)
        self.refuse(hosted.place, f"the agent '{hosted.part.name}' ended: {why}")

    def refuse(self, place: Place, why: str) -> None:
        self.state.refused[place] = why
        if stored := self.state.routing.in_force.get(place[0]):
            self.send(stored.source, Refusal(place[0], why))

    def missing(self, place: Place, strategy: Strategy) -> None:
        """Nobody calls for an agent any more: what it knew is lost, and others will begin with a doubt.  If
        the subscriber is here, it is told."""
        stored = self.state.routing.in_force[place[0]]
        again = tuple(replace(active, again=True) for active in stored.bundle.active)
        stored.bundle = replace(stored.bundle, active=again)
        if stored.source not in self.state.connections.marks:
            return
        try:
            part = part_of(strategy)
        except UsageError:
            return
        key = Key(self.name(address(place[0], part.name)), 1)
        doubts = (Report("unknown", part.name, None, float("nan"), scope) for scope in part.scopes)
        said = tuple(Notification(told(part, doubt)) for doubt in doubts)
        self.send(stored.source, Bundle(key, notifications=said))
