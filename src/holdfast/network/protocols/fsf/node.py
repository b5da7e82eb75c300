"""A node of the network: it stores advertisements, operators and events, and forwards them by a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from ....model.correlation import RangeFilter, Simple
from ....model.instant import Duration, Instant
from ....model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Peer, Received, Send, Started
from .events import EventStore, StoredEvent
from .forwarding import Ask, CoveringTally, ForwardedOperators, counting_test
from .joining import Flags, Join, JoinInput, join_input
from .matching import LinkRequests, OperatorGroup
from .message import (
    EventsFound,
    FsfAdvertise,
    FsfCancel,
    FsfReadings,
    FsfResults,
    FsfSubscribe,
    FsfUnsubscribe,
    FsfWant,
    FsfWithdraw,
    Members,
    SubscriptionAccepted,
    SubscriptionRefused,
    SubscriptionWaiting,
)
from .operator import FsfOperator, to_operator
from .policy import FsfPolicy
from .sources import HERE, SensorSources
from .splitting import Parts


@dataclass(slots=True)
class FsfState:
    """The state of a node."""

    chance: np.random.Generator
    peers: dict[Peer, ForwardedOperators] = field(default_factory=dict)
    """The neighbours, and the operators requested of each."""
    sources: SensorSources = field(default_factory=SensorSources)
    requests: dict[Peer, LinkRequests] = field(default_factory=dict)
    """The operators that each link has requested, including the node's own users."""
    parts: dict[tuple[Peer, FsfOperator], Parts] = field(default_factory=dict)
    """The parts into which an operator of a link has been split."""
    own: dict[str, FsfOperator] = field(default_factory=dict)
    """The users' subscriptions."""
    missing: dict[str, tuple[RangeFilter, ...]] = field(default_factory=dict)
    """By waiting subscription: the filters without a source."""
    events: EventStore = field(default_factory=EventStore)
    longest: Duration = 0
    joins: dict[OperatorGroup, Join] = field(default_factory=dict)
    tally: CoveringTally = field(default_factory=CoveringTally)


@dataclass(frozen=True, slots=True)
class FsfNode:
    """The machine.

    ``towards`` is the link to the central node, if the policy has one. ``validity`` is how long events are
    stored, in microseconds: it must exceed the longest δt by the greatest delay of an event. The default is
    twice the longest δt of any operator so far.
    """

    policy: FsfPolicy
    towards: Peer | None = None
    validity: Duration | None = None

    def initial(self) -> FsfState:
        """Return the state before the first input."""
        return FsfState(np.random.default_rng(0))

    def handle(self, state: FsfState, given: Input) -> tuple[FsfState, list[Effect]]:
        """Handle one input: update the state and return the effects."""
        match given:
            case Started(_, seed):
                state.chance = np.random.default_rng(seed)
                return state, []
            case Joined(_, peer):
                return state, list(self._on_joined(state, peer))
            case Left(_, peer):
                return state, list(self._on_left(state, peer))
            case Received(now, sender, message) if sender in state.peers:
                return state, list(self._on_message(state, now, sender, message))
            case Asked(_, FsfWant(name, subscription, pending)):
                return state, list(self._on_want(state, to_operator(name, subscription), pending))
            case Asked(_, FsfCancel(name)):
                return state, list(self._on_cancel(state, name))
            case Asked(now, request):
                return state, list(self._on_message(state, now, HERE, request))
            case _:
                return state, []

    def _on_message(self, state: FsfState, now: Instant, link: Peer, message: object) -> Iterator[Effect]:
        """Dispatch a message of a neighbour or of a user."""
        match message:
            case FsfReadings() if self.policy.central and self.towards is not None:
                yield Send(self.towards, message)
            case FsfReadings(events):
                yield from self._on_events(state, now, link, events)
            case FsfResults(members) if self.policy.central:
                yield from self._forward_results(state, members)
            case FsfResults(members):
                yield from self._on_events(state, now, link, (event for event, _ in members), members)
            case FsfSubscribe(operator):
                yield from self._add_operator(state, link, operator)
            case FsfUnsubscribe(operator):
                yield from self._remove_operator(state, link, operator)
            case FsfAdvertise():
                yield from self._on_advertise(state, link, message)
            case FsfWithdraw(sensor):
                yield from self._on_withdraw(state, link, sensor)
            case _:
                raise AssertionError(f"unexpected message {message!r}")

    # --- advertisements [J3] ---

    def _on_joined(self, state: FsfState, peer: Peer) -> Iterator[Effect]:
        """Handle a new neighbour."""
        state.peers[peer] = ForwardedOperators()
        yield from (Send(peer, known, "advertisement") for known in state.sources)
        if peer == self.towards:
            yield from self._split_again(state)

    def _on_advertise(self, state: FsfState, link: Peer, sensor: FsfAdvertise) -> Iterator[Effect]:
        """Record and forward an advertisement."""
        state.sources.add(sensor, link)
        yield from _flood(state, link, sensor)
        yield from self._split_again(state, sensor.attribute)

    def _on_withdraw(self, state: FsfState, link: Peer, sensor: str) -> Iterator[Effect]:
        """Remove a sensor and forward its withdrawal."""
        known = state.sources.remove(sensor) if state.sources.link(sensor) == link else None
        if known is not None:
            yield from _flood(state, link, FsfWithdraw(sensor))
            yield from self._split_again(state, known.attribute)

    def _on_left(self, state: FsfState, peer: Peer) -> Iterator[Effect]:
        """Handle the loss of a neighbour, with its requests and all sensors behind it."""
        del state.peers[peer]
        for link, operator in [held for held in state.parts if held[0] == peer]:
            yield from self._remove_operator(state, link, operator)
        if peer == self.towards:
            yield from self._split_again(state)
        for sensor in state.sources.behind(peer):
            yield from self._on_withdraw(state, peer, sensor.sensor)

    # --- subscriptions [J6, J7, J9] ---

    def _on_want(self, state: FsfState, operator: FsfOperator, pending: bool) -> Iterator[Effect]:
        """Handle a user's subscription."""
        missing = _filters_without_source(state, operator)
        if missing and not pending:
            yield Deliver(SubscriptionRefused(operator.name, missing))
            return
        state.own[operator.name] = operator
        yield _answer(state, operator.name, missing)
        yield from self._add_operator(state, HERE, operator)

    def _on_cancel(self, state: FsfState, name: str) -> Iterator[Effect]:
        """Handle the end of a user's subscription."""
        operator = state.own.pop(name)
        state.missing.pop(name, None)
        yield from self._remove_operator(state, HERE, operator)

    def _add_operator(self, state: FsfState, link: Peer, operator: FsfOperator) -> Iterator[Effect]:
        """Add an operator that a link requests."""
        state.events.clear_row(*state.requests.setdefault(link, LinkRequests()).add(operator))
        state.longest = max(state.longest, operator.within)
        state.parts[link, operator] = []
        yield from self._split(state, link, operator)

    def _remove_operator(self, state: FsfState, link: Peer, operator: FsfOperator) -> Iterator[Effect]:
        """Remove an operator that a link requested."""
        yield from self._replace_parts(state, link, operator, [])
        del state.parts[link, operator]
        state.requests[link].remove(operator)

    def _split_again(self, state: FsfState, attribute: str | None = None) -> Iterator[Effect]:
        """Split operators again after sources (of one attribute) have changed."""
        state.joins.clear()
        for link, operator in list(state.parts):
            if attribute is None or any(one.attribute == attribute for one in operator.filters):
                yield from self._split(state, link, operator)
        for name, operator in state.own.items():
            missing = _filters_without_source(state, operator)
            if missing != state.missing.get(name, ()):
                yield _answer(state, name, missing)

    def _split(self, state: FsfState, link: Peer, operator: FsfOperator) -> Iterator[Effect]:
        """Split an operator and request its parts of the neighbours."""
        if not self.policy.central:
            parts = self.policy.splitting(operator, link, state.sources)
        elif self.towards not in state.peers or (link == HERE and _filters_without_source(state, operator)):
            parts = []
        else:
            parts = [(self.towards, operator)]
        yield from self._replace_parts(state, link, operator, parts)

    def _replace_parts(
        self, state: FsfState, link: Peer, operator: FsfOperator, parts: Parts
    ) -> Iterator[Effect]:
        """Request new parts of an operator, then end the old ones, so that no event is lost in between."""
        before = state.parts[link, operator]
        state.parts[link, operator] = parts
        ask = counting_test(self.policy.filtering, state.chance, state.tally)
        for peer, part in parts:
            if (peer, part) not in before and state.peers[peer].hold(part, operator, ask):
                yield Send(peer, FsfSubscribe(part), operator.name)
        for peer, part in before:
            if (peer, part) not in parts and peer in state.peers:
                yield from _release(state, peer, part, operator, ask)

    # --- events [J2, J8] ---

    def _on_events(
        self, state: FsfState, now: Instant, link: Peer, events: Iterable[Simple], members: Members = ()
    ) -> Iterator[Effect]:
        """Process new events: they and stored ones may be wanted now."""
        if self.policy.central:
            link = HERE  # the central node matches all events, for every link
        state.events.forget(now - (2 * state.longest if self.validity is None else self.validity))
        events = tuple(events)
        measured = dict.fromkeys((event.attribute, event.sensor) for event in events)
        asked = {asker: groups for asker, wants in state.requests.items() if (groups := wants.of(measured))}
        new = state.events.add(events, link) if asked else []
        if asked and self.policy.named and members:
            new = state.events.add_names(members)
        if new:
            for asker, groups in asked.items():
                if asker == HERE or asker != link:
                    yield from self._forward_events(state, asker, groups, new)

    def _forward_events(
        self, state: FsfState, link: Peer, groups: list[OperatorGroup], new: list[StoredEvent]
    ) -> Iterator[Effect]:
        """Forward the events that a link wants and has not received."""
        once = link != HERE and not self.policy.result_sets and not self.policy.named
        found: dict[StoredEvent, list[str]] = {}
        for group in groups:
            here = join_input(group, state.events, new, link)
            if once and all(link in seen.crossed_links for seen in here.seen):
                continue
            wanted = self._join(state, link, group)(group, here)
            if self.policy.named and wanted.size:
                _select_named(wanted, here, _rows_forwarded_whole(state, link, group))
            named = cache(group.names_of)
            for seen, rows in zip(here.seen, _by_bits(wanted), strict=False):
                if not rows:
                    continue
                if once and link not in seen.crossed_links:
                    seen.crossed_links = (*seen.crossed_links, link)
                    found[seen] = []
                elif not once and (fresh := seen.first_for(group, rows)):
                    found.setdefault(seen, []).extend(named(fresh))
        if not found:
            return
        if once:
            yield Send(link, FsfReadings(tuple(seen.event for seen in found)))
        else:
            members = tuple((seen.event, tuple(names)) for seen, names in found.items())
            yield Deliver(EventsFound(members)) if link == HERE else Send(link, FsfResults(members))

    def _join(self, state: FsfState, link: Peer, group: OperatorGroup) -> Join:
        """Return the join of a group, which depends on the current sources."""
        join = state.joins.get(group)
        if join is None:
            some = next(iter(group.rows))
            join = state.joins[group] = self.policy.joining(some, link, state.sources)
        return join

    def _forward_results(self, state: FsfState, members: Members) -> Iterator[Effect]:
        """Forward result sets of the central node to the links of their subscriptions."""
        for link, wants in state.requests.items():
            theirs = tuple(
                (event, some)
                for event, names in members
                if (some := tuple(name for name in names if name in wants.names))
            )
            if theirs:
                yield Deliver(EventsFound(theirs)) if link == HERE else Send(link, FsfResults(theirs))


def _rows_forwarded_whole(state: FsfState, link: Peer, group: OperatorGroup) -> dict[str, int]:
    """Return the rows of a group's operators that were forwarded unchanged, by name: others have joined for
    them."""
    return {
        operator.name: row
        for operator, row in group.rows.items()
        if (parts := state.parts[link, operator])
        and all(part == operator and state.peers[peer].was_sent(part) for peer, part in parts)
    }


def _select_named(wanted: Flags, here: JoinInput, relayed: dict[str, int]) -> None:
    """For operators that were forwarded unchanged, want exactly the events that came for them."""
    came = [at for at, seen in enumerate(here.seen) if seen.origin != HERE]
    wanted[np.ix_(came, list(relayed.values()))] = False
    rows = cache(lambda names: [relayed[name] for name in names if name in relayed])
    theirs = [(at, row) for at in came for row in rows(here.seen[at].subscriptions)]
    wanted[tuple(np.array(theirs, np.int64).reshape(-1, 2).T)] = True


def _by_bits(wanted: Flags) -> Iterator[int]:
    """Yield, for each event, a bit mask of the operators that want it."""
    packed = np.packbits(wanted, axis=1, bitorder="little")
    data, width = packed.tobytes(), packed.shape[1]
    return (int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width or 1))


def _answer(state: FsfState, name: str, missing: tuple[RangeFilter, ...]) -> Effect:
    """Inform a user whether a subscription waits."""
    if missing:
        state.missing[name] = missing
        return Deliver(SubscriptionWaiting(name, missing))
    state.missing.pop(name, None)
    return Deliver(SubscriptionAccepted(name))


def _flood(state: FsfState, link: Peer, message: FsfAdvertise | FsfWithdraw) -> Iterator[Effect]:
    """Send a message to all neighbours but one."""
    return (Send(peer, message, "advertisement") for peer in state.peers if peer != link)


def _filters_without_source(state: FsfState, operator: FsfOperator) -> tuple[RangeFilter, ...]:
    """Return the filters of an operator without a source."""
    ways = state.sources.ways(operator, HERE)
    return tuple(one for one, way in zip(operator.filters, ways, strict=True) if not way)


def _release(
    state: FsfState, peer: Peer, part: FsfOperator, holder: FsfOperator, ask: Ask | None
) -> Iterator[Effect]:
    """Give up a part of an operator, and send the operators that it covered."""
    gone, shown = state.peers[peer].release(part, holder, ask)
    for other in shown:
        yield Send(peer, FsfSubscribe(other), other.name)
    if gone:
        yield Send(peer, FsfUnsubscribe(part), part.name)
