"""The physical layer: a node with its broker, and the logical brokers that it acts for.  [F33, F44–F49]

A message to a logical broker looks for whoever acts for it on its way to the broker's point: nodes that it
passes know, or offer themselves.  The logical layer hears nothing of this.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from msgspec.structs import replace as changed

from ...model.instant import Instant
from ...model.protocol import Asked, Effect, Fired, Input, Onward, Passing, Received, Route, Started
from ...model.space import Point
from .broker import Broker
from .deployment import Deployment
from .envelope import Envelope, Here, Offer, Seek, Tables, Taken, To, Vacant, Word, cause_of
from .mapping import Mapping, Resources
from .message import At, Message, Publication
from .state import Logical, State
from .succession import Giving, Held, Known, Stored, Succession
from .tree import Scope

Role = tuple[str, Scope]
"""A logical broker."""


@dataclass(slots=True)
class PhysicalState:
    """What the broker remembers, and what is known of roles."""

    broker: State
    resources: Resources = field(default_factory=Resources)
    known: dict[Role, Known] = field(default_factory=dict)
    """The mapping table: who acts for a broker."""
    held: dict[Role, Held] = field(default_factory=dict)
    """The roles of this node."""
    giving: dict[Role, Giving] = field(default_factory=dict)
    """Those that it wants to give away."""
    coming: dict[Role, dict[int, Tables]] = field(default_factory=dict)
    """Tables of which not all parts have come."""
    copies: dict[Role, dict[int, Tables]] = field(default_factory=dict)
    """Tables of brokers near by."""
    stored: list[Stored] = field(default_factory=list)
    """Events for nodes that did not answer."""

    @property
    def latest(self) -> Instant:
        """The time of the latest event of this node."""
        return self.broker.latest


@dataclass(frozen=True)
class Physical:
    """The machine."""

    deployment: Deployment
    place: Point
    peeks: ClassVar = True

    def __post_init__(self) -> None:
        self.deployment.tree.inside(self.place)

    @cached_property
    def broker(self) -> Broker:
        return Broker(self.deployment, self.place)

    @property
    def mapping(self) -> Mapping:
        assert self.deployment.mapping is not None
        return self.deployment.mapping

    def initial(self) -> PhysicalState:
        return PhysicalState(self.broker.initial())

    def handle(self, state: PhysicalState, given: Input) -> tuple[PhysicalState, list[Effect]]:
        turn = Turn(self, state, given.now)
        match given:
            case Started():
                turn.to_broker(given)
                turn.checks_later()
            case Asked(_, Resources() as resources):
                state.resources = resources
            case Received(_, _, heard):
                turn.received(heard)
            case Passing(_, _, heard):
                turn.passing(heard)
            case Fired(_, "check"):
                turn.checked()
            case Fired(_, "stored"):
                turn.retried()
            case Fired(_, timer) if timer.startswith("giving/"):
                turn.kept(timer)
            case _:
                turn.to_broker(given)
        turn.work()
        return state, turn.effects


class Turn(Succession):
    """The work that one input makes."""

    def __init__(self, machine: Physical, state: PhysicalState, now: Instant) -> None:
        self.machine, self.state, self.now = machine, state, now
        self.deployment, self.mapping = machine.deployment, machine.mapping
        self.at = machine.broker.at
        self.effects: list[Effect] = []
        self._mine: deque[Message | Word] = deque()

    # --- the broker ---

    def to_broker(self, given: Input) -> None:
        """Let the logical layer take something, and see to it that its messages find their way."""
        self.state.broker, effects = self.machine.broker.handle(self.state.broker, given)
        self.carry_out(effects)

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Route):
                role = role_of(effect.message)
                if role is not None and effect.to == self.address(role):
                    self.seek(role, effect.message)
                else:
                    self.direct(effect.to, effect.message)
            else:
                self.effects.append(effect)

    def work(self) -> None:
        """What this node has said to itself it hears at once."""
        while self._mine:
            self._take(self._mine.popleft())

    # --- messages ---

    def direct(self, at: Point, message: Message | Word, tries: int = 0, left: tuple[At, ...] = ()) -> None:
        """To the node at a point."""
        place = (float(at[0]), float(at[1]))
        if place == self.at:
            self._mine.append(message)
        else:
            self.effects.append(Route(place, To(place, message, tries, left), cause_of(message)))

    def seek(self, role: Role, message: Message | Here | Vacant, left: tuple[At, ...] = ()) -> None:
        """To whoever acts for a logical broker.  [F45]"""
        known = self.state.known.get(role)
        if role in self.state.held and not isinstance(message, Here | Vacant):
            self._mine.append(message)
        elif known is not None and known.at not in left and not isinstance(message, Here | Vacant):
            self.direct(known.at, message, left=left)
        else:
            seek = self._offered(role, Seek(message, left=left))
            self.effects.append(Route(self.address(role), seek, cause_of(message)))

    def address(self, role: Role) -> Point:
        return self.deployment.tree.address(*role)

    def received(self, given: Envelope) -> None:
        match given:
            case To(at, message, tries, left) if at != self.at:
                self._astray(at, message, tries, left)
            case To(_, message, _, left):
                self._forget(message, left)
                self._mine.append(message)
            case Seek():
                self._ended(given)
            case Here():
                self.heard_of(given)
            case Tables():
                self.copied(given)
            case _:
                self.to_broker(Received(self.now, "", given))

    def passing(self, given: Envelope) -> None:
        """A search looks at every node on its way: it may know who acts, or suit better.  [F45]"""
        if isinstance(given, Seek) and (given := self._looked(given)) is None:  # type: ignore[assignment]
            return
        self.effects.append(Onward(given))

    def _looked(self, given: Seek) -> Seek | None:
        """What goes on of a search that comes by; nothing if it ends here."""
        message, role = given.message, role_of(given.message)
        assert role is not None
        if isinstance(message, Here):
            self.heard_of(message)
            claimed = role in self.state.held and self.is_nearer(role, self.at, message.at)
            return None if claimed else given
        if isinstance(message, Vacant):  # who looks for a successor acts still
            return self._offered(role, given)
        self._forget(message, given.left)
        known = self.state.known.get(role)
        if role not in self.state.held:
            self.adopted(role, given.left)
        if role in self.state.held:
            self._mine.append(message)
        elif known is not None:
            self.direct(known.at, message, left=given.left)
        else:
            return self._offered(role, given)
        return None

    def _forget(self, message: Message | Word, left: tuple[At, ...]) -> None:
        """Who acted for a broker and is among these does no more."""
        role = role_of(message)
        if role is not None and role in self.state.known and self.state.known[role].at in left:
            del self.state.known[role]

    def _offered(self, role: Role, given: Seek) -> Seek:
        """This node instead of the best so far, if it suits better; where nodes are chosen by what they have
        left, only if it has no role in the tree yet."""
        suits = self.suits(role)
        busy = not self.mapping.nearest and any(topic == role[0] for topic, _ in self.state.held)
        if busy or self.at in given.left or (given.candidate is not None and suits <= given.suits):
            return given
        return changed(given, candidate=self.at, suits=suits)

    def is_nearer(self, role: Role, at: At, than: At) -> bool:
        """Whether a role belongs to the one node rather than to the other."""
        point = self.address(role)
        return self.mapping.nearest and math.dist(at, point) < math.dist(than, point)

    def suits(self, role: Role) -> float:
        away = self.machine.broker.forwarding.away(*role)
        return self.mapping.suit(self.state.resources, away)

    def _ended(self, given: Seek) -> None:
        """A search has come to the node that is nearest to the broker's point: the best one has the role."""
        if isinstance(given.message, Here):
            self.judged(given.message)
        if (left := self._looked(given)) is None or isinstance(left.message, Here):
            return
        message, role = left.message, role_of(left.message)
        assert role is not None
        chosen = left.candidate
        if isinstance(message, Vacant):
            if chosen is not None:
                self.direct(chosen, message)
            return
        chosen = chosen or self.at
        if chosen != self.at:
            self.state.known[role] = Known(chosen, self.now, self.now)
        self.direct(chosen, message, left=left.left)

    def _take(self, message: Message | Word) -> None:
        """A message for this node."""
        match message:
            case Vacant():
                self.direct(message.at, Offer(message.topic, message.to, self.at))
            case Offer():
                self.given(message)
            case Tables():
                self.taken_over(message)
            case Taken():
                self.yielded((message.topic, message.to), message.at, message.turn)
            case Here():
                self.heard_of(message)
            case _:
                self._for_role(message)

    def _for_role(self, message: Message) -> None:
        role = role_of(message)
        state = self.state
        if role is None:
            self.to_broker(Received(self.now, "", message))
        elif role in state.held:
            giving = state.giving.get(role)
            if giving is not None and giving.to is not None and not isinstance(message, Publication):
                giving.waiting.append(message)
            else:
                self.to_broker(Received(self.now, "", message))
        elif role in state.known and state.known[role].at != self.at:
            self.direct(state.known[role].at, message)
        elif not isinstance(message, Publication):  # whoever is addressed as it is it; an event asks nothing
            self.begins(role, Logical(*role, turn=self.now))
            self.to_broker(Received(self.now, "", message))

    def _astray(self, at: At, message: Message | Word, tries: int, left: tuple[At, ...]) -> None:
        """A message for a node that does not answer has come to its neighbour.  [F49]

        It remembers all that did not, or two who each know of another would send it to and fro.
        """
        role = role_of(message)
        if isinstance(message, Word):
            return
        if role is None:
            if isinstance(message, Publication):
                self.stored(Stored(at, message, tries))
            return
        left = (*left, at)
        self._forget(message, left)
        if role not in self.state.held:
            self.adopted(role, left)
        self.seek(role, message, left)


def role_of(message: Message | Word) -> Role | None:
    """The logical broker that a message is for, if it is for one."""
    return None if message.to is None else (message.topic, message.to)
