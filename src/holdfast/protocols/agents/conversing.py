"""Agents and the others: whom an agent can reach, what it hears, and what becomes of what it wants."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ...model.instant import Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Peer, Received, Send
from ..cbps.border import agent_of
from ..cbps.client import Heard, Refused, Submit, publish
from ..cbps.message import Bundle, Key, Notification
from ..cbps.parts import pins
from ..cbps.routing import Stored
from .hosted import Hosted, reading_in, told
from .library import ADDRESS, Message
from .shipped import Work
from .state import HostingState
from .talk import Report, Run, Wants

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

    def lay(self, key: Key, stored: Stored | None) -> list[str]:
        """A bundle came or went: the addresses to which it lays a way, or did."""
        ways, maker = self.state.ways, key.origin
        before = self.state.laid.pop(key, [])
        for at in before:
            del ways[at][maker]
            if not ways[at]:
                del ways[at]
        now = []
        for subscription in stored.bundle.subscriptions if stored and stored.bundle.slips else ():
            own = agent_of(key)
            if own is not None and pins(subscription.filter).get(ADDRESS) == own:
                ways.setdefault(own, {})[maker] = None
                now.append(own)
        if now:
            self.state.laid[key] = now
        return [*before, *now]

    def reach(self, hosted: Hosted) -> None:
        """Tell an agent whom it can reach now: one that was started again is another."""
        for at, name in hosted.partners.items():
            maker = next(reversed(self.state.ways.get(at, {})), None)
            before = hosted.reached.get(at)
            if maker == before:
                continue
            if before is not None:
                del hosted.reached[at]
                self.give(hosted, hosted.made.agent.lost, name)
            if maker is not None:
                hosted.reached[at] = maker
                self.give(hosted, hosted.made.agent.found, name)
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

    def ask(self, hosted: Hosted, request: Submit) -> None:
        self.client(hosted, Asked(self.now, request))

    def heard(self, hosted: Hosted, what: Heard) -> None:
        agent = hosted.made.agent
        if what.subscription == "readings":
            reading = reading_in(what.content, hosted.made.beside, hosted.part.relation.accuracy)
            if reading is not None:
                self.give(hosted, agent.read, reading)
            return
        at = agent_of(what.bundle) or ""
        if at not in hosted.partners or not what.payloads:
            return  # somebody who is no partner: it is not listened to
        if hosted.reached.get(at) != what.bundle.origin:
            hosted.kept = [*hosted.kept, what][-KEPT:]
            return
        try:
            message = msgspec.msgpack.decode(bytes.fromhex(what.payloads[0]), type=Message)
        except (ValueError, msgspec.MsgspecError):
            return
        if isinstance(message, agent.hears):
            self.give(hosted, agent.hear, hosted.partners[at], message)

    def give(self, hosted: Hosted, call: Callable[..., Wants], *about: Any) -> None:
        """Let an agent take something; if it cannot, it is the only one that ends."""
        if hosted.place not in self.state.agents:
            return
        try:
            wants = call(*about)
        except Exception as error:
            self.fail(hosted, f"{type(error).__name__}: {error}")
            return
        self.want(hosted, wants)

    def want(self, hosted: Hosted, wants: Wants) -> None:
        for want in wants:
            if hosted.place not in self.state.agents:
                return
            match want:
                case Report():
                    self.ask(hosted, publish(told(hosted.part, want)))
                case Run(call, arguments):
                    work = Work(hosted.worker, hosted.code, hosted.peer, call, arguments)
                    self.effects.append(Deliver(work))
                case _:
                    payload = msgspec.msgpack.encode(want.message).hex()
                    said = Notification({ADDRESS: hosted.addresses[want.to]})
                    self.ask(hosted, Submit(Bundle(Key("", 0), notifications=(said,), payloads=(payload,))))
