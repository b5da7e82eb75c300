"""The role of a logical broker: it merges subscriptions, passes parts of them down, and forwards events.

[F22, F31, F32, F37–F43]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from msgspec.structs import replace as changed

from ....model.instant import BEGINNING, Instant
from ....model.protocol import SetTimer, Spread
from ....model.space import Point
from .area import NOTHING, Area, contains_point, difference, intersection, union_of
from .message import (
    AreaCoverage,
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
from .state import AdvertArea, Key, LogicalBroker, Publisher
from .step import QpsStep, requests_outside
from .tree import QuadScope

MessageFor = Callable[[QuadScope | None, Area], QpsMessage]
"""A function that returns the message to a logical broker, or to publishers, about a part of an area."""

COVERAGE = "coverage"
"""The timer for the coverage check of a leaf."""


class RoleStep(QpsStep):
    """Handles inputs of a node in the roles of logical brokers."""

    def role(self, topic: str, scope: QuadScope) -> LogicalBroker:
        """Return the state of a logical broker. A node that is addressed as a broker takes its role."""
        return self.state.logical.setdefault((topic, scope), LogicalBroker(topic, scope))

    # --- subscriptions ---

    def on_subscribe(self, given: QpsSubscribe, to: QuadScope) -> None:
        """Apply R to the part of a subscription that is new to this broker."""
        role = self.role(given.topic, to)
        wishes = self._wishes(role, given)
        area = intersection(given.area, self.tree.cell(to))
        fresh = wishes.newer_part(area, given.version)
        self._repeat(role, wishes, changed(given, area=difference(area, fresh)))
        if fresh:
            passed = union_of(part for part, _ in wishes.patches_in(fresh, "below"))
            wishes.remove(fresh)
            terms: list[AreaRequest] = []
            inputs = self._resolve_inputs(role)
            for scope, part, epsilon in resolve(inputs, given.source.at, fresh, given.epsilon):
                kind: Kind = "here" if scope == to else "below"
                wishes.add(AreaPatch(part, given.version, kind, given.epsilon, given.fulfil, self.now))
                if kind == "here":
                    terms.append(AreaRequest(part, epsilon, given.fulfil, BEGINNING))
                    self._end_below(role, given, intersection(passed, part))
                else:
                    self.send_to_broker(scope, changed(given, to=scope, area=part))
            self._update_requests(role, terms)
            for event in role.latest.values():
                if any(contains_point(term.area, event.location) for term in terms):
                    self._forward(role, wishes, given.source.scope, changed(event, repeated=True))
        if given.fulfil or wishes.unfulfilled:
            self._start_watch(role)

    def on_unsubscribe(self, given: QpsUnsubscribe, to: QuadScope) -> None:
        """Apply R' to the end of a subscription."""
        role = self.role(given.topic, to)
        wishes = self._wishes(role, given)
        fresh = wishes.newer_part(intersection(given.area, self.tree.cell(to)), given.version)
        for scope, part, _ in withdraw(self.tree, to, fresh, wishes.registered_area()):
            if scope != to:
                self.send_to_broker(scope, changed(given, to=scope, area=part))
        if fresh:
            wishes.add(AreaPatch(fresh, given.version, "over"))
            self._update_requests(role)
            self._report_coverage(role)

    def on_gone(self, given: SubscriberGone, to: QuadScope) -> None:
        """Remove a subscriber that does not answer, as if it had stopped repeating its requests. [F49]"""
        role = self.role(given.topic, to)
        key = given.source.scope or given.source.at
        if key in role.links and role.links[key].at == given.source.at:
            del role.links[key]
            self._update_requests(role)

    def _wishes(self, role: LogicalBroker, given: QpsSubscribe | QpsUnsubscribe) -> RequestTable:
        """Return the request table of a subscriber, with its current address."""
        source = given.source
        wishes = role.links.setdefault(source.scope or source.at, RequestTable(source.at))
        wishes.update_address(source, given.version)
        wishes.drop_old(self.now - self.deployment.memory, BEGINNING)
        return wishes

    def _resolve_inputs(self, role: LogicalBroker) -> ResolveInputs:
        """Return the inputs of R for a role."""

        def advertised(area: Area) -> Sequence[Point]:
            return [at for at, advert in role.adverts.items() if intersection(advert.area, area)]

        def leaves(area: Area) -> Sequence[Point]:
            return [self.tree.address(role.topic, leaf) for leaf in self.tree.leaves(area, role.scope)]

        ends = leaves if self.deployment.compliance == "guaranteed" else None
        return ResolveInputs(self.tree, role.scope, self.at, role.registered_area, advertised, ends)

    def _repeat(self, role: LogicalBroker, wishes: RequestTable, given: QpsSubscribe) -> None:
        """Repeat a known request, in the table and at the brokers below."""
        wishes.renew(given.area, given.version, self.now)
        for part, patch in list(wishes.patches_in(given.area, "below")):
            if patch.version == given.version:
                self._send_to_children(role, part, lambda to, area: changed(given, to=to, area=area))

    def _end_below(self, role: LogicalBroker, given: QpsSubscribe, area: Area) -> None:
        """End the part of a request at the brokers below that is now registered here."""
        over = QpsUnsubscribe(given.topic, given.source, None, area, given.version)
        for scope, part, _ in withdraw(self.tree, role.scope, area, NOTHING):
            if scope != role.scope:
                self.send_to_broker(scope, changed(over, to=scope, area=part))

    def _send_to_children(self, role: LogicalBroker, area: Area, message: MessageFor) -> None:
        """Send a message to the logical broker of each child scope, about its part of an area."""
        for child in self.tree.children(role.scope):
            if part := intersection(area, self.tree.cell(child)):
                self.send_to_broker(child, message(child, part))

    # --- its own subscription ---

    def _update_requests(self, role: LogicalBroker, terms: Iterable[AreaRequest] = ()) -> None:
        """Request areas that became covered, and end the requests for areas that are no longer covered. [F31]

        An area that is requested already is requested again if a subscriber has stricter terms.
        """
        requested = union_of(request.area for request in role.requests)
        uncovered = difference(requested, role.registered_area)
        if uncovered:
            role.requests = requests_outside(role.requests, uncovered)
            pop_latest(role.latest, uncovered)
            self._end(role, uncovered)
        for term in terms:
            requests = self.stricter(role.requests, term.area, term.epsilon, term.fulfil)
            if new := difference(term.area, requested):
                requests.append(replace(term, area=new))
            for request in requests:
                asked = replace(request, version=self._next_version(role))
                role.requests = [*requests_outside(role.requests, asked.area), asked]
                self.ask(role, asked)

    def announce_move(self, role: LogicalBroker) -> None:
        """Announce this node as the broker to all nodes that send messages to it.

        Where ε is guaranteed, paths from here differ from those of the former holder, so all decisions are
        made again.
        """
        if self.deployment.compliance == "guaranteed":
            self._resolve_again(role)
        else:
            for asked in role.requests:
                self.ask(role, asked)
        if role.is_watched:
            self._start_watch(role)

    def ask_again(self, role: LogicalBroker) -> None:
        """Send all requests of a role again, with a version above all earlier ones."""
        for asked in role.requests:
            again = replace(asked, version=self._next_version(role))
            role.requests = [again if each is asked else each for each in role.requests]
            self.ask(role, again)

    def _resolve_again(self, role: LogicalBroker) -> None:
        """Apply R again to all registered requests."""
        terms: list[AreaRequest] = []
        before = union_of(each.area for each in role.requests)
        for key, wishes in role.links.items():
            for patch in [patch for patch in wishes.patches if patch.kind == "here"]:
                source = QpsSource(wishes.at, scope_of(key), wishes.turn)
                request = QpsSubscribe(role.topic, source, role.scope, *patch.terms)
                inputs = self._resolve_inputs(role)
                for scope, part, epsilon in resolve(inputs, wishes.at, patch.area, patch.epsilon):
                    if scope == role.scope:
                        terms.append(AreaRequest(part, epsilon, patch.fulfil, BEGINNING))
                    else:
                        wishes.add(replace(patch, area=part, kind="below"))
                        self.send_to_broker(scope, changed(request, to=scope, area=part))
        role.requests = []
        for term in terms:
            self._update_requests(role, [term])
        if gone := difference(before, role.registered_area):
            self._end(role, gone)

    def _next_version(self, role: LogicalBroker) -> Instant:
        """Return a version above all earlier versions of the role."""
        role.version = max(self.version(), role.version + 1)
        return role.version

    def ask(self, role: LogicalBroker, asked: AreaRequest) -> None:
        """Send a request to the children or, from a leaf, to publishers."""
        source, terms = self._source(role), (asked.epsilon, asked.fulfil, asked.version)

        def subscribe(to: QuadScope | None, area: Area) -> QpsMessage:
            return QpsSubscribe(role.topic, source, to, area, *terms)

        self._send_below(role, asked.area, subscribe)

    def _end(self, role: LogicalBroker, area: Area) -> None:
        """End a request at the children or, from a leaf, at publishers."""
        source, version = self._source(role), self._next_version(role)

        def unsubscribe(to: QuadScope | None, area: Area) -> QpsMessage:
            return QpsUnsubscribe(role.topic, source, to, area, version)

        self._send_below(role, area, unsubscribe)

    def _source(self, role: LogicalBroker) -> QpsSource:
        """Return this role as a subscriber, for messages to brokers below."""
        return QpsSource(self.at, role.scope, role.turn)

    def _send_below(self, role: LogicalBroker, area: Area, message: MessageFor) -> None:
        """Send to each child its part. From a leaf, send to all nodes in it and to advertisers elsewhere."""
        self._send_to_children(role, area, message)
        if self.tree.is_leaf(role.scope):
            low, high = self.tree.corners(role.scope)
            to_all = message(None, area)
            self.emit(Spread(low, high, to_all, cause_of(to_all)))
            for at, advert in role.adverts.items():
                if part := intersection(area, advert.area):
                    self.send(at, message(None, part))

    # --- advertisements ---

    def on_advertise(self, given: QpsAdvertise, to: QuadScope) -> None:
        """Record an advertisement of a publisher elsewhere. A leaf sends that publisher the matching
        requests. [F32]

        The publisher itself reports areas in which it no longer publishes, to subscribers that need to know
        (``AreaCoverage``).
        """
        role = self.role(given.topic, to)
        at, known = given.source.at, role.adverts.get(given.source.at)
        if known is not None and known.version > given.version:
            return
        role.adverts[at] = AdvertArea(given.area, given.version, self.now)
        for asked in role.requests if self.tree.is_leaf(to) else ():
            if part := intersection(asked.area, given.area):
                source = self._source(role)
                self.send(at, QpsSubscribe(role.topic, source, None, part, 0.0, asked.fulfil, asked.version))

    # --- events ---

    def on_publication(self, given: RoutedPublication, to: QuadScope) -> None:
        """Forward an event once to each subscriber of its location. [F43]"""
        role = self.state.logical.get((given.topic, to))
        if role is None:
            return
        if self.deployment.keeps_latest:
            store_latest(role.latest, given)
        for key, wishes in role.links.items():
            if wishes.is_wanted(given.location):
                self._forward(role, wishes, scope_of(key), given)

    def _forward(
        self, role: LogicalBroker, wishes: RequestTable, to: QuadScope | None, event: RoutedPublication
    ) -> None:
        """Send an event to a subscriber, with this broker added to its path."""
        source, way = QpsSource(self.at, role.scope), (*event.way, self.at)
        self.send(wishes.at, changed(event, source=source, to=to, way=way))

    # --- coverage [F42] ---

    def on_coverage(self, given: AreaCoverage, to: QuadScope) -> None:
        """Handle a coverage report: of publishers at a leaf, or of uncovered areas from a broker below."""
        role, source = self.role(given.topic, to), given.source
        report = AdvertArea(given.area, given.version, self.now)
        if self.tree.is_leaf(to):
            known = role.covering.get(source.at)
            if is_current(known, given):
                role.covering[source.at] = report
                if known is not None and difference(known.area, given.area):
                    self._check_coverage(role)
        elif source.scope is not None and is_current(role.reports.get(source.scope), given):
            role.reports[source.scope] = report
            self._report_coverage(role)

    def _start_watch(self, role: LogicalBroker) -> None:
        """Start the coverage check. A leaf waits until publishers had time to answer."""
        if self.tree.is_leaf(role.scope):
            name = f"{COVERAGE}/{role.topic}/{role.scope.level}/{role.scope.column}/{role.scope.row}"
            self.emit(SetTimer(name, self.now + self.deployment.patience))
        else:
            self._report_coverage(role)

    def on_coverage_timer(self, role: LogicalBroker) -> None:
        """Check the coverage of a leaf when its timer fires."""
        since = self.now - 3 * self.deployment.patience
        role.covering = {at: each for at, each in role.covering.items() if each.last_renewal >= since}
        self._check_coverage(role)
        if role.is_watched:
            self._start_watch(role)

    def _check_coverage(self, role: LogicalBroker) -> None:
        """Compute the part of the requested area of a leaf that no publisher covers, and report it."""
        must = union_of(wishes.registered_area(True) for wishes in role.links.values())
        role.missing = difference(must, union_of(each.area for each in role.covering.values()))
        self._report_coverage(role)

    def _report_coverage(self, role: LogicalBroker) -> None:
        """Send the uncovered area to subscribers if it has changed."""
        if not self.tree.is_leaf(role.scope):
            asked = union_of(each.area for each in role.requests)
            role.missing = intersection(union_of(report.area for report in role.reports.values()), asked)
        for key, wishes in role.links.items():
            missing = intersection(role.missing, wishes.registered_area(True))
            if missing != wishes.unfulfilled:
                wishes.unfulfilled = missing
                role.version = max(self.now, role.version + 1)
                source, to = self._source(role), scope_of(key)
                self.send(wishes.at, AreaCoverage(role.topic, source, to, missing, False, role.version))

    # --- time ---

    def renew_role(self, role: LogicalBroker) -> None:
        """Repeat the role's own requests, and drop the requests of subscribers that were not repeated."""
        lease = self.deployment.lease
        assert lease is not None
        stale = self.now - lease
        for at in [at for at, each in role.adverts.items() if each.last_renewal < stale]:
            del role.adverts[at]
        is_gone = [w.drop_old(self.now - self.deployment.memory, stale) for w in role.links.values()]
        role.links = {key: wishes for key, wishes in role.links.items() if wishes.patches}
        if any(is_gone):
            self._update_requests(role)
        for asked in role.requests:
            self.ask(role, asked)


def store_latest(latest: dict[Publisher, RoutedPublication], event: RoutedPublication) -> None:
    """Store an event unless a later one of the same publisher is known."""
    publisher = (event.home, event.publisher)
    known = latest.get(publisher)
    if known is None or known.time <= event.time:
        latest[publisher] = event


def pop_latest(latest: dict[Publisher, RoutedPublication], area: Area) -> list[RoutedPublication]:
    """Remove and return the latest events of an area from which no more events come."""
    found = [publisher for publisher, event in latest.items() if contains_point(area, event.location)]
    return [latest.pop(publisher) for publisher in found]


def is_current(known: AdvertArea | None, given: AreaCoverage) -> bool:
    """Whether a coverage message is at least as new as the known one."""
    return known is None or known.version <= given.version


def scope_of(key: Key) -> QuadScope | None:
    """Return the scope of a subscriber that is a logical broker; ``None`` for a node."""
    return key if isinstance(key, QuadScope) else None
