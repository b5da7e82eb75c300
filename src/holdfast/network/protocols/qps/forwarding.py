"""A logical broker: it merges subscriptions, passes parts of them down, and forwards events.

[F22, F31, F32, F37–F43]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from ....model.instant import BEGINNING, Instant
from ....model.protocol import Effect, Route, SetTimer, Spread
from ....model.space import Point
from .area import NOTHING, Area, contains_point, difference, intersection, union_of
from .deployment import QpsDeployment
from .message import (
    AreaCoverage,
    At,
    QpsAdvertise,
    QpsMessage,
    QpsSource,
    QpsSubscribe,
    QpsUnsubscribe,
    RoutedPublication,
    SubscriberGone,
    cause_of,
)
from .request_table import AreaPatch, AreaRequest, Kind, RequestTable
from .resolve import ResolveInputs, resolve, withdraw
from .state import AdvertArea, Key, LogicalBroker, Publisher, QpsState
from .tree import QuadScope

COVERAGE = "coverage"
"""The timer of a leaf that must check coverage."""


def route_to(to: Point, message: QpsMessage) -> Route:
    """Return the effect that sends a message to a point."""
    return Route(to, message, cause_of(message))


@dataclass(frozen=True, slots=True)
class BrokerRoles:
    """A node in the role of logical brokers."""

    deployment: QpsDeployment
    at: At

    def role(self, state: QpsState, topic: str, scope: QuadScope) -> LogicalBroker:
        """Return the state of a logical broker; a node that is addressed as a broker takes its role."""
        return state.logical.setdefault((topic, scope), LogicalBroker(topic, scope))

    def away(self, topic: str, scope: QuadScope) -> float:
        """Return the distance of this node from a logical broker's point."""
        return math.dist(self.at, self.deployment.tree.address(topic, scope))

    # --- subscriptions ---

    def on_subscribe(
        self, state: QpsState, given: QpsSubscribe, to: QuadScope, now: Instant
    ) -> Iterator[Effect]:
        """Apply R to the part of a subscription that is new here."""
        role = self.role(state, given.topic, to)
        wishes = self._wishes(role, given, now)
        area = intersection(given.area, self.deployment.tree.cell(to))
        fresh = wishes.newer_part(area, given.version)
        yield from self._repeat(role, wishes, changed(given, area=difference(area, fresh)), now)
        if fresh:
            passed = union_of(part for part, _ in wishes.patches_in(fresh, "below"))
            wishes.remove(fresh)
            terms: list[AreaRequest] = []
            for scope, part, epsilon in resolve(
                self._resolve_inputs(role), given.source.at, fresh, given.epsilon
            ):
                kind: Kind = "here" if scope == to else "below"
                wishes.add(AreaPatch(part, given.version, kind, given.epsilon, given.fulfil, now))
                if kind == "here":
                    terms.append(AreaRequest(part, epsilon, given.fulfil, BEGINNING))
                    yield from self._end_below(role, given, intersection(passed, part))
                else:
                    yield self._to_child(role, scope, changed(given, to=scope, area=part))
            yield from self._update_requests(state, role, terms, now)
            for event in role.latest.values():
                if any(contains_point(term.area, event.location) for term in terms):
                    yield self._forward(role, wishes, given.source.scope, changed(event, repeated=True))
        if given.fulfil or wishes.unfulfilled:
            yield from self._start_watch(role, now)

    def on_unsubscribe(
        self, state: QpsState, given: QpsUnsubscribe, to: QuadScope, now: Instant
    ) -> Iterator[Effect]:
        """Apply R' to the end of a subscription."""
        role = self.role(state, given.topic, to)
        wishes = self._wishes(role, given, now)
        fresh = wishes.newer_part(intersection(given.area, self.deployment.tree.cell(to)), given.version)
        registered = wishes.registered_area()
        for scope, part, _ in withdraw(self.deployment.tree, to, fresh, registered):
            if scope != to:
                yield self._to_child(role, scope, changed(given, to=scope, area=part))
        if fresh:
            wishes.add(AreaPatch(fresh, given.version, "over"))
            yield from self._update_requests(state, role, (), now)
            yield from self._report_coverage(role, now)

    def on_gone(
        self, state: QpsState, given: SubscriberGone, to: QuadScope, now: Instant
    ) -> Iterator[Effect]:
        """Remove a subscriber that does not answer, as if it had stopped to repeat its requests.  [F49]"""
        role = self.role(state, given.topic, to)
        key = given.source.scope or given.source.at
        if key in role.links and role.links[key].at == given.source.at:
            del role.links[key]
            yield from self._update_requests(state, role, (), now)

    def _wishes(
        self, role: LogicalBroker, given: QpsSubscribe | QpsUnsubscribe, now: Instant
    ) -> RequestTable:
        """Return the table of a subscriber, with its current address."""
        source = given.source
        wishes = role.links.setdefault(source.scope or source.at, RequestTable(source.at))
        wishes.update_address(source, given.version)
        wishes.drop_old(now - self.deployment.memory, BEGINNING)
        return wishes

    def _resolve_inputs(self, role: LogicalBroker) -> ResolveInputs:
        """Return the inputs of R."""
        tree, topic = self.deployment.tree, role.topic

        def advertised(area: Area) -> Sequence[Point]:
            return [at for at, advert in role.adverts.items() if intersection(advert.area, area)]

        def leaves(area: Area) -> Sequence[Point]:
            return [tree.address(topic, leaf) for leaf in tree.leaves(area, role.scope)]

        guaranteed = self.deployment.compliance == "guaranteed"
        return ResolveInputs(
            tree, role.scope, self.at, role.registered_area, advertised, leaves if guaranteed else None
        )

    def _repeat(
        self, role: LogicalBroker, wishes: RequestTable, given: QpsSubscribe, now: Instant
    ) -> Iterator[Effect]:
        """Repeat a request that was received before, here and below."""
        wishes.renew(given.area, given.version, now)
        for part, patch in list(wishes.patches_in(given.area, "below")):
            if patch.version == given.version:
                for child in self.deployment.tree.children(role.scope):
                    if inner := intersection(part, self.deployment.tree.cell(child)):
                        yield self._to_child(role, child, changed(given, to=child, area=inner))

    def _end_below(self, role: LogicalBroker, given: QpsSubscribe, area: Area) -> Iterator[Effect]:
        """End a part below that is registered here now."""
        over = QpsUnsubscribe(given.topic, given.source, None, area, given.version)
        for scope, part, _ in withdraw(self.deployment.tree, role.scope, area, NOTHING):
            if scope != role.scope:
                yield self._to_child(role, scope, changed(over, to=scope, area=part))

    def _to_child(self, role: LogicalBroker, child: QuadScope, message: QpsMessage) -> Effect:
        """Send a message to the logical broker of a child scope."""
        return route_to(self.deployment.tree.address(role.topic, child), message)

    # --- its own subscription ---

    def _update_requests(
        self, state: QpsState, role: LogicalBroker, terms: Iterable[AreaRequest], now: Instant
    ) -> Iterator[Effect]:
        """Request areas that became covered, and end those that are covered no longer.  [F31]

        A part that is requested already is requested again if a subscriber has stricter terms.  [F40]
        """
        requested = union_of(request.area for request in role.requests)
        uncovered = difference(requested, role.registered_area)
        if uncovered:
            role.requests = _requests_outside(role.requests, uncovered)
            pop_latest(role.latest, uncovered)
            yield from self._end(role, uncovered, self._version(state, role, now))
        for term in terms:
            requests = self._stricter(role, term)
            if new := difference(term.area, requested):
                requests.append(replace(term, area=new))
            for request in requests:
                asked = replace(request, version=self._version(state, role, now))
                role.requests = [*_requests_outside(role.requests, asked.area), asked]
                yield from self.ask(role, asked)

    def _stricter(self, role: LogicalBroker, term: AreaRequest) -> list[AreaRequest]:
        """Return the requested parts for which ``term`` is stricter, with the stricter terms."""
        found = []
        for old in role.requests:
            tight = self.deployment.compliance == "guaranteed" and term.epsilon < old.epsilon
            if (tight or term.fulfil > old.fulfil) and (part := intersection(old.area, term.area)):
                epsilon = min(term.epsilon, old.epsilon) if tight else old.epsilon
                found.append(AreaRequest(part, epsilon, term.fulfil or old.fulfil, BEGINNING))
        return found

    def announce_move(self, state: QpsState, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Announce this node as the broker to all nodes that send to it.

        Where ε is guaranteed, paths differ from here, so all decisions are made again.
        """
        if self.deployment.compliance == "guaranteed":
            yield from self._resolve_again(state, role, now)
        else:
            for asked in role.requests:
                yield from self.ask(role, asked)
        if any(wishes.registered_area(True) for wishes in role.links.values()):
            yield from self._start_watch(role, now)

    def ask_again(self, state: QpsState, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Send all requests of a role again, under a version later than any before."""
        for asked in role.requests:
            again = replace(asked, version=self._version(state, role, now))
            role.requests = [again if each is asked else each for each in role.requests]
            yield from self.ask(role, again)

    def _resolve_again(self, state: QpsState, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Apply R again to everything that is registered."""
        terms: list[AreaRequest] = []
        before = union_of(each.area for each in role.requests)
        for key, wishes in role.links.items():
            for patch in [patch for patch in wishes.patches if patch.kind == "here"]:
                source = QpsSource(wishes.at, scope_of(key), wishes.turn)
                word = QpsSubscribe(
                    role.topic, source, role.scope, patch.area, patch.epsilon, patch.fulfil, patch.version
                )
                for scope, part, epsilon in resolve(
                    self._resolve_inputs(role), wishes.at, patch.area, patch.epsilon
                ):
                    if scope == role.scope:
                        terms.append(AreaRequest(part, epsilon, patch.fulfil, BEGINNING))
                    else:
                        wishes.add(replace(patch, area=part, kind="below"))
                        yield self._to_child(role, scope, changed(word, to=scope, area=part))
        role.requests = []
        for term in terms:
            yield from self._update_requests(state, role, [term], now)
        if gone := difference(before, role.registered_area):
            yield from self._end(role, gone, self._version(state, role, now))

    def _version(self, state: QpsState, role: LogicalBroker, now: Instant) -> Instant:
        """Return a version later than all earlier ones of the role."""
        role.version = max(state.version(now), role.version + 1)
        return role.version

    def ask(self, role: LogicalBroker, asked: AreaRequest) -> Iterator[Effect]:
        """Send a request to the children or, from a leaf, to publishers."""

        def subscribe(to: QuadScope | None, area: Area) -> QpsMessage:
            return QpsSubscribe(
                role.topic, self._source(role), to, area, asked.epsilon, asked.fulfil, asked.version
            )

        return self._below(role, asked.area, subscribe)

    def _end(self, role: LogicalBroker, area: Area, version: Instant) -> Iterator[Effect]:
        """End a request at the children or, from a leaf, at publishers."""

        def unsubscribe(to: QuadScope | None, area: Area) -> QpsMessage:
            return QpsUnsubscribe(role.topic, self._source(role), to, area, version)

        return self._below(role, area, unsubscribe)

    def _source(self, role: LogicalBroker) -> QpsSource:
        """Return this role as a subscriber."""
        return QpsSource(self.at, role.scope, role.turn)

    def _below(
        self, role: LogicalBroker, area: Area, message: Callable[[QuadScope | None, Area], QpsMessage]
    ) -> Iterator[Effect]:
        """Send to each child its part; from a leaf, to all nodes in it and to advertisers elsewhere."""
        tree = self.deployment.tree
        for child in tree.children(role.scope):
            if part := intersection(area, tree.cell(child)):
                yield self._to_child(role, child, message(child, part))
        if tree.is_leaf(role.scope):
            low, high = tree.corners(role.scope)
            to_all = message(None, area)
            yield Spread(low, high, to_all, cause_of(to_all))
            for at, advert in role.adverts.items():
                if part := intersection(area, advert.area):
                    yield route_to(at, message(None, part))

    # --- advertisements ---

    def on_advertise(self, state: QpsState, given: QpsAdvertise, now: Instant) -> Iterator[Effect]:
        """Record an advertisement of a publisher elsewhere; a leaf sends it the matching requests.  [F32]

        The publisher itself reports areas that it does not publish any more to subscribers that need to know
        (``AreaCoverage``).
        """
        role = self.role(state, given.topic, given.to)
        at, known = given.source.at, role.adverts.get(given.source.at)
        if known is not None and known.version > given.version:
            return
        role.adverts[at] = AdvertArea(given.area, given.version, now)
        if self.deployment.tree.is_leaf(role.scope):
            for asked in role.requests:
                if part := intersection(asked.area, given.area):
                    source = self._source(role)
                    yield route_to(
                        at,
                        QpsSubscribe(role.topic, source, None, part, 0.0, asked.fulfil, asked.version),
                    )

    # --- events ---

    def on_publication(self, state: QpsState, given: RoutedPublication, to: QuadScope) -> Iterator[Effect]:
        """Forward an event to each subscriber of its location, once.  [F43]"""
        role = state.logical.get((given.topic, to))
        if role is None:
            return
        if self.deployment.keeps_latest:
            store_latest(role.latest, given)
        for key, wishes in role.links.items():
            if wishes.is_wanted(given.location):
                yield self._forward(role, wishes, scope_of(key), given)

    def _forward(
        self, role: LogicalBroker, wishes: RequestTable, to: QuadScope | None, event: RoutedPublication
    ) -> Effect:
        """Return the effect that sends an event to a subscriber."""
        source, way = QpsSource(self.at, role.scope), (*event.way, self.at)
        return route_to(wishes.at, changed(event, source=source, to=to, way=way))

    # --- coverage [F42] ---

    def on_coverage(
        self, state: QpsState, given: AreaCoverage, to: QuadScope, now: Instant
    ) -> Iterator[Effect]:
        """Handle coverage: of publishers at a leaf, or of a broker below that reports uncovered areas."""
        role = self.role(state, given.topic, to)
        if self.deployment.tree.is_leaf(to):
            known = role.covering.get(given.source.at)
            if is_current(known, given):
                role.covering[given.source.at] = AdvertArea(given.area, given.version, now)
                lost = known is not None and bool(difference(known.area, given.area))
                yield from self.check_coverage(role, now) if lost else ()
        elif (below := given.source.scope) is not None and is_current(role.reports.get(below), given):
            role.reports[below] = AdvertArea(given.area, given.version, now)
            yield from self._report_coverage(role, now)

    def _start_watch(self, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Start the coverage check; a leaf waits until publishers had time to answer."""
        if self.deployment.tree.is_leaf(role.scope):
            name = f"{COVERAGE}/{role.topic}/{role.scope.level}/{role.scope.column}/{role.scope.row}"
            yield SetTimer(name, now + self.deployment.patience)
        else:
            yield from self._report_coverage(role, now)

    def on_coverage_timer(self, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Check the coverage of a leaf when its timer fires."""
        since = now - 3 * self.deployment.patience
        role.covering = {at: each for at, each in role.covering.items() if each.last_renewal >= since}
        yield from self.check_coverage(role, now)
        if any(wishes.registered_area(True) for wishes in role.links.values()):
            yield from self._start_watch(role, now)

    def check_coverage(self, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Compare the coverage of a leaf with the requested area."""
        must = union_of(wishes.registered_area(True) for wishes in role.links.values())
        role.missing = difference(must, union_of(each.area for each in role.covering.values()))
        yield from self._report_coverage(role, now)

    def _report_coverage(self, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Send subscribers the uncovered area if it has changed."""
        if not self.deployment.tree.is_leaf(role.scope):
            asked = union_of(each.area for each in role.requests)
            role.missing = intersection(union_of(report.area for report in role.reports.values()), asked)
        for key, wishes in role.links.items():
            missing = intersection(role.missing, wishes.registered_area(True))
            if missing != wishes.unfulfilled:
                wishes.unfulfilled = missing
                role.version = max(now, role.version + 1)
                source = self._source(role)
                report = AreaCoverage(role.topic, source, scope_of(key), missing, False, role.version)
                yield route_to(wishes.at, report)

    # --- time ---

    def renew(self, state: QpsState, role: LogicalBroker, now: Instant) -> Iterator[Effect]:
        """Repeat the own requests, and drop those of subscribers that were not repeated."""
        lease = self.deployment.lease
        assert lease is not None
        for at in [at for at, each in role.adverts.items() if each.last_renewal < now - lease]:
            del role.adverts[at]
        is_gone = [w.drop_old(now - self.deployment.memory, now - lease) for w in role.links.values()]
        role.links = {key: wishes for key, wishes in role.links.items() if wishes.patches}
        if any(is_gone):
            yield from self._update_requests(state, role, (), now)
        for asked in role.requests:
            yield from self.ask(role, asked)


def store_latest(latest: dict[Publisher, RoutedPublication], event: RoutedPublication) -> None:
    """Store an event if it is its publisher's latest."""
    publisher = (event.home, event.publisher)
    known = latest.get(publisher)
    if known is None or known.time <= event.time:
        latest[publisher] = event


def pop_latest(latest: dict[Publisher, RoutedPublication], area: Area) -> list[RoutedPublication]:
    """Remove the latest events of an area from which no more events come."""
    found = [publisher for publisher, event in latest.items() if contains_point(area, event.location)]
    return [latest.pop(publisher) for publisher in found]


def is_current(known: AdvertArea | None, given: AreaCoverage) -> bool:
    """Whether a coverage message is not older than the known one."""
    return known is None or known.version <= given.version


def scope_of(key: Key) -> QuadScope | None:
    """Return the scope of a subscriber that is a logical broker, or ``None``."""
    return key if isinstance(key, QuadScope) else None


def _requests_outside(asked: Iterable[AreaRequest], area: Area) -> list[AreaRequest]:
    """Return requests without an area."""
    remaining = ((difference(request.area, area), request) for request in asked)
    return [replace(request, area=rest) for rest, request in remaining if rest]
