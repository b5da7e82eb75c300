"""A node for its clients: it acts for publishers and subscribers, and delivers events.

[F21, F22, F34–F36, F38, F43]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from ....errors import UsageError
from ....model.instant import BEGINNING, Instant
from ....model.protocol import Deliver, Effect, SetTimer
from . import request
from .area import Area, contains_point, difference, intersection, union_of
from .deployment import QpsDeployment, check_epsilon
from .forwarding import is_current, pop_latest, route_to, store_latest
from .message import (
    AreaCoverage,
    At,
    QpsAdvertise,
    QpsSource,
    QpsSubscribe,
    QpsUnsubscribe,
    RoutedPublication,
)
from .request_table import AreaPatch, RequestTable
from .state import AdvertArea, ClientSubscription, HostedTopic, QpsState, SentRequest
from .tree import QuadScope

COVERING = "covering"
"""The timer for repeated reports of publishers' coverage, while a leaf needs them."""


@dataclass(frozen=True, slots=True)
class ClientBroker:
    """A node in the role of publishers' and subscribers' broker."""

    deployment: QpsDeployment
    at: At

    def topic_state(self, state: QpsState, name: str) -> HostedTopic:
        """Return the state of a topic."""
        return state.topics.setdefault(self.deployment.topic(name), HostedTopic())

    @property
    def source(self) -> QpsSource:
        """This node as a subscriber."""
        return QpsSource(self.at)

    # --- publishers ---

    def advertise(
        self, state: QpsState, asked: request.QpsAdvertiseRequest, now: Instant
    ) -> Iterator[Effect]:
        """Advertise a region of a publisher to other leaves; its own leaf asks all its nodes anyway.
        [F34]"""
        hosted = self.topic_state(state, asked.topic)
        hosted.adverts.setdefault(asked.client, []).append(self.deployment.region(asked.region))
        yield from self._announce(state, asked.topic, now)

    def unadvertise(
        self, state: QpsState, asked: request.QpsUnadvertiseRequest, now: Instant
    ) -> Iterator[Effect]:
        """Withdraw an advertised region."""
        hosted = self.topic_state(state, asked.topic)
        areas, area = hosted.adverts.get(asked.client, []), self.deployment.region(asked.region)
        if area not in areas:
            raise UsageError(f"'{asked.client}' has not advertised '{asked.topic}' in {asked.region}")
        areas.remove(area)
        if not areas:
            del hosted.adverts[asked.client]
            hosted.own.pop(asked.client, None)
        yield from self._announce(state, asked.topic, now)

    def _announce(self, state: QpsState, topic: str, now: Instant) -> Iterator[Effect]:
        """Send changed advertisements to the logical brokers concerned."""
        hosted, tree = state.topics[topic], self.deployment.tree
        area, version = hosted.advertised_area, state.version(now)
        to = set(self._brokers_to_inform(topic, area))
        for scope in sorted(to | set(hosted.informed)):
            part, known = intersection(area, tree.cell(scope)), hosted.informed.pop(scope, None)
            if part:
                hosted.informed[scope] = AdvertArea(part, version, now)
            if known is None or known.area != part:
                message = QpsAdvertise(topic, self.source, scope, part, version)
                yield route_to(tree.address(topic, scope), message)
        yield from self.report_coverage(state, topic, now)

    def _brokers_to_inform(self, topic: str, area: Area) -> Iterator[QuadScope]:
        """Yield the brokers that need an advertisement.  [F34, F35]

        These are all leaves but the own that the area reaches and, as an option, brokers above them that are
        no farther than such a leaf.
        """
        tree = self.deployment.tree
        own, leaves = tree.leaf(self.at), list(tree.leaves(area))
        yield from (leaf for leaf in leaves if leaf != own)
        if not self.deployment.wide_adverts:
            return
        for scope in tree.scopes():
            below = [leaf for leaf in leaves if _is_below(leaf, scope)]
            away = math.dist(self.at, tree.address(topic, scope))
            if not tree.is_leaf(scope) and any(
                away <= math.dist(self.at, tree.address(topic, leaf)) for leaf in below
            ):
                yield scope

    def publish(self, state: QpsState, asked: request.QpsPublishRequest, now: Instant) -> Iterator[Effect]:
        """Send an event to the leaves that have requested its location."""
        hosted, location = self.topic_state(state, asked.topic), self.deployment.location(asked.location)
        if not any(contains_point(area, location) for area in hosted.adverts.get(asked.client, ())):
            raise UsageError(
                f"'{asked.client}' publishes '{asked.topic}' at {asked.location}, and has not advertised that"
            )
        time = state.version(now)
        event = RoutedPublication(
            asked.topic, self.source, None, location, self.at, asked.client, time, asked.values
        )
        if self.deployment.keeps_latest:
            hosted.own[asked.client] = event
        for scope, wishes in hosted.leaf_requests.items():
            if wishes.is_wanted(location):
                yield route_to(wishes.at, changed(event, to=scope))

    def on_leaf_request(
        self, state: QpsState, given: QpsSubscribe | QpsUnsubscribe, now: Instant
    ) -> Iterator[Effect]:
        """Handle the request of a leaf to publishers; nodes without publishers store it too.  [F24, F38]"""
        scope = given.source.scope
        if scope is None:
            return
        hosted = self.topic_state(state, given.topic)
        wishes = hosted.leaf_requests.setdefault(scope, RequestTable(given.source.at))
        wishes.update_address(given.source, given.version)
        wishes.renew(given.area, given.version, now)
        wishes.drop_old(now - self.deployment.memory, BEGINNING)
        fresh = wishes.newer_part(given.area, given.version)
        if not fresh:
            return
        if isinstance(given, QpsSubscribe):
            wishes.add(AreaPatch(fresh, given.version, "here", given.epsilon, given.fulfil, now))
            for event in hosted.own.values():
                if contains_point(fresh, event.location):
                    yield route_to(wishes.at, changed(event, to=scope, repeated=True))
            if given.fulfil:
                yield from self.report_coverage(state, given.topic, now)
        else:
            wishes.add(AreaPatch(fresh, given.version, "over"))

    def report_coverage(self, state: QpsState, topic: str, now: Instant) -> Iterator[Effect]:
        """Report the publishers' coverage to leaves that need it, now and periodically.  [F42, F49]"""
        hosted, tree = state.topics[topic], self.deployment.tree
        area = hosted.advertised_area
        must = [
            (scope, wishes) for scope, wishes in hosted.leaf_requests.items() if wishes.registered_area(True)
        ]
        for scope, wishes in must:
            part = intersection(area, tree.cell(scope))
            yield route_to(wishes.at, AreaCoverage(topic, self.source, scope, part, True, state.version(now)))
        if must:
            yield SetTimer(f"{COVERING}/{topic}", now + self.deployment.patience)

    # --- subscribers ---

    def subscribe(
        self, state: QpsState, asked: request.QpsSubscribeRequest, now: Instant
    ) -> Iterator[Effect]:
        """Request the part of a region that no subscription here has, from the nearest suitable broker.
        [F36]"""
        hosted, area = self.topic_state(state, asked.topic), self.deployment.region(asked.region)
        wanted = ClientSubscription(area, check_epsilon(asked.epsilon), asked.guaranteed)
        hosted.subscriptions.setdefault(asked.client, []).append(wanted)
        before = union_of(each.area for each in hosted.requests)
        news = self._stricter(hosted, wanted)
        if new := difference(area, before):
            target = self.deployment.tree.nearest(asked.topic, new, self.at)
            news.append(SentRequest(new, wanted.epsilon, wanted.guaranteed, BEGINNING, target))
        for each in news:
            sent = replace(each, version=state.version(now))
            hosted.requests = [*_requests_outside(hosted.requests, sent.area), sent]
            yield self._ask(asked.topic, sent)
        for event in hosted.latest.values():
            if contains_point(area, event.location):
                yield Deliver(_notification_for(asked.client, changed(event, repeated=True)))
        if missing := intersection(hosted.missing_area, area) if asked.guaranteed else ():
            yield Deliver(request.FailedCoverage(asked.client, asked.topic, missing))

    def _stricter(self, hosted: HostedTopic, wanted: ClientSubscription) -> list[SentRequest]:
        """Return the requested parts for which ``wanted`` is stricter, with the stricter terms."""
        found = []
        for old in hosted.requests:
            tight = self.deployment.compliance == "guaranteed" and wanted.epsilon < old.epsilon
            if (tight or wanted.guaranteed > old.fulfil) and (part := intersection(old.area, wanted.area)):
                epsilon = wanted.epsilon if tight else old.epsilon
                found.append(replace(old, area=part, epsilon=epsilon, fulfil=old.fulfil or wanted.guaranteed))
        return found

    def _ask(self, topic: str, sent: SentRequest) -> Effect:
        """Send a request to its logical broker."""
        message = QpsSubscribe(
            topic, self.source, sent.target, sent.area, sent.epsilon, sent.fulfil, sent.version
        )
        return route_to(self.deployment.tree.address(topic, sent.target), message)

    def unsubscribe(
        self, state: QpsState, asked: request.QpsUnsubscribeRequest, now: Instant
    ) -> Iterator[Effect]:
        """End a subscription; a part that no client wants any more ends where it was requested."""
        hosted, area = self.topic_state(state, asked.topic), self.deployment.region(asked.region)
        some = hosted.subscriptions.get(asked.client, [])
        known = next((each for each in some if each.area == area), None)
        if known is None:
            raise UsageError(f"'{asked.client}' has not subscribed to '{asked.topic}' in {asked.region}")
        some.remove(known)
        if not some:
            del hosted.subscriptions[asked.client]
        yield from self._end_unwanted(state, asked.topic, now)

    def _end_unwanted(self, state: QpsState, topic: str, now: Instant) -> Iterator[Effect]:
        """End the requested parts that no client wants any more."""
        hosted = state.topics[topic]
        wanted, version = hosted.subscribed_area, state.version(now)
        for sent in hosted.requests:
            if gone := difference(sent.area, wanted):
                message = QpsUnsubscribe(topic, self.source, sent.target, gone, version)
                yield route_to(self.deployment.tree.address(topic, sent.target), message)
        over = difference(union_of(sent.area for sent in hosted.requests), wanted)
        hosted.requests = _requests_outside(hosted.requests, over)
        for event in pop_latest(hosted.latest, over):
            hosted.delivered.pop((event.home, event.time), None)  # it is news for who asks again

    def deliver(self, state: QpsState, given: RoutedPublication, now: Instant) -> Iterator[Effect]:
        """Deliver an event to each matching subscriber, once.  [F25]"""
        hosted = state.topics.get(given.topic, HostedTopic())
        event, last = (given.home, given.time), hosted.latest.get((given.home, given.publisher))
        known = given.repeated and last is not None and last.time >= given.time
        if known or event in hosted.delivered:
            state.repeated += 1
            return
        over = now - self.deployment.memory
        while hosted.delivered and (first := next(iter(hosted.delivered.items())))[1] < over:
            del hosted.delivered[first[0]]
        hosted.delivered[event] = now
        if self.deployment.keeps_latest:
            store_latest(hosted.latest, given)
        for client, some in hosted.subscriptions.items():
            if any(contains_point(each.area, given.location) for each in some):
                yield Deliver(_notification_for(client, given))

    def on_coverage(self, state: QpsState, given: AreaCoverage, now: Instant) -> Iterator[Effect]:
        """Report to clients the part of their regions that has no publisher.  [F27]"""
        hosted, scope = self.topic_state(state, given.topic), given.source.scope
        if scope is None or not is_current(hosted.reports.get(scope), given):
            return
        before = hosted.missing_area
        hosted.reports[scope] = AdvertArea(given.area, given.version, now)
        missing = difference(hosted.missing_area, before)
        for client, some in hosted.subscriptions.items():
            must = union_of(each.area for each in some if each.guaranteed)
            if part := intersection(missing, must):
                yield Deliver(request.FailedCoverage(client, given.topic, part))

    # --- time ---

    def remove_absent(self, state: QpsState, now: Instant) -> Iterator[Effect]:
        """Remove clients without a sign of life for three periods.  [F48]"""
        every = self.deployment.attendance
        assert every is not None
        silent = {client for client, last_sign in state.clients.items() if last_sign < now - 3 * every}
        state.clients = {c: last_sign for c, last_sign in state.clients.items() if c not in silent}
        for topic, hosted in state.topics.items():
            if silent & hosted.subscriptions.keys():
                hosted.subscriptions = {
                    c: some for c, some in hosted.subscriptions.items() if c not in silent
                }
                yield from self._end_unwanted(state, topic, now)
            if silent & hosted.adverts.keys():
                hosted.adverts = {c: some for c, some in hosted.adverts.items() if c not in silent}
                hosted.own = {c: event for c, event in hosted.own.items() if c not in silent}
                yield from self._announce(state, topic, now)

    def renew(self, state: QpsState, now: Instant) -> Iterator[Effect]:
        """Repeat requests and advertisements; drop requests of leaves that were not repeated."""
        lease = self.deployment.lease
        assert lease is not None
        for topic, hosted in state.topics.items():
            for wishes in hosted.leaf_requests.values():
                wishes.drop_old(now - self.deployment.memory, now - lease)
            hosted.leaf_requests = {
                scope: wishes for scope, wishes in hosted.leaf_requests.items() if wishes.patches
            }
            for sent in hosted.requests:
                yield self._ask(topic, sent)
            for scope, advert in hosted.informed.items():
                message = QpsAdvertise(topic, self.source, scope, advert.area, advert.version)
                yield route_to(self.deployment.tree.address(topic, scope), message)


def _notification_for(client: str, event: RoutedPublication) -> request.QpsNotify:
    return request.QpsNotify(
        client,
        event.topic,
        event.location,
        event.publisher,
        event.time,
        event.values,
        event.way,
        event.repeated,
    )


def _is_below(leaf: QuadScope, scope: QuadScope) -> bool:
    """Whether a leaf lies within a scope."""
    down = leaf.level - scope.level
    return (leaf.column >> down, leaf.row >> down) == (scope.column, scope.row)


def _requests_outside(asked: Iterable[SentRequest], area: Area) -> list[SentRequest]:
    """Return requests without an area."""
    remaining = ((difference(request.area, area), request) for request in asked)
    return [replace(request, area=rest) for rest, request in remaining if rest]
