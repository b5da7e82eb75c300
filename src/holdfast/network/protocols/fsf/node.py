"""The machine of a node: it stores advertisements, operators and events, and forwards them by a policy.

`policy` defines the approaches; `splitting`, `joining` and `covering` contain the decisions of each approach.
"""

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
    FsfAnswer,
    FsfCancel,
    FsfMessage,
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
    """The state of a node. `FsfNode.handle` changes it in place."""

    chance: np.random.Generator
    peers: dict[Peer, ForwardedOperators] = field(default_factory=dict)
    """The neighbours, each with the operators that the node requests of it."""
    sources: SensorSources = field(default_factory=SensorSources)
    requests: dict[Peer, LinkRequests] = field(default_factory=dict)
    """The operators that each link has requested; `HERE` is the link to the node's own users."""
    parts: dict[tuple[Peer, FsfOperator], Parts] = field(default_factory=dict)
    """The parts into which each requested operator was split."""
    own: dict[str, FsfOperator] = field(default_factory=dict)
    """The operators of the node's own users, by the name of the subscription."""
    missing: dict[str, tuple[RangeFilter, ...]] = field(default_factory=dict)
    """For each waiting subscription, the filters without a source."""
    events: EventStore = field(default_factory=EventStore)
    longest: Duration = 0
    joins: dict[OperatorGroup, Join] = field(default_factory=dict)
    tally: CoveringTally = field(default_factory=CoveringTally)


@dataclass(frozen=True, slots=True)
class FsfNode:
    """The machine of a node.

    ``towards`` is the link to the central node, if the policy has one. ``validity`` is the time in µs for
    which the node stores events. It must exceed the longest δt by the greatest delay of an event. The default
    is twice the longest δt of all operators that the node has received.
    """

    policy: FsfPolicy
    towards: Peer | None = None
    validity: Duration | None = None

    def initial(self) -> FsfState:
        """Return the state of the machine before its first input."""
        return FsfState(np.random.default_rng(0))

    def handle(self, state: FsfState, given: Input) -> tuple[FsfState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        step = _FsfStep(self, state)
        match given:
            case Started(_, seed):
                state.chance = np.random.default_rng(seed)
            case Joined(_, peer):
                step.on_joined(peer)
            case Left(_, peer):
                step.on_left(peer)
            case Received(now, sender, message) if sender in state.peers:
                step.on_message(now, sender, message)
            case Asked(_, FsfWant(name, subscription, pending)):
                step.on_want(to_operator(name, subscription), pending)
            case Asked(_, FsfCancel(name)):
                step.on_cancel(name)
            case Asked(now, request):
                step.on_message(now, HERE, request)
        return state, step.effects


class _FsfStep:
    """Handles one input of a node and collects the effects."""

    def __init__(self, node: FsfNode, state: FsfState) -> None:
        self.policy, self.towards, self.validity = node.policy, node.towards, node.validity
        self.state = state
        self.effects: list[Effect] = []

    def send(self, peer: Peer, message: FsfMessage, cause: str = "") -> None:
        """Send a message to a neighbour."""
        self.effects.append(Send(peer, message, cause))

    def deliver(self, what: FsfAnswer | EventsFound) -> None:
        """Deliver an answer or events to the users."""
        self.effects.append(Deliver(what))

    def on_message(self, now: Instant, link: Peer, message: object) -> None:
        """Dispatch a message from a neighbour or from a user."""
        match message:
            case FsfReadings() if self.policy.central and self.towards is not None:
                self.send(self.towards, message)
            case FsfReadings(events):
                self._on_events(now, link, events)
            case FsfResults(members) if self.policy.central:
                self._forward_results(members)
            case FsfResults(members):
                self._on_events(now, link, (event for event, _ in members), members)
            case FsfSubscribe(operator):
                self._add_operator(link, operator)
            case FsfUnsubscribe(operator):
                self._remove_operator(link, operator)
            case FsfAdvertise():
                self._on_advertise(link, message)
            case FsfWithdraw(sensor):
                self._on_withdraw(link, sensor)
            case _:
                raise AssertionError(f"unexpected message {message!r}")

    # --- advertisements [J3] ---

    def on_joined(self, peer: Peer) -> None:
        """Handle a new neighbour: send it all known advertisements."""
        self.state.peers[peer] = ForwardedOperators()
        for known in self.state.sources:
            self.send(peer, known, "advertisement")
        if peer == self.towards:
            self._split_again()

    def _on_advertise(self, link: Peer, sensor: FsfAdvertise) -> None:
        """Record and forward an advertisement."""
        self.state.sources.add(sensor, link)
        self._flood(link, sensor)
        self._split_again(sensor.attribute)

    def _on_withdraw(self, link: Peer, sensor: str) -> None:
        """Remove a sensor and forward its withdrawal."""
        sources = self.state.sources
        known = sources.remove(sensor) if sources.link(sensor) == link else None
        if known is not None:
            self._flood(link, FsfWithdraw(sensor))
            self._split_again(known.attribute)

    def _flood(self, link: Peer, message: FsfAdvertise | FsfWithdraw) -> None:
        """Send a message to all neighbours except the one from which it came."""
        for peer in self.state.peers:
            if peer != link:
                self.send(peer, message, "advertisement")

    def on_left(self, peer: Peer) -> None:
        """Handle the loss of a neighbour: remove its requests and all sensors behind it."""
        del self.state.peers[peer]
        for link, operator in [held for held in self.state.parts if held[0] == peer]:
            self._remove_operator(link, operator)
        if peer == self.towards:
            self._split_again()
        for sensor in self.state.sources.behind(peer):
            self._on_withdraw(peer, sensor.sensor)

    # --- subscriptions [J6, J7, J9] ---

    def on_want(self, operator: FsfOperator, pending: bool) -> None:
        """Handle a user's subscription: accept it, refuse it, or let it wait for sources."""
        missing = self._filters_without_source(operator)
        if missing and not pending:
            self.deliver(SubscriptionRefused(operator.name, missing))
            return
        self.state.own[operator.name] = operator
        self._answer(operator.name, missing)
        self._add_operator(HERE, operator)

    def _answer(self, name: str, missing: tuple[RangeFilter, ...]) -> None:
        """Inform a user that a subscription is accepted, or that it waits for a source."""
        if missing:
            self.state.missing[name] = missing
            self.deliver(SubscriptionWaiting(name, missing))
        else:
            self.state.missing.pop(name, None)
            self.deliver(SubscriptionAccepted(name))

    def _filters_without_source(self, operator: FsfOperator) -> tuple[RangeFilter, ...]:
        """Return the filters of an operator that have no source."""
        ways = self.state.sources.ways(operator, HERE)
        return tuple(one for one, way in zip(operator.filters, ways, strict=True) if not way)

    def on_cancel(self, name: str) -> None:
        """Handle the end of a user's subscription."""
        operator = self.state.own.pop(name)
        self.state.missing.pop(name, None)
        self._remove_operator(HERE, operator)

    def _add_operator(self, link: Peer, operator: FsfOperator) -> None:
        """Add an operator that a link requests."""
        state = self.state
        state.events.clear_row(*state.requests.setdefault(link, LinkRequests()).add(operator))
        state.longest = max(state.longest, operator.within)
        state.parts[link, operator] = []
        self._split(link, operator)

    def _remove_operator(self, link: Peer, operator: FsfOperator) -> None:
        """Remove an operator that a link requested."""
        self._replace_parts(link, operator, [])
        del self.state.parts[link, operator]
        self.state.requests[link].remove(operator)

    def _split_again(self, attribute: str | None = None) -> None:
        """Split operators again after the sources of an attribute have changed; ``None`` stands for all
        attributes.
        """
        state = self.state
        state.joins.clear()
        for link, operator in list(state.parts):
            if attribute is None or any(one.attribute == attribute for one in operator.filters):
                self._split(link, operator)
        for name, operator in state.own.items():
            missing = self._filters_without_source(operator)
            if missing != state.missing.get(name, ()):
                self._answer(name, missing)

    def _split(self, link: Peer, operator: FsfOperator) -> None:
        """Split an operator and request its parts from the neighbours."""
        if not self.policy.central:
            parts = self.policy.splitting(operator, link, self.state.sources)
        elif self.towards not in self.state.peers or (
            link == HERE and self._filters_without_source(operator)
        ):
            parts = []
        else:
            parts = [(self.towards, operator)]
        self._replace_parts(link, operator, parts)

    def _replace_parts(self, link: Peer, operator: FsfOperator, parts: Parts) -> None:
        """Request new parts of an operator, then end the old ones, so that no event is lost in between."""
        state = self.state
        before, state.parts[link, operator] = state.parts[link, operator], parts
        ask = counting_test(self.policy.filtering, state.chance, state.tally)
        for peer, part in parts:
            if (peer, part) not in before and state.peers[peer].hold(part, operator, ask):
                self.send(peer, FsfSubscribe(part), operator.name)
        for peer, part in before:
            if (peer, part) not in parts and peer in state.peers:
                self._release(peer, part, operator, ask)

    def _release(self, peer: Peer, part: FsfOperator, holder: FsfOperator, ask: Ask | None) -> None:
        """Give up a part of an operator. Send the operators that only this part covered."""
        gone, shown = self.state.peers[peer].release(part, holder, ask)
        for other in shown:
            self.send(peer, FsfSubscribe(other), other.name)
        if gone:
            self.send(peer, FsfUnsubscribe(part), part.name)

    # --- events [J2, J8] ---

    def _on_events(self, now: Instant, link: Peer, events: Iterable[Simple], members: Members = ()) -> None:
        """Process new events. They may also complete complex events with stored ones."""
        state = self.state
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
                    self._forward_events(asker, groups, new)

    def _forward_events(self, link: Peer, groups: list[OperatorGroup], new: list[StoredEvent]) -> None:
        """Forward the events that a link wants and has not yet received."""
        state, policy = self.state, self.policy
        once = link != HERE and not policy.result_sets and not policy.named
        found: dict[StoredEvent, list[str]] = {}
        for group in groups:
            here = join_input(group, state.events, new, link)
            if once and all(link in seen.crossed_links for seen in here.seen):
                continue
            wanted = self._join(link, group)(group, here)
            if policy.named and wanted.size:
                _select_named(wanted, here, self._rows_forwarded_whole(link, group))
            named = cache(group.names_of)
            for seen, rows in zip(here.seen, _by_bits(wanted), strict=False):
                if not rows:
                    continue
                if once and link not in seen.crossed_links:
                    seen.crossed_links = (*seen.crossed_links, link)
                    found[seen] = []
                elif not once and (fresh := seen.first_for(group, rows)):
                    found.setdefault(seen, []).extend(named(fresh))
        if found and once:
            self.send(link, FsfReadings(tuple(seen.event for seen in found)))
        elif found:
            self._send_members(link, tuple((seen.event, tuple(names)) for seen, names in found.items()))

    def _join(self, link: Peer, group: OperatorGroup) -> Join:
        """Return the join of a group, which depends on the current sources. It is stored until sources
        change.
        """
        joins = self.state.joins
        if group not in joins:
            joins[group] = self.policy.joining(next(iter(group.rows)), link, self.state.sources)
        return joins[group]

    def _send_members(self, link: Peer, members: Members) -> None:
        """Send members of result sets to a link, or deliver them to the node's own users."""
        if link == HERE:
            self.deliver(EventsFound(members))
        else:
            self.send(link, FsfResults(members))

    def _forward_results(self, members: Members) -> None:
        """Forward result sets of the central node to the links that requested the subscriptions."""
        for link, wants in self.state.requests.items():
            named = [(event, tuple(n for n in names if n in wants.names)) for event, names in members]
            if theirs := tuple((event, names) for event, names in named if names):
                self._send_members(link, theirs)

    def _rows_forwarded_whole(self, link: Peer, group: OperatorGroup) -> dict[str, int]:
        """Return, by name, the rows of a group's operators that were forwarded unchanged. Another node has
        joined events for these operators.
        """
        state = self.state
        return {
            operator.name: row
            for operator, row in group.rows.items()
            if (parts := state.parts[link, operator])
            and all(part == operator and state.peers[peer].was_sent(part) for peer, part in parts)
        }


def _select_named(wanted: Flags, here: JoinInput, relayed: dict[str, int]) -> None:
    """Restrict operators that were forwarded unchanged to the events that came for them."""
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
