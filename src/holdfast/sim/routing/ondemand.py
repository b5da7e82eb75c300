"""Routes on demand, as in DYMO (draft-ietf-manet-dymo): asked for when needed, forgotten when unused.

A node without a route floods a request; the target answers when the flood has passed it, along the best
way by which a request came.  Sequence numbers tell newer routes from older ones, so that no loop can form.
A link that fails again and again is told to those who use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

import msgspec
from msgspec.structs import replace

from ...model.instant import MILLISECOND, SECOND, Duration, Instant
from ...model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer, Started
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    HOP_LIMIT,
    NO_ROOM,
    NO_ROUTE,
    Datagram,
    Destination,
    Discard,
    Effect,
    Heard,
    Input,
    Relay,
    Seen,
    Settled,
    Transmit,
    refuses_points,
)

_NUMBER = 2
ROUTE_BYTES = 2 * (ADDRESS + _NUMBER) + 4
"""Of a request or a reply: both ends with their numbers, hops, limit, kind."""


class Request(msgspec.Struct, frozen=True):
    """Who knows the way to the target?  (RREQ)"""

    origin: NodeId
    number: int
    target: NodeId
    hops: int = 0


class Reply(msgspec.Struct, frozen=True):
    """The target's answer, on its way back to who asked (RREP)."""

    origin: NodeId
    number: int
    target: NodeId
    hops: int = 0


class Broken(msgspec.Struct, frozen=True):
    """There is no way through us to these any more (RERR)."""

    lost: tuple[tuple[NodeId, int], ...]


@dataclass(slots=True)
class Route:
    """The way to a node: by which neighbour, how far, how new, how long it is kept."""

    by: NodeId
    number: int
    hops: int
    until: Instant
    broken: bool = False


@dataclass(slots=True)
class Search:
    """A request that is not answered yet, and what waits for the answer."""

    waiting: list[Datagram]
    tries: int = 1


@dataclass(slots=True)
class Sent:
    """What was given to a neighbour and is not settled yet."""

    what: Datagram | Reply
    to: NodeId
    size: int
    resends: int = 0


@dataclass(slots=True)
class OnDemandState:
    """A node's routes and searches."""

    node: NodeId
    random: Random = field(default_factory=Random)
    number: int = 0
    """How new what it says of itself is; begins with the time, so that a restart does not make it old."""
    routes: dict[NodeId, Route] = field(default_factory=dict)
    searches: dict[NodeId, Search] = field(default_factory=dict)
    repeats: dict[str, Request] = field(default_factory=dict)
    answers: dict[str, NodeId] = field(default_factory=dict)
    """Whom we are about to answer."""
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)
    visits: Seen = field(default_factory=Seen)
    again: Seen = field(default_factory=Seen)
    """Our own datagrams whose first route broke under them."""
    sent: dict[str, Sent] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Find a route when there is something to send."""

    keep: Duration = 60 * SECOND
    """How long a route that nobody uses is kept."""
    wait: Duration = 1 * SECOND
    """How long to wait for the answer to a first request; twice as long for each further one."""
    tries: int = 3
    """How many requests are sent before the target is given up."""
    room: int = 8
    """How many datagrams wait for a route at most, for each target."""
    jitter: Duration = 10 * MILLISECOND
    """The longest wait before a request is repeated, or something is sent again."""
    resends: int = 2
    """How often something is given to the same neighbour again."""
    distrust: Duration = 10 * SECOND
    """How long requests by a neighbour that did not acknowledge are ignored: it cannot hear us."""
    limit: int = 32
    """The hops after which a datagram is given up."""
    second: bool = True
    """Whether a new route is looked for when one's own datagram could not be sent along the first."""
    buffers: int | None = None
    """How many datagrams of others are forwarded at the same time; more are dropped.  None: any number."""

    def initial(self, node: NodeId) -> OnDemandState:
        return OnDemandState(node)

    def held(self, state: OnDemandState) -> Iterable[Datagram]:
        waiting = [datagram for search in state.searches.values() for datagram in search.waiting]
        return waiting + [sent.what for sent in state.sent.values() if isinstance(sent.what, Datagram)]

    def refuses(self, destination: Destination) -> str | None:
        return refuses_points(destination)

    def handle(self, state: OnDemandState, given: Input) -> tuple[OnDemandState, list[Effect]]:
        return state, self._react(state, given)

    def _react(self, state: OnDemandState, given: Input) -> list[Effect]:
        match given:
            case Started(now, seed):
                state.random, state.number = Random(seed), now // MILLISECOND
            case Asked(now, datagram):
                return self._onward(state, now, datagram)
            case Heard(now, sender, Datagram() as datagram, True):
                return self._arrival(state, now, sender, datagram.further())
            case Heard(now, sender, Request() as request, True):
                return self._requested(state, now, sender, replace(request, hops=request.hops + 1))
            case Heard(now, sender, Reply() as reply, True):
                return self._answered(state, now, sender, replace(reply, hops=reply.hops + 1))
            case Heard(_, sender, Broken(lost), True):
                return self._lose(state, lost, sender)
            case Settled(now, token, outcome):
                return self._settled(state, now, token, outcome)
            case Fired(now, timer):
                return self._fired(state, now, timer)
        return []

    def _fired(self, state: OnDemandState, now: Instant, timer: str) -> list[Effect]:
        if timer in state.repeats:
            return [Transmit(BROADCAST, state.repeats.pop(timer), ROUTE_BYTES)]
        if timer in state.answers:
            return self._answer(state, now, state.answers.pop(timer))
        if timer in state.sent:
            sent = state.sent[timer]
            return [Transmit(sent.to, sent.what, sent.size, timer)]
        if timer.startswith(_SEARCH):
            return self._search_again(state, now, int(timer.removeprefix(_SEARCH)))
        return []

    # Datagrams.

    def _arrival(
        self, state: OnDemandState, now: Instant, sender: NodeId, datagram: Datagram
    ) -> list[Effect]:
        if not state.visits.add((datagram.key, datagram.hops)):
            return []
        for node in (datagram.origin, sender):
            self._refresh(state, now, node)
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        return [Relay(datagram) if datagram.hops < self.limit else Discard(datagram, HOP_LIMIT)]

    def _onward(self, state: OnDemandState, now: Instant, datagram: Datagram) -> list[Effect]:
        target = datagram.destination
        assert isinstance(target, int)
        route = self._usable(state, now, target)
        if route is not None:
            if datagram.origin != state.node and self._crowded(state):
                return [Discard(datagram, NO_ROOM)]
            self._refresh(state, now, target)
            return [self._transmission(state, route.by, datagram, HEADER + datagram.size)]
        if datagram.origin != state.node:
            known = state.routes.get(target)
            lost = Broken(((target, known.number if known else _UNKNOWN),))
            return [Discard(datagram, NO_ROUTE), _told(lost)]
        search = state.searches.get(target)
        if search is None:
            state.searches[target] = Search([datagram])
            return self._ask(state, now, target, self.wait)
        if len(search.waiting) >= self.room:
            return [Discard(datagram, NO_ROOM)]
        search.waiting.append(datagram)
        return []

    def _crowded(self, state: OnDemandState) -> bool:
        """Whether as much is being forwarded as there is room for."""
        if self.buffers is None:
            return False
        held = [sent.what for sent in state.sent.values() if isinstance(sent.what, Datagram)]
        return sum(each.origin != state.node for each in held) >= self.buffers

    def _transmission(self, state: OnDemandState, to: NodeId, what: Datagram | Reply, size: int) -> Transmit:
        state.tokens += 1
        token = f"sent {state.tokens}"
        state.sent[token] = Sent(what, to, size)
        return Transmit(to, what, size, token)

    def _settled(self, state: OnDemandState, now: Instant, token: str, outcome: Outcome) -> list[Effect]:
        sent = state.sent[token]
        if outcome in (ACKNOWLEDGED, AIRED):
            del state.sent[token]
            return []
        if sent.resends < self.resends:
            sent.resends += 1
            return [SetTimer(token, now + state.random.randint(0, self.jitter))]
        del state.sent[token]
        effects = self._break(state, now, sent.to) if outcome == NO_ACK else []
        if isinstance(sent.what, Reply):
            return effects
        if self.second and sent.what.origin == state.node and state.again.add(sent.what.key):
            return effects + self._onward(state, now, sent.what)
        return [*effects, Discard(sent.what, outcome)]

    def _break(self, state: OnDemandState, now: Instant, by: NodeId) -> list[Effect]:
        """A neighbour does not acknowledge: routes by it are broken, and it is not asked for a while."""
        state.distrusted[by] = now + self.distrust
        gone = [(node, route.number) for node, route in state.routes.items() if route.by == by]
        return self._lose(state, gone, by)

    # Routes.

    def _usable(self, state: OnDemandState, now: Instant, target: NodeId) -> Route | None:
        route = state.routes.get(target)
        return route if route is not None and not route.broken and route.until > now else None

    def _refresh(self, state: OnDemandState, now: Instant, target: NodeId) -> None:
        if (route := self._usable(state, now, target)) is not None:
            route.until = now + self.keep

    def _learn(self, state: OnDemandState, now: Instant, by: NodeId, said: Request | Reply) -> bool:
        """Take a route if it is newer than the one we have, or as new and better; whether we took it."""
        target, number, hops = said.origin, said.number, said.hops
        known = state.routes.get(target)
        if known is not None:
            usable = self._usable(state, now, target) is not None
            if (number, -hops) < (known.number, -known.hops):
                return False
            if (number, hops) == (known.number, known.hops) and usable:
                return False
        state.routes[target] = Route(by, number, hops, now + self.keep)
        return True

    def _lose(self, state: OnDemandState, lost: Iterable[tuple[NodeId, int]], by: NodeId) -> list[Effect]:
        """Routes by that neighbour to these nodes are broken; say so if we had any."""
        gone = []
        for node, number in lost:
            route = state.routes.get(node)
            if route is None or route.by != by or route.broken:
                continue
            if number == _UNKNOWN or number >= route.number:
                route.broken = True
                gone.append((node, route.number))
        return [_told(Broken(tuple(gone)))] if gone else []

    # Requests and replies.

    def _ask(self, state: OnDemandState, now: Instant, target: NodeId, wait: Duration) -> list[Effect]:
        state.number += 1
        request = Request(state.node, state.number, target)
        return [Transmit(BROADCAST, request, ROUTE_BYTES), SetTimer(f"{_SEARCH}{target}", now + wait)]

    def _search_again(self, state: OnDemandState, now: Instant, target: NodeId) -> list[Effect]:
        search = state.searches[target]
        if search.tries >= self.tries:
            del state.searches[target]
            return [Discard(datagram, NO_ROUTE) for datagram in search.waiting]
        search.tries += 1
        return self._ask(state, now, target, self.wait << (search.tries - 1))

    def _requested(
        self, state: OnDemandState, now: Instant, sender: NodeId, request: Request
    ) -> list[Effect]:
        if request.origin == state.node or state.distrusted.get(sender, now) > now:
            return []
        if not self._learn(state, now, sender, request):
            return []
        if request.target == state.node:
            timer = f"answer {request.origin}"
            if timer in state.answers:
                return []
            state.answers[timer] = request.origin
            return [SetTimer(timer, now + 2 * self.jitter)]
        if request.hops >= self.limit:
            return []
        timer = f"repeat {request.origin}.{request.number}"
        state.repeats[timer] = request
        return [SetTimer(timer, now + state.random.randint(0, self.jitter))]

    def _answer(self, state: OnDemandState, now: Instant, asker: NodeId) -> list[Effect]:
        route = self._usable(state, now, asker)
        if route is None:
            return []
        state.number += 1
        reply = Reply(state.node, state.number, asker)
        return [self._transmission(state, route.by, reply, ROUTE_BYTES)]

    def _answered(self, state: OnDemandState, now: Instant, sender: NodeId, reply: Reply) -> list[Effect]:
        if reply.origin == state.node or not self._learn(state, now, sender, reply):
            return []
        effects: list[Effect] = []
        if (search := state.searches.pop(reply.origin, None)) is not None:
            effects.append(CancelTimer(f"{_SEARCH}{reply.origin}"))
            for datagram in search.waiting:
                effects += self._onward(state, now, datagram)
        back = self._usable(state, now, reply.target)
        if reply.target != state.node and back is not None:
            effects.append(self._transmission(state, back.by, reply, ROUTE_BYTES))
        return effects


_SEARCH = "search "
_UNKNOWN = -1


def _told(lost: Broken) -> Transmit:
    return Transmit(BROADCAST, lost, 4 + len(lost.lost) * (ADDRESS + _NUMBER))
