"""Agents and the others: whom an agent can reach, what it hears, and what becomes of what it wants."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from ...model.instant import Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Peer, Received, Send
from ..cbps.border import agent_of
from ..cbps.client import Heard, Refused, Submit, Withdraw, publish
from ..cbps.message import Bundle, Key, Notification
from ..cbps.parts import pins
from ..cbps.routing import Stored
from .hosted import Hosted, reading_in, told
from .library import ADDRESS, INSTANCE, Message
from .shipped import Work
from .state import HostingState
from .talk import Doubt, Reading, Report, Run, Successor, Wants, Word

KEPT = 100
"""How many messages of others an agent keeps that it cannot answer yet."""


class Conversing:
    """The work that conversations make: ``inputs`` are for the broker, ``effects`` for the host."""

    def __init__(self, state: HostingState, now: Instant) -> None:
        self.state, self.now = state, now
        self.inputs: deque[Input] = deque()
        self.effects: list[Effect] = []

    def fail(self, hosted: Hosted, why: str) -> None:
        """An agent does what it may not, or cannot go on."""
        raise NotImplementedError

    def send(self, to: Peer, message: Any) -> None:
        self.effects.append(self.state.connections.given(Send(to, message)))

    # --- whom an agent can reach ---

    def lay(self, key: Key, stored: Stored | None) -> tuple[list[str], list[str]]:
        """A bundle came or went.  By it an agent lays a way to itself, or did: the addresses of those to whom
        partners, and those to whom instances of the same agent have a way."""
        tables = {ADDRESS: self.state.ways, INSTANCE: self.state.instances}
        maker, own = key.origin, agent_of(key)
        before = self.state.laid.pop(key, [])
        for field, at in before:
            del tables[field][at][key]
            if not tables[field][at]:
                del tables[field][at]
        now: list[tuple[str, str]] = []
        if own is not None and stored is not None and stored.bundle.slips:
            pinned = [pins(subscription.filter) for subscription in stored.bundle.subscriptions]
            now = [(field, own) for field in tables for one in pinned if one.get(field) == maker]
        for field, at in now:
            tables[field].setdefault(at, {})[key] = None
        if now:
            self.state.laid[key] = now
        elif before:
            self._forget(own, maker)
        ways, instances = ([at for f, at in (*before, *now) if f == field] for field in tables)
        return ways, instances

    def _forget(self, address: str | None, maker: str) -> None:
        """Discard messages of an instance that no longer takes part."""
        for place in self.state.talkers.get(address or "", ()):
            hosted = self.state.agents[place]
            hosted.kept = [what for what in hosted.kept if what.bundle.origin != maker]

    def reach(self, hosted: Hosted) -> None:
        """Choose the partner instance of an agent: the one that it had, as long as that takes part; else
        the named successor; else another one, which counts as a loss."""
        if not hosted.leads:
            return
        for at, name in hosted.partners.items():
            ways, before = self.state.ways.get(at, {}), hosted.reached.get(at)
            if before not in ways and (ways or before is not None):
                self._rebind(hosted, at, name, ways)

    def _rebind(self, hosted: Hosted, at: str, name: str, ways: Collection[Key]) -> None:
        """Let an agent talk to another instance than before, if there was one."""
        agent, was_heard = hosted.made.agent, at in hosted.heard
        was_reached = hosted.reached.pop(at, None) is not None
        successor, known = hosted.successors.get(at), hosted.others.setdefault(at, frozenset(ways))
        way = next((way for way in reversed(list(ways)) if successor in (None, way.origin)), None)
        if successor is not None and way is None and known.issuperset(ways):
            return  # it has yet to lay its way
        del hosted.others[at]
        hosted.successors.pop(at, None)
        is_lost = was_reached and (was_heard or not ways) if successor is None else way is None
        if is_lost:
            # One that has said nothing may have made way for another: whether anybody is there to speak for
            # it, the subscriber's broker knows.
            self.give(hosted, agent.lost, name, reports=was_heard or successor is not None)
        hosted.heard.discard(at)
        if not ways or not hosted.leads:
            return
        hosted.reached[at] = way or list(ways)[-1]
        if hosted.succeeds_lost:
            self.tell_partner(hosted, at, Doubt())
        self.give(hosted, agent.renew if was_heard and not is_lost else agent.found, name)
        kept, hosted.kept = hosted.kept, []
        for what in kept:
            self.heard(hosted, what)

    # --- what agents hear and want ---

    def client(self, hosted: Hosted, given: Input) -> None:
        """Let the client of an agent take something."""
        hosted.state, effects = hosted.client.handle(hosted.state, given)
        for effect in effects:
            match effect:
                case Send():
                    self.inputs.append(Received(self.now, hosted.peer, effect.message))
                case Deliver(Heard() as what):
                    self.heard(hosted, what)
                case Deliver(Refused(_, why)) if hosted.place in self.state.agents:
                    self.fail(hosted, why)

    def ask(self, hosted: Hosted, request: Submit | Withdraw) -> None:
        self.client(hosted, Asked(self.now, request))

    def heard(self, hosted: Hosted, what: Heard) -> None:
        if what.subscription == "readings":
            reading = reading_in(what.content, hosted.made.beside, hosted.part.relation.accuracy)
            if reading is not None:
                self.received(hosted, reading)
            return
        at, maker = agent_of(what.bundle) or "", what.bundle.origin
        is_sibling = what.subscription == INSTANCE and at == hosted.address
        if not what.payloads or not (is_sibling or at in hosted.partners):
            return  # somebody who is no partner: it is not listened to
        try:
            packed = bytes.fromhex(what.payloads[0])
            if is_sibling:
                self.from_sibling(hosted, maker, msgspec.msgpack.decode(packed, type=Word))
                return
            message = msgspec.msgpack.decode(packed, type=Message)
        except (ValueError, msgspec.MsgspecError):
            return
        way = hosted.reached.get(at)
        if way is None or way.origin != maker:
            hosted.kept = [*hosted.kept, what][-KEPT:]
        else:
            self._from_partner(hosted, at, message)

    def _from_partner(self, hosted: Hosted, at: str, message: Message) -> None:
        agent, name = hosted.made.agent, hosted.partners[at]
        if isinstance(message, Successor):
            hosted.successors[at] = message.name
        elif isinstance(message, Doubt):
            if agent.reports:
                self.report_doubt(hosted)
            self.give(hosted, agent.lost, name, reports=False)
            self.give(hosted, agent.found, name)
        elif isinstance(message, agent.hears):
            hosted.heard.add(at)
            self.engage(hosted)
            self.give(hosted, agent.hear, name, message)

    def received(self, hosted: Hosted, reading: Reading) -> None:
        """A publisher beside an agent has sent a reading."""
        raise NotImplementedError

    def report_doubt(self, hosted: Hosted) -> None:
        """Nobody knows any more whether the relationship holds."""
        for scope in hosted.part.scopes:
            doubt = Report("unknown", hosted.part.name, None, float("nan"), scope)
            self.ask(hosted, publish(told(hosted.part, doubt)))

    def engage(self, hosted: Hosted) -> None:
        """Another agent talks to this instance."""
        raise NotImplementedError

    def from_sibling(self, hosted: Hosted, sender: str, word: Word) -> None:
        """Another instance of an agent says something."""
        raise NotImplementedError

    def addressed(self, field: str, to: str, message: msgspec.Struct) -> Submit:
        """A message to one instance."""
        payload = msgspec.msgpack.encode(message).hex()
        return Submit(Bundle(Key("", 0), notifications=(Notification({field: to}),), payloads=(payload,)))

    def give(self, hosted: Hosted, call: Callable[..., Wants], *about: Any, reports: bool = True) -> None:
        """Let an agent take something; if it cannot, it is the only one that ends."""
        if hosted.place not in self.state.agents:
            return
        try:
            wants = call(*about)
        except Exception as error:
            self.fail(hosted, f"{type(error).__name__}: {error}")
            return
        self.want(hosted, [want for want in wants if reports or not isinstance(want, Report)])

    def want(self, hosted: Hosted, wants: Wants) -> None:
        for want in wants:
            if hosted.place not in self.state.agents or not hosted.leads:
                return
            match want:
                case Report() if hosted.is_shared and not hosted.claim:
                    pass  # without a reading it knows nothing that another instance does not
                case Report():
                    self.ask(hosted, publish(told(hosted.part, want)))
                case Run(call, arguments):
                    work = Work(hosted.worker, hosted.code, hosted.peer, call, arguments)
                    self.effects.append(Deliver(work))
                case _:
                    self.tell_partner(hosted, hosted.addresses[want.to], want.message)

    def tell_partner(self, hosted: Hosted, at: str, message: msgspec.Struct) -> None:
        """Send a message to another agent, if it can be reached."""
        if (way := hosted.reached.get(at)) is not None:
            self.ask(hosted, self.addressed(ADDRESS, way.origin, message))
