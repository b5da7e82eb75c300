"""A node for its clients: it speaks for publishers and subscribers, and hands events over.

[F21, F22, F34–F36, F38, F43]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from ...errors import UsageError
from ...model.instant import BEGINNING, Instant
from ...model.protocol import Deliver, Effect, SetTimer
from . import request
from .area import Area, has, joined, meet, minus
from .deployment import Deployment, checked_epsilon
from .forwarding import is_news, kept, outdated, routed
from .message import Advertise, At, Coverage, Publication, Source, Subscribe, Unsubscribe
from .state import Advert, Hosted, Sent, State, Wanted
from .tree import Scope
from .wishes import Patch, Wishes

COVERING = "covering"
"""The timer by which a node says again what its publishers cover, while somebody has to know."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """A node in the role of publishers' and subscribers' broker."""

    deployment: Deployment
    at: At

    def topic(self, state: State, name: str) -> Hosted:
        return state.hosted.setdefault(self.deployment.topic(name), Hosted())

    @property
    def source(self) -> Source:
        return Source(self.at)

    # --- publishers ---

    def advertise(self, state: State, asked: request.Advertise, now: Instant) -> Iterator[Effect]:
        """Leaves that reach beyond the publisher's own are told; its own asks everybody anyway.  [F34]"""
        hosted = self.topic(state, asked.topic)
        hosted.adverts.setdefault(asked.client, []).append(self.deployment.region(asked.region))
        yield from self._announced(state, asked.topic, now)

    def unadvertise(self, state: State, asked: request.Unadvertise, now: Instant) -> Iterator[Effect]:
        hosted = self.topic(state, asked.topic)
        areas, area = hosted.adverts.get(asked.client, []), self.deployment.region(asked.region)
        if area not in areas:
            raise UsageError(f"'{asked.client}' has not advertised '{asked.topic}' in {asked.region}")
        areas.remove(area)
        if not areas:
            del hosted.adverts[asked.client]
            hosted.own.pop(asked.client, None)
        yield from self._announced(state, asked.topic, now)

    def _announced(self, state: State, topic: str, now: Instant) -> Iterator[Effect]:
        hosted, tree = state.hosted[topic], self.deployment.tree
        area, version = hosted.published, state.version(now)
        to = set(self._informed(topic, area))
        for scope in sorted(to | set(hosted.told)):
            part, known = meet(area, tree.cell(scope)), hosted.told.pop(scope, None)
            if part:
                hosted.told[scope] = Advert(part, version, now)
            if known is None or known.area != part:
                message = Advertise(topic, self.source, scope, part, version)
                yield routed(tree.address(topic, scope), message)
        yield from self.covering(state, topic, now)

    def _informed(self, topic: str, area: Area) -> Iterator[Scope]:
        """Every leaf but the own that the area reaches; and, as an option, brokers above them that are no
        farther than such a leaf below them.  [F34, F35]"""
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

    def publish(self, state: State, asked: request.Publish, now: Instant) -> Iterator[Effect]:
        """To the leaf that has asked for events from there."""
        hosted, location = self.topic(state, asked.topic), self.deployment.location(asked.location)
        if not any(has(area, location) for area in hosted.adverts.get(asked.client, ())):
            raise UsageError(
                f"'{asked.client}' publishes '{asked.topic}' at {asked.location}, and has not advertised that"
            )
        time = state.version(now)
        event = Publication(
            asked.topic, self.source, None, location, self.at, asked.client, time, asked.values
        )
        if self.deployment.keeps_latest:
            hosted.own[asked.client] = event
        for scope, wishes in hosted.heard.items():
            if wishes.wants(location):
                yield routed(wishes.at, changed(event, to=scope))

    def heard(self, state: State, given: Subscribe | Unsubscribe, now: Instant) -> Iterator[Effect]:
        """A leaf asks publishers; also a node that has none yet remembers it.  [F24, F38]"""
        scope = given.source.scope
        if scope is None:
            return
        hosted = self.topic(state, given.topic)
        wishes = hosted.heard.setdefault(scope, Wishes(given.source.at))
        wishes.moved(given.source, given.version)
        wishes.renew(given.area, given.version, now)
        wishes.forget(now - self.deployment.memory, BEGINNING)
        fresh = wishes.news(given.area, given.version)
        if not fresh:
            return
        if isinstance(given, Subscribe):
            wishes.put(Patch(fresh, given.version, "here", given.epsilon, given.fulfil, now))
            for event in hosted.own.values():
                if has(fresh, event.location):
                    yield routed(wishes.at, changed(event, to=scope, repeated=True))
            if given.fulfil:
                yield from self.covering(state, given.topic, now)
        else:
            wishes.put(Patch(fresh, given.version, "over"))

    def covering(self, state: State, topic: str, now: Instant) -> Iterator[Effect]:
        """Say to leaves that have to know what publishers here cover; and again, later.  [F42, F49]"""
        hosted, tree = state.hosted[topic], self.deployment.tree
        area = hosted.published
        must = [(scope, wishes) for scope, wishes in hosted.heard.items() if wishes.registered(True)]
        for scope, wishes in must:
            part = meet(area, tree.cell(scope))
            yield routed(wishes.at, Coverage(topic, self.source, scope, part, True, state.version(now)))
        if must:
            yield SetTimer(f"{COVERING}/{topic}", now + self.deployment.patience)

    # --- subscribers ---

    def subscribe(self, state: State, asked: request.Subscribe, now: Instant) -> Iterator[Effect]:
        """Only what no subscription here has is asked for, of the nearest broker that can serve it.  [F36]"""
        hosted, area = self.topic(state, asked.topic), self.deployment.region(asked.region)
        wanted = Wanted(area, checked_epsilon(asked.epsilon), asked.guaranteed)
        hosted.wanted.setdefault(asked.client, []).append(wanted)
        before = joined(each.area for each in hosted.asked)
        news = self._stricter(hosted, wanted)
        if new := minus(area, before):
            target = self.deployment.tree.nearest(asked.topic, new, self.at)
            news.append(Sent(new, wanted.epsilon, wanted.guaranteed, BEGINNING, target))
        for each in news:
            sent = replace(each, version=state.version(now))
            hosted.asked = [*_without(hosted.asked, sent.area), sent]
            yield self._ask(asked.topic, sent)
        for event in hosted.latest.values():
            if has(area, event.location):
                yield Deliver(_notice(asked.client, changed(event, repeated=True)))
        if missing := meet(hosted.missing, area) if asked.guaranteed else ():
            yield Deliver(request.FailedCoverage(asked.client, asked.topic, missing))

    def _stricter(self, hosted: Hosted, wanted: Wanted) -> list[Sent]:
        """What is asked for already and now on stricter terms: of the same broker, which hears of it."""
        found = []
        for old in hosted.asked:
            tight = self.deployment.compliance == "guaranteed" and wanted.epsilon < old.epsilon
            if (tight or wanted.guaranteed > old.fulfil) and (part := meet(old.area, wanted.area)):
                epsilon = wanted.epsilon if tight else old.epsilon
                found.append(replace(old, area=part, epsilon=epsilon, fulfil=old.fulfil or wanted.guaranteed))
        return found

    def _ask(self, topic: str, sent: Sent) -> Effect:
        message = Subscribe(
            topic, self.source, sent.target, sent.area, sent.epsilon, sent.fulfil, sent.version
        )
        return routed(self.deployment.tree.address(topic, sent.target), message)

    def unsubscribe(self, state: State, asked: request.Unsubscribe, now: Instant) -> Iterator[Effect]:
        """What nobody here wants any more ends where it was asked for."""
        hosted, area = self.topic(state, asked.topic), self.deployment.region(asked.region)
        some = hosted.wanted.get(asked.client, [])
        known = next((each for each in some if each.area == area), None)
        if known is None:
            raise UsageError(f"'{asked.client}' has not subscribed to '{asked.topic}' in {asked.region}")
        some.remove(known)
        if not some:
            del hosted.wanted[asked.client]
        yield from self._ended(state, asked.topic, now)

    def _ended(self, state: State, topic: str, now: Instant) -> Iterator[Effect]:
        hosted = state.hosted[topic]
        wanted, version = hosted.subscribed, state.version(now)
        for sent in hosted.asked:
            if gone := minus(sent.area, wanted):
                message = Unsubscribe(topic, self.source, sent.target, gone, version)
                yield routed(self.deployment.tree.address(topic, sent.target), message)
        over = minus(joined(sent.area for sent in hosted.asked), wanted)
        hosted.asked = _without(hosted.asked, over)
        for event in outdated(hosted.latest, over):
            hosted.notified.pop((event.home, event.time), None)  # it is news for who asks again

    def notify(self, state: State, given: Publication, now: Instant) -> Iterator[Effect]:
        """To each subscriber here that wants it, once.  [F25]"""
        hosted = state.hosted.get(given.topic, Hosted())
        event, last = (given.home, given.time), hosted.latest.get((given.home, given.publisher))
        known = given.repeated and last is not None and last.time >= given.time
        if known or event in hosted.notified:
            state.repeated += 1
            return
        over = now - self.deployment.memory
        while hosted.notified and (first := next(iter(hosted.notified.items())))[1] < over:
            del hosted.notified[first[0]]
        hosted.notified[event] = now
        if self.deployment.keeps_latest:
            kept(hosted.latest, given)
        for client, some in hosted.wanted.items():
            if any(has(each.area, given.location) for each in some):
                yield Deliver(_notice(client, given))

    def reported(self, state: State, given: Coverage, now: Instant) -> Iterator[Effect]:
        """Nobody publishes a part of what is wanted here, or somebody does again.  [F27]"""
        hosted, scope = self.topic(state, given.topic), given.source.scope
        if scope is None or not is_news(hosted.reports.get(scope), given):
            return
        before = hosted.missing
        hosted.reports[scope] = Advert(given.area, given.version, now)
        missing = minus(hosted.missing, before)
        for client, some in hosted.wanted.items():
            must = joined(each.area for each in some if each.guaranteed)
            if part := meet(missing, must):
                yield Deliver(request.FailedCoverage(client, given.topic, part))

    # --- time ---

    def absent(self, state: State, now: Instant) -> Iterator[Effect]:
        """Clients that have said nothing for three periods have left: what they had ends for them.  [F48]"""
        every = self.deployment.attendance
        assert every is not None
        silent = {client for client, heard in state.clients.items() if heard < now - 3 * every}
        state.clients = {c: heard for c, heard in state.clients.items() if c not in silent}
        for topic, hosted in state.hosted.items():
            if silent & hosted.wanted.keys():
                hosted.wanted = {c: some for c, some in hosted.wanted.items() if c not in silent}
                yield from self._ended(state, topic, now)
            if silent & hosted.adverts.keys():
                hosted.adverts = {c: some for c, some in hosted.adverts.items() if c not in silent}
                hosted.own = {c: event for c, event in hosted.own.items() if c not in silent}
                yield from self._announced(state, topic, now)

    def renewed(self, state: State, now: Instant) -> Iterator[Effect]:
        """Say again what is asked for and advertised; forget what leaves do not say again."""
        lease = self.deployment.lease
        assert lease is not None
        for topic, hosted in state.hosted.items():
            for wishes in hosted.heard.values():
                wishes.forget(now - self.deployment.memory, now - lease)
            hosted.heard = {scope: wishes for scope, wishes in hosted.heard.items() if wishes.patches}
            for sent in hosted.asked:
                yield self._ask(topic, sent)
            for scope, told in hosted.told.items():
                message = Advertise(topic, self.source, scope, told.area, told.version)
                yield routed(self.deployment.tree.address(topic, scope), message)


def _notice(client: str, event: Publication) -> request.Notify:
    return request.Notify(
        client,
        event.topic,
        event.location,
        event.publisher,
        event.time,
        event.values,
        event.way,
        event.repeated,
    )


def _is_below(leaf: Scope, scope: Scope) -> bool:
    down = leaf.level - scope.level
    return (leaf.column >> down, leaf.row >> down) == (scope.column, scope.row)


def _without(asked: Iterable[Sent], area: Area) -> list[Sent]:
    left = ((minus(each.area, area), each) for each in asked)
    return [replace(each, area=rest) for rest, each in left if rest]
