"""Routes on demand, as in DYMO (draft-ietf-manet-dymo): requested when needed, removed when unused.

A node without a route floods a request. The target replies after the flood has passed it, along the best path
by which a request came. Sequence numbers order routes by age, so that no loop can form. A node reports a link
that fails repeatedly to the nodes that use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

import msgspec
from msgspec.structs import replace

from ....model.instant import MILLISECOND, SECOND, Duration, Instant
from ....model.protocol import Asked, CancelTimer, Fired, SetTimer, Started
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    NO_ROOM,
    NO_ROUTE,
    Datagram,
    Destination,
    Discard,
    Effects,
    FrameReceived,
    Input,
    RecentKeys,
    TransmissionDone,
    Transmit,
    on_arrival,
    refuses_points,
)

_NUMBER = 2
ROUTE_BYTES = 2 * (ADDRESS + _NUMBER) + 4
"""The bytes of a request or a reply: both ends with their numbers, hops, limit, kind."""


class RouteRequest(msgspec.Struct, frozen=True):
    """A flooded request for a route to the target (RREQ)."""

    origin: NodeId
    number: int
    target: NodeId
    hops: int = 0


class RouteReply(msgspec.Struct, frozen=True):
    """The target's reply, on its way back to the requesting node (RREP)."""

    origin: NodeId
    number: int
    target: NodeId
    hops: int = 0


class RouteError(msgspec.Struct, frozen=True):
    """A report that the sender has lost its routes to these nodes (RERR)."""

    lost: tuple[tuple[NodeId, int], ...]


@dataclass(slots=True)
class RouteEntry:
    """A route to a node: next hop, sequence number, length, and time of expiry."""

    by: NodeId
    number: int
    hops: int
    until: Instant
    broken: bool = False


@dataclass(slots=True)
class Search:
    """An unanswered request, with the datagrams that wait for the route."""

    waiting: list[Datagram]
    tries: int = 1


@dataclass(slots=True)
class UnconfirmedMessage:
    """A message that was sent to a neighbour, and whose outcome the link has not yet reported."""

    what: Datagram | RouteReply
    to: NodeId
    size: int
    resends: int = 0


@dataclass(slots=True)
class OnDemandState:
    """The state of a node: its routes, its searches, and unconfirmed messages."""

    node: NodeId
    random: Random = field(default_factory=Random)
    number: int = 0
    """The node's own sequence number. It starts from the time, so that it also grows over a restart."""
    routes: dict[NodeId, RouteEntry] = field(default_factory=dict)
    searches: dict[NodeId, Search] = field(default_factory=dict)
    repeats: dict[str, RouteRequest] = field(default_factory=dict)
    answers: dict[str, NodeId] = field(default_factory=dict)
    """The nodes whose request awaits a reply, by the name of the timer for the reply."""
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)
    visits: RecentKeys = field(default_factory=RecentKeys)
    again: RecentKeys = field(default_factory=RecentKeys)
    """The node's own datagrams whose first route broke."""
    sent: dict[str, UnconfirmedMessage] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Routing on demand: a node searches a route when it has a datagram to send."""

    keep: Duration = 60 * SECOND
    """The time in µs after which an unused route is removed."""
    wait: Duration = 1 * SECOND
    """The time in µs to wait for a reply to the first request. It doubles for each further request."""
    tries: int = 3
    """The number of requests for a target, after which its datagrams are dropped."""
    room: int = 8
    """The number of datagrams that may wait for a route to the same target."""
    jitter: Duration = 10 * MILLISECOND
    """The longest random delay in µs before a request is repeated or a message is sent again."""
    resends: int = 2
    """The number of further times that a message is sent to the same neighbour."""
    distrust: Duration = 10 * SECOND
    """The time in µs for which requests from a neighbour that did not acknowledge are ignored. It may not
    receive this node's frames.
    """
    limit: int = 32
    """The number of hops after which a datagram is dropped."""
    second: bool = True
    """Whether to search a new route for the node's own datagram when the first route failed."""
    buffers: int | None = None
    """The number of other nodes' datagrams that may be forwarded at the same time; ``None`` for no limit.
    Further datagrams are dropped.
    """

    def initial(self, node: NodeId) -> OnDemandState:
        return OnDemandState(node)

    def held(self, state: OnDemandState) -> Iterable[Datagram]:
        waiting = [datagram for search in state.searches.values() for datagram in search.waiting]
        return waiting + [sent.what for sent in state.sent.values() if isinstance(sent.what, Datagram)]

    def refuses(self, destination: Destination) -> str | None:
        return refuses_points(destination)

    def handle(self, state: OnDemandState, event: Input) -> tuple[OnDemandState, Effects]:
        return state, self._react(state, event)

    def _react(self, state: OnDemandState, event: Input) -> Effects:
        """Handle one input: change ``state`` in place and return the effects."""
        match event:
            case Started(now, seed):
                state.random, state.number = Random(seed), now // MILLISECOND
            case Asked(now, datagram):
                return self._forward(state, now, datagram)
            case FrameReceived(now, sender, Datagram() as datagram, True):
                return self._on_datagram(state, now, sender, datagram.after_hop())
            case FrameReceived(now, sender, RouteRequest() as request, True):
                return self._on_request(state, now, sender, replace(request, hops=request.hops + 1))
            case FrameReceived(now, sender, RouteReply() as reply, True):
                return self._on_reply(state, now, sender, replace(reply, hops=reply.hops + 1))
            case FrameReceived(_, sender, RouteError(lost), True):
                return self._drop_routes(state, lost, sender)
            case TransmissionDone(now, token, outcome):
                return self._on_outcome(state, now, token, outcome)
            case Fired(now, timer):
                return self._on_timer(state, now, timer)
        return []

    def _on_timer(self, state: OnDemandState, now: Instant, timer: str) -> Effects:
        """Handle a timer: repeat a request, send a reply, try a message again, or search again."""
        if timer in state.repeats:
            return [Transmit(BROADCAST, state.repeats.pop(timer), ROUTE_BYTES)]
        if timer in state.answers:
            return self._send_reply(state, now, state.answers.pop(timer))
        if timer in state.sent:
            sent = state.sent[timer]
            return [Transmit(sent.to, sent.what, sent.size, timer)]
        if timer.startswith(_SEARCH):
            return self._search_again(state, now, int(timer.removeprefix(_SEARCH)))
        return []

    # Datagrams.

    def _on_datagram(self, state: OnDemandState, now: Instant, sender: NodeId, datagram: Datagram) -> Effects:
        if not state.visits.add((datagram.key, datagram.hops)):
            return []
        for node in (datagram.origin, sender):
            self._refresh(state, now, node)
        return [on_arrival(datagram, state.node, self.limit)]

    def _forward(self, state: OnDemandState, now: Instant, datagram: Datagram) -> Effects:
        """Send a datagram along its route, or queue it and search a route."""
        target = datagram.destination
        assert isinstance(target, int)
        route = self._usable(state, now, target)
        if route is not None:
            if datagram.origin != state.node and self._is_full(state):
                return [Discard(datagram, NO_ROOM)]
            self._refresh(state, now, target)
            return [self._transmission(state, route.by, datagram, HEADER + datagram.size)]
        if datagram.origin != state.node:
            known = state.routes.get(target)
            lost = RouteError(((target, known.number if known else _UNKNOWN),))
            return [Discard(datagram, NO_ROUTE), _error_message(lost)]
        search = state.searches.get(target)
        if search is None:
            state.searches[target] = Search([datagram])
            return self._send_request(state, now, target, self.wait)
        if len(search.waiting) >= self.room:
            return [Discard(datagram, NO_ROOM)]
        search.waiting.append(datagram)
        return []

    def _is_full(self, state: OnDemandState) -> bool:
        """Whether all buffers for forwarding are in use."""
        if self.buffers is None:
            return False
        forwarding = [sent.what for sent in state.sent.values() if isinstance(sent.what, Datagram)]
        return sum(datagram.origin != state.node for datagram in forwarding) >= self.buffers

    def _transmission(
        self, state: OnDemandState, to: NodeId, what: Datagram | RouteReply, size: int
    ) -> Transmit:
        state.tokens += 1
        token = f"sent {state.tokens}"
        state.sent[token] = UnconfirmedMessage(what, to, size)
        return Transmit(to, what, size, token)

    def _on_outcome(self, state: OnDemandState, now: Instant, token: str, outcome: Outcome) -> Effects:
        """Handle the outcome of a transmission: try again, or report a broken link."""
        sent = state.sent[token]
        if outcome in (ACKNOWLEDGED, AIRED):
            del state.sent[token]
            return []
        if sent.resends < self.resends:
            sent.resends += 1
            return [SetTimer(token, now + state.random.randint(0, self.jitter))]
        del state.sent[token]
        effects = self._on_broken_link(state, now, sent.to) if outcome == NO_ACK else []
        if isinstance(sent.what, RouteReply):
            return effects
        if self.second and sent.what.origin == state.node and state.again.add(sent.what.key):
            return effects + self._forward(state, now, sent.what)
        return [*effects, Discard(sent.what, outcome)]

    def _on_broken_link(self, state: OnDemandState, now: Instant, by: NodeId) -> Effects:
        """Break all routes through a neighbour that does not acknowledge, and distrust it for a time."""
        state.distrusted[by] = now + self.distrust
        lost_routes = [(node, route.number) for node, route in state.routes.items() if route.by == by]
        return self._drop_routes(state, lost_routes, by)

    # Routes.

    def _usable(self, state: OnDemandState, now: Instant, target: NodeId) -> RouteEntry | None:
        route = state.routes.get(target)
        return route if route is not None and not route.broken and route.until > now else None

    def _refresh(self, state: OnDemandState, now: Instant, target: NodeId) -> None:
        if (route := self._usable(state, now, target)) is not None:
            route.until = now + self.keep

    def _learn(
        self, state: OnDemandState, now: Instant, by: NodeId, message: RouteRequest | RouteReply
    ) -> bool:
        """Store the route by which a message came if it is newer than the present route, or equally new and
        shorter. Return whether it was stored.
        """
        target, number, hops = message.origin, message.number, message.hops
        known = state.routes.get(target)
        if known is not None:
            usable = self._usable(state, now, target) is not None
            if (number, -hops) < (known.number, -known.hops):
                return False
            if (number, hops) == (known.number, known.hops) and usable:
                return False
        state.routes[target] = RouteEntry(by, number, hops, now + self.keep)
        return True

    def _drop_routes(self, state: OnDemandState, lost: Iterable[tuple[NodeId, int]], by: NodeId) -> Effects:
        """Mark the routes through a neighbour to the lost nodes as broken, and report them if there
        were any.
        """
        lost_routes = []
        for node, number in lost:
            route = state.routes.get(node)
            if route is None or route.by != by or route.broken:
                continue
            if number == _UNKNOWN or number >= route.number:
                route.broken = True
                lost_routes.append((node, route.number))
        return [_error_message(RouteError(tuple(lost_routes)))] if lost_routes else []

    # Requests and replies.

    def _send_request(self, state: OnDemandState, now: Instant, target: NodeId, wait: Duration) -> Effects:
        state.number += 1
        request = RouteRequest(state.node, state.number, target)
        return [Transmit(BROADCAST, request, ROUTE_BYTES), SetTimer(f"{_SEARCH}{target}", now + wait)]

    def _search_again(self, state: OnDemandState, now: Instant, target: NodeId) -> Effects:
        search = state.searches[target]
        if search.tries >= self.tries:
            del state.searches[target]
            return [Discard(datagram, NO_ROUTE) for datagram in search.waiting]
        search.tries += 1
        return self._send_request(state, now, target, self.wait << (search.tries - 1))

    def _on_request(
        self, state: OnDemandState, now: Instant, sender: NodeId, request: RouteRequest
    ) -> Effects:
        """Handle a request for a route: reply as its target, or repeat it."""
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

    def _send_reply(self, state: OnDemandState, now: Instant, asker: NodeId) -> Effects:
        route = self._usable(state, now, asker)
        if route is None:
            return []
        state.number += 1
        reply = RouteReply(state.node, state.number, asker)
        return [self._transmission(state, route.by, reply, ROUTE_BYTES)]

    def _on_reply(self, state: OnDemandState, now: Instant, sender: NodeId, reply: RouteReply) -> Effects:
        """Handle a reply: store the route, send waiting datagrams, and forward the reply to the requesting
        node.
        """
        if reply.origin == state.node or not self._learn(state, now, sender, reply):
            return []
        effects: Effects = []
        if (search := state.searches.pop(reply.origin, None)) is not None:
            effects.append(CancelTimer(f"{_SEARCH}{reply.origin}"))
            for datagram in search.waiting:
                effects += self._forward(state, now, datagram)
        back = self._usable(state, now, reply.target)
        if reply.target != state.node and back is not None:
            effects.append(self._transmission(state, back.by, reply, ROUTE_BYTES))
        return effects


_SEARCH = "search "
_UNKNOWN = -1


def _error_message(lost: RouteError) -> Transmit:
    return Transmit(BROADCAST, lost, 4 + len(lost.lost) * (ADDRESS + _NUMBER))
