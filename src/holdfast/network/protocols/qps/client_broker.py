"""The role of a node for its clients: it acts for publishers and subscribers, and delivers events.

[F21, F22, F34–F36, F38, F43]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from msgspec.structs import replace as changed

from ....errors import UsageError
from ....model.instant import BEGINNING
from ....model.protocol import Deliver, SetTimer
from . import request
from .area import Area, contains_point, difference, intersection, union_of
from .deployment import check_epsilon
from .forwarding import is_current, pop_latest, store_latest
from .message import (
    AreaCoverage,
    QpsAdvertise,
    QpsSource,
    QpsSubscribe,
    QpsUnsubscribe,
    RoutedPublication,
)
from .request_table import AreaPatch, RequestTable
from .state import AdvertArea, ClientSubscription, HostedTopic, SentRequest
from .step import QpsStep, requests_outside
from .tree import QuadScope

T = TypeVar("T")

COVERING = "covering"
"""The timer for repeated reports of publishers' coverage, which runs while a leaf needs them."""


class ClientStep(QpsStep):
    """Handles inputs of a node in the role of its clients' broker."""

    def hosted(self, topic: str) -> HostedTopic:
        """Return the state of a topic; raise a `UsageError` for an unknown topic."""
        return self.state.topics.setdefault(self.deployment.topic(topic), HostedTopic())

    @property
    def source(self) -> QpsSource:
        """This node as a subscriber, for messages to logical brokers."""
        return QpsSource(self.at)

    # --- publishers ---

    def advertise(self, asked: request.QpsAdvertiseRequest) -> None:
        """Advertise a region of a publisher to other leaves. Its own leaf asks all its nodes in any case.
        [F34]
        """
        hosted = self.hosted(asked.topic)
        hosted.adverts.setdefault(asked.client, []).append(self.deployment.region(asked.region))
        self._announce(asked.topic)

    def unadvertise(self, asked: request.QpsUnadvertiseRequest) -> None:
        """Withdraw an advertised region of a publisher."""
        hosted = self.hosted(asked.topic)
        areas, area = hosted.adverts.get(asked.client, []), self.deployment.region(asked.region)
        if area not in areas:
            raise UsageError(f"'{asked.client}' has not advertised '{asked.topic}' in {asked.region}")
        areas.remove(area)
        if not areas:
            del hosted.adverts[asked.client]
            hosted.own.pop(asked.client, None)
        self._announce(asked.topic)

    def _announce(self, topic: str) -> None:
        """Send changed advertisements to the logical brokers that need them."""
        hosted = self.state.topics[topic]
        area, version = hosted.advertised_area, self.version()
        to = set(self._brokers_to_inform(topic, area))
        for scope in sorted(to | set(hosted.informed)):
            part, known = intersection(area, self.tree.cell(scope)), hosted.informed.pop(scope, None)
            if part:
                hosted.informed[scope] = AdvertArea(part, version, self.now)
            if known is None or known.area != part:
                self.send_to_broker(scope, QpsAdvertise(topic, self.source, scope, part, version))
        self.report_coverage(topic)

    def _brokers_to_inform(self, topic: str, area: Area) -> Iterator[QuadScope]:
        """Yield the brokers that need an advertisement. [F34, F35]

        These are all leaves, except the own, that the area reaches. As an option, brokers above these leaves
        that are no farther than the leaf receive it too.
        """
        tree = self.tree
        own, leaves = tree.leaf(self.at), list(tree.leaves(area))
        yield from (leaf for leaf in leaves if leaf != own)
        for scope in tree.scopes() if self.deployment.wide_adverts else ():
            below = [leaf for leaf in leaves if _is_below(leaf, scope) and leaf != scope]
            farthest = max((math.dist(self.at, tree.address(topic, leaf)) for leaf in below), default=-1.0)
            if math.dist(self.at, tree.address(topic, scope)) <= farthest:
                yield scope

    def publish(self, asked: request.QpsPublishRequest) -> None:
        """Send an event to the leaves that have requested its location."""
        client, topic = asked.client, asked.topic
        hosted, location = self.hosted(topic), self.deployment.location(asked.location)
        if not any(contains_point(area, location) for area in hosted.adverts.get(client, ())):
            where = asked.location
            raise UsageError(f"'{client}' publishes '{topic}' at {where}, and has not advertised that")
        time = self.version()
        event = RoutedPublication(topic, self.source, None, location, self.at, client, time, asked.values)
        if self.deployment.keeps_latest:
            hosted.own[client] = event
        for scope, wishes in hosted.leaf_requests.items():
            if wishes.is_wanted(location):
                self.send(wishes.at, changed(event, to=scope))

    def on_leaf_request(self, given: QpsSubscribe | QpsUnsubscribe) -> None:
        """Handle the request of a leaf to publishers. Nodes without publishers store it too. [F24, F38]"""
        scope, area, version = given.source.scope, given.area, given.version
        if scope is None:
            return
        hosted = self.hosted(given.topic)
        wishes = hosted.leaf_requests.setdefault(scope, RequestTable(given.source.at))
        wishes.update_address(given.source, version)
        wishes.renew(area, version, self.now)
        wishes.drop_old(self.now - self.deployment.memory, BEGINNING)
        fresh = wishes.newer_part(area, version)
        if not fresh:
            return
        if isinstance(given, QpsUnsubscribe):
            wishes.add(AreaPatch(fresh, version, "over"))
            return
        wishes.add(AreaPatch(fresh, version, "here", given.epsilon, given.fulfil, self.now))
        for event in hosted.own.values():
            if contains_point(fresh, event.location):
                self.send(wishes.at, changed(event, to=scope, repeated=True))
        if given.fulfil:
            self.report_coverage(given.topic)

    def report_coverage(self, topic: str) -> None:
        """Report the publishers' coverage to leaves that need it, now and periodically.  [F42, F49]"""
        hosted = self.state.topics[topic]
        area = hosted.advertised_area
        watched = {
            leaf: wishes for leaf, wishes in hosted.leaf_requests.items() if wishes.registered_area(True)
        }
        for leaf, wishes in watched.items():
            part = intersection(area, self.tree.cell(leaf))
            self.send(wishes.at, AreaCoverage(topic, self.source, leaf, part, True, self.version()))
        if watched:
            self.emit(SetTimer(f"{COVERING}/{topic}", self.now + self.deployment.patience))

    # --- subscribers ---

    def subscribe(self, asked: request.QpsSubscribeRequest) -> None:
        """Request the part of a region that no subscription of this node has, from the nearest suitable
        broker. [F36]
        """
        hosted, area = self.hosted(asked.topic), self.deployment.region(asked.region)
        wanted = ClientSubscription(area, check_epsilon(asked.epsilon), asked.guaranteed)
        hosted.subscriptions.setdefault(asked.client, []).append(wanted)
        before = union_of(each.area for each in hosted.requests)
        news = self.stricter(hosted.requests, area, wanted.epsilon, wanted.guaranteed)
        if new := difference(area, before):
            target = self.tree.nearest(asked.topic, new, self.at)
            news.append(SentRequest(new, wanted.epsilon, wanted.guaranteed, BEGINNING, target))
        for each in news:
            sent = replace(each, version=self.version())
            hosted.requests = [*requests_outside(hosted.requests, sent.area), sent]
            self._ask(asked.topic, sent)
        for event in hosted.latest.values():
            if contains_point(area, event.location):
                self._notify(asked.client, changed(event, repeated=True))
        if missing := intersection(hosted.missing_area, area) if asked.guaranteed else ():
            self.emit(Deliver(request.FailedCoverage(asked.client, asked.topic, missing)))

    def _ask(self, topic: str, sent: SentRequest) -> None:
        """Send a request to its logical broker."""
        to, epsilon = sent.target, sent.epsilon
        message = QpsSubscribe(topic, self.source, to, sent.area, epsilon, sent.fulfil, sent.version)
        self.send_to_broker(to, message)

    def unsubscribe(self, asked: request.QpsUnsubscribeRequest) -> None:
        """End a subscription. The parts that no other client wants end at the broker from which they were
        requested.
        """
        hosted, area = self.hosted(asked.topic), self.deployment.region(asked.region)
        known = hosted.subscriptions.get(asked.client, [])
        ended = next((each for each in known if each.area == area), None)
        if ended is None:
            raise UsageError(f"'{asked.client}' has not subscribed to '{asked.topic}' in {asked.region}")
        known.remove(ended)
        if not known:
            del hosted.subscriptions[asked.client]
        self._end_unwanted(asked.topic)

    def _end_unwanted(self, topic: str) -> None:
        """End the requested parts that no client of this node wants."""
        hosted = self.state.topics[topic]
        wanted, version = hosted.subscribed_area, self.version()
        for sent in hosted.requests:
            if gone := difference(sent.area, wanted):
                to = sent.target
                self.send_to_broker(to, QpsUnsubscribe(topic, self.source, to, gone, version))
        over = difference(union_of(sent.area for sent in hosted.requests), wanted)
        hosted.requests = requests_outside(hosted.requests, over)
        for event in pop_latest(hosted.latest, over):
            hosted.delivered.pop((event.home, event.time), None)  # a later subscriber receives it again

    def deliver(self, given: RoutedPublication) -> None:
        """Deliver an event once to each matching subscriber. [F25]"""
        hosted = self.state.topics.get(given.topic, HostedTopic())
        event, last = (given.home, given.time), hosted.latest.get((given.home, given.publisher))
        known = given.repeated and last is not None and last.time >= given.time
        if known or event in hosted.delivered:
            self.state.repeated += 1
            return
        over = self.now - self.deployment.memory
        while hosted.delivered and (first := next(iter(hosted.delivered.items())))[1] < over:
            del hosted.delivered[first[0]]
        hosted.delivered[event] = self.now
        if self.deployment.keeps_latest:
            store_latest(hosted.latest, given)
        for client, subscriptions in hosted.subscriptions.items():
            if any(contains_point(each.area, given.location) for each in subscriptions):
                self._notify(client, given)

    def _notify(self, client: str, event: RoutedPublication) -> None:
        """Deliver an event to a client of this node by the callback ``notify``."""
        about = event.topic, event.location, event.publisher, event.time, event.values, event.way
        self.emit(Deliver(request.QpsNotify(client, *about, event.repeated)))

    def on_node_coverage(self, given: AreaCoverage) -> None:
        """Report to clients the part of their regions that has no publisher. [F27]"""
        hosted, scope = self.hosted(given.topic), given.source.scope
        if scope is None or not is_current(hosted.reports.get(scope), given):
            return
        before = hosted.missing_area
        hosted.reports[scope] = AdvertArea(given.area, given.version, self.now)
        missing = difference(hosted.missing_area, before)
        for client, subscriptions in hosted.subscriptions.items():
            must = union_of(each.area for each in subscriptions if each.guaranteed)
            if part := intersection(missing, must):
                self.emit(Deliver(request.FailedCoverage(client, given.topic, part)))

    # --- time ---

    def remove_absent(self) -> None:
        """Remove clients without a sign of life for three periods. [F48]"""
        state, every = self.state, self.deployment.attendance
        assert every is not None
        silent = {client for client, last_sign in state.clients.items() if last_sign < self.now - 3 * every}
        state.clients = _without(state.clients, silent)
        for topic, hosted in state.topics.items():
            if silent & hosted.subscriptions.keys():
                hosted.subscriptions = _without(hosted.subscriptions, silent)
                self._end_unwanted(topic)
            if silent & hosted.adverts.keys():
                hosted.adverts = _without(hosted.adverts, silent)
                hosted.own = _without(hosted.own, silent)
                self._announce(topic)

    def renew_clients(self) -> None:
        """Repeat requests and advertisements. Drop the requests of leaves that were not repeated."""
        lease = self.deployment.lease
        assert lease is not None
        for topic, hosted in self.state.topics.items():
            for wishes in hosted.leaf_requests.values():
                wishes.drop_old(self.now - self.deployment.memory, self.now - lease)
            hosted.leaf_requests = {leaf: w for leaf, w in hosted.leaf_requests.items() if w.patches}
            for sent in hosted.requests:
                self._ask(topic, sent)
            for scope, advert in hosted.informed.items():
                message = QpsAdvertise(topic, self.source, scope, advert.area, advert.version)
                self.send_to_broker(scope, message)


def _without(by_client: dict[str, T], gone: set[str]) -> dict[str, T]:
    """Return a table without the clients in ``gone``."""
    return {client: value for client, value in by_client.items() if client not in gone}


def _is_below(leaf: QuadScope, scope: QuadScope) -> bool:
    """Whether a leaf of the tree lies within a scope."""
    down = leaf.level - scope.level
    return (leaf.column >> down, leaf.row >> down) == (scope.column, scope.row)
