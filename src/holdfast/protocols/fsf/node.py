"""A node of the network: it keeps advertisements, operators and events, and passes them on by a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from ...model.correlation import Filter, Simple
from ...model.instant import Duration, Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Peer, Received, Send, Started
from .events import Events, Seen
from .forwarding import Ask, Forwarded, Tally, asking
from .joining import Around, Flags, Join, around
from .matching import Group, Wants
from .message import (
    Accepted,
    Advertise,
    Cancel,
    Found,
    Members,
    Readings,
    Refused,
    Results,
    Subscribe,
    Unsubscribe,
    Waiting,
    Want,
    Withdraw,
)
from .operator import Operator, whole
from .policy import Policy
from .sources import HERE, Sources
from .splitting import Parts


@dataclass(slots=True)
class FsfState:
    """What a node knows."""

    chance: np.random.Generator
    peers: dict[Peer, Forwarded] = field(default_factory=dict)
    """The neighbours, and what they were asked for."""
    sources: Sources = field(default_factory=Sources)
    wants: dict[Peer, Wants] = field(default_factory=dict)
    """What each link asks for, that of the own users included."""
    parts: dict[tuple[Peer, Operator], Parts] = field(default_factory=dict)
    """Into what an operator of a link has been split."""
    own: dict[str, Operator] = field(default_factory=dict)
    """The users' subscriptions."""
    missing: dict[str, tuple[Filter, ...]] = field(default_factory=dict)
    """The filters without a source of those that wait for one."""
    events: Events = field(default_factory=Events)
    longest: Duration = 0
    joins: dict[Group, Join] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class FsfNode:
    """The machine.  ``towards`` is the way to the central node, where a policy has one; ``validity`` is how
    long events are kept: longer than the longest δt by as much as events may come late; unless given,
    twice the longest δt that the node has heard of."""

    policy: Policy
    towards: Peer | None = None
    validity: Duration | None = None

    def initial(self) -> FsfState:
        """Nothing is known."""
        return FsfState(np.random.default_rng(0))

    def handle(self, state: FsfState, given: Input) -> tuple[FsfState, list[Effect]]:
        """Take one input."""
        match given:
            case Started(_, seed):
                state.chance = np.random.default_rng(seed)
                return state, []
            case Joined(_, peer):
                return state, list(self._found(state, peer))
            case Left(_, peer):
                return state, list(self._lost(state, peer))
            case Received(now, sender, message) if sender in state.peers:
                return state, list(self._told(state, now, sender, message))
            case Asked(_, Want(name, subscription, pending)):
                return state, list(self._wanted(state, whole(name, subscription), pending))
            case Asked(_, Cancel(name)):
                return state, list(self._cancelled(state, name))
            case Asked(now, request):
                return state, list(self._told(state, now, HERE, request))
            case _:
                return state, []

    def _told(self, state: FsfState, now: Instant, link: Peer, message: object) -> Iterator[Effect]:
        match message:
            case Readings() if self.policy.central and self.towards is not None:
                yield Send(self.towards, message)
            case Readings(events):
                yield from self._came(state, now, link, events)
            case Results(members) if self.policy.central:
                yield from self._relayed(state, members)
            case Results(members):
                yield from self._came(state, now, link, (event for event, _ in members), members)
            case Subscribe(operator):
                yield from self._asked(state, link, operator)
            case Unsubscribe(operator):
                yield from self._dropped(state, link, operator)
            case Advertise():
                yield from self._advertised(state, link, message)
            case Withdraw(sensor):
                yield from self._withdrawn(state, link, sensor)
            case _:
                raise AssertionError(f"a node was told {message!r}")

    # --- advertisements [J3] ---

    def _found(self, state: FsfState, peer: Peer) -> Iterator[Effect]:
        """A neighbour is there."""
        state.peers[peer] = Forwarded()
        yield from (Send(peer, known, "advertisement") for known in state.sources)
        if peer == self.towards:
            yield from self._rearranged(state)

    def _advertised(self, state: FsfState, link: Peer, sensor: Advertise) -> Iterator[Effect]:
        state.sources.add(sensor, link)
        yield from _flooded(state, link, sensor)
        yield from self._rearranged(state, sensor.attribute)

    def _withdrawn(self, state: FsfState, link: Peer, sensor: str) -> Iterator[Effect]:
        known = state.sources.remove(sensor) if state.sources.link(sensor) == link else None
        if known is not None:
            yield from _flooded(state, link, Withdraw(sensor))
            yield from self._rearranged(state, known.attribute)

    def _lost(self, state: FsfState, peer: Peer) -> Iterator[Effect]:
        """A neighbour is gone, with what it asked for and all that was behind it."""
        del state.peers[peer]
        for link, operator in [held for held in state.parts if held[0] == peer]:
            yield from self._dropped(state, link, operator)
        if peer == self.towards:
            yield from self._rearranged(state)
        for sensor in state.sources.behind(peer):
            yield from self._withdrawn(state, peer, sensor.sensor)

    # --- subscriptions [J6, J7, J9] ---

    def _wanted(self, state: FsfState, operator: Operator, pending: bool) -> Iterator[Effect]:
        missing = _missing(state, operator)
        if missing and not pending:
            yield Deliver(Refused(operator.name, missing))
            return
        state.own[operator.name] = operator
        yield _answered(state, operator.name, missing)
        yield from self._asked(state, HERE, operator)

    def _cancelled(self, state: FsfState, name: str) -> Iterator[Effect]:
        """A user wants it no more."""
        operator = state.own.pop(name)
        state.missing.pop(name, None)
        yield from self._dropped(state, HERE, operator)

    def _asked(self, state: FsfState, link: Peer, operator: Operator) -> Iterator[Effect]:
        state.events.untell(*state.wants.setdefault(link, Wants()).add(operator))
        state.longest = max(state.longest, operator.within)
        state.parts[link, operator] = []
        yield from self._placed(state, link, operator)

    def _dropped(self, state: FsfState, link: Peer, operator: Operator) -> Iterator[Effect]:
        yield from self._replaced(state, link, operator, [])
        del state.parts[link, operator]
        state.wants[link].remove(operator)

    def _rearranged(self, state: FsfState, attribute: str | None = None) -> Iterator[Effect]:
        """Sources (of one attribute) have come or gone: operators may have to go other ways."""
        state.joins.clear()
        for link, operator in list(state.parts):
            if attribute is None or any(one.attribute == attribute for one in operator.filters):
                yield from self._placed(state, link, operator)
        for name, operator in state.own.items():
            missing = _missing(state, operator)
            if missing != state.missing.get(name, ()):
                yield _answered(state, name, missing)

    def _placed(self, state: FsfState, link: Peer, operator: Operator) -> Iterator[Effect]:
        """Ask the neighbours for the parts of an operator."""
        if not self.policy.central:
            parts = self.policy.splitting(operator, link, state.sources)
        elif self.towards not in state.peers or (link == HERE and _missing(state, operator)):
            parts = []
        else:
            parts = [(self.towards, operator)]
        yield from self._replaced(state, link, operator, parts)

    def _replaced(self, state: FsfState, link: Peer, operator: Operator, parts: Parts) -> Iterator[Effect]:
        """Ask for these parts of an operator instead of those before; first for the new ones, so that
        nothing is lost between."""
        before = state.parts[link, operator]
        state.parts[link, operator] = parts
        ask = asking(self.policy.filtering, state.chance, state.tally)
        for peer, part in parts:
            if (peer, part) not in before and state.peers[peer].hold(part, operator, ask):
                yield Send(peer, Subscribe(part), operator.name)
        for peer, part in before:
            if (peer, part) not in parts and peer in state.peers:
                yield from _released(state, peer, part, operator, ask)

    # --- events [J2, J8] ---

    def _came(
        self, state: FsfState, now: Instant, link: Peer, events: Iterable[Simple], members: Members = ()
    ) -> Iterator[Effect]:
        """Events have come, as members of result sets or not: they and others may be wanted from now on."""
        if self.policy.central:
            link = HERE  # the central node matches all events, for every link
        state.events.forget(now - (2 * state.longest if self.validity is None else self.validity))
        events = tuple(events)
        measured = dict.fromkeys((event.attribute, event.sensor) for event in events)
        asked = {asker: groups for asker, wants in state.wants.items() if (groups := wants.of(measured))}
        new = state.events.add(events, link) if asked else []
        if asked and self.policy.named and members:
            new = state.events.name(members)
        if new:
            for asker, groups in asked.items():
                if asker == HERE or asker != link:
                    yield from self._passed(state, asker, groups, new)

    def _passed(self, state: FsfState, link: Peer, groups: list[Group], new: list[Seen]) -> Iterator[Effect]:
        """Pass on what a link wants and has not got."""
        once = link != HERE and not self.policy.result_sets and not self.policy.named
        found: dict[Seen, list[str]] = {}
        for group in groups:
            here = around(group, state.events, new, link)
            if once and all(link in seen.passed for seen in here.seen):
                continue
            wanted = self._join(state, link, group)(group, here)
            if self.policy.named and wanted.size:
                _keep_named(wanted, here, _relayed(state, link, group))
            named = cache(group.named)
            for seen, rows in zip(here.seen, _by_bits(wanted), strict=False):
                if not rows:
                    continue
                if once and link not in seen.passed:
                    seen.passed = (*seen.passed, link)
                    found[seen] = []
                elif not once and (fresh := seen.first_for(group, rows)):
                    found.setdefault(seen, []).extend(named(fresh))
        if not found:
            return
        if once:
            yield Send(link, Readings(tuple(seen.event for seen in found)))
        else:
            members = tuple((seen.event, tuple(names)) for seen, names in found.items())
            yield Deliver(Found(members)) if link == HERE else Send(link, Results(members))

    def _join(self, state: FsfState, link: Peer, group: Group) -> Join:
        join = state.joins.get(group)
        if join is None:
            some = next(iter(group.rows))
            join = state.joins[group] = self.policy.joining(some, link, state.sources)
        return join

    def _relayed(self, state: FsfState, members: Members) -> Iterator[Effect]:
        """Result sets of the central node go on to whom they are for."""
        for link, wants in state.wants.items():
            theirs = tuple(
                (event, some)
                for event, names in members
                if (some := tuple(name for name in names if name in wants.names))
            )
            if theirs:
                yield Deliver(Found(theirs)) if link == HERE else Send(link, Results(theirs))


def _relayed(state: FsfState, link: Peer, group: Group) -> dict[str, int]:
    """The operators of a group that went on as they are, by name: what they join was joined further up."""
    return {
        operator.name: row
        for operator, row in group.rows.items()
        if (parts := state.parts[link, operator])
        and all(part == operator and state.peers[peer].was_sent(part) for peer, part in parts)
    }


def _keep_named(wanted: Flags, here: Around, relayed: dict[str, int]) -> None:
    """For operators that went on as they are, want what came for them."""
    came = [at for at, seen in enumerate(here.seen) if seen.origin != HERE]
    wanted[np.ix_(came, list(relayed.values()))] = False
    rows = cache(lambda names: [relayed[name] for name in names if name in relayed])
    theirs = [(at, row) for at in came for row in rows(here.seen[at].names)]
    wanted[tuple(np.array(theirs, np.int64).reshape(-1, 2).T)] = True


def _by_bits(wanted: Flags) -> Iterator[int]:
    """For each of the events, the operators that want it, a bit each."""
    packed = np.packbits(wanted, axis=1, bitorder="little")
    data, width = packed.tobytes(), packed.shape[1]
    return (int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width or 1))


def _answered(state: FsfState, name: str, missing: tuple[Filter, ...]) -> Effect:
    """Tell a user whether a subscription waits."""
    if missing:
        state.missing[name] = missing
        return Deliver(Waiting(name, missing))
    state.missing.pop(name, None)
    return Deliver(Accepted(name))


def _flooded(state: FsfState, link: Peer, message: Advertise | Withdraw) -> Iterator[Effect]:
    return (Send(peer, message, "advertisement") for peer in state.peers if peer != link)


def _missing(state: FsfState, operator: Operator) -> tuple[Filter, ...]:
    ways = state.sources.ways(operator, HERE)
    return tuple(one for one, way in zip(operator.filters, ways, strict=True) if not way)


def _released(
    state: FsfState, peer: Peer, part: Operator, holder: Operator, ask: Ask | None
) -> Iterator[Effect]:
    gone, shown = state.peers[peer].release(part, holder, ask)
    for other in shown:
        yield Send(peer, Subscribe(other), other.name)
    if gone:
        yield Send(peer, Unsubscribe(part), part.name)
