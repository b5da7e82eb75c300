"""A logical broker at work: it joins subscriptions, passes parts of them down, and forwards events.

[F22, F31, F32, F37–F43]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from ...model.instant import BEGINNING, Instant
from ...model.protocol import Effect, Route, SetTimer, Spread
from ...model.space import Point
from .area import NOTHING, Area, has, joined, meet, minus
from .deployment import Deployment
from .message import (
    Advertise,
    At,
    Coverage,
    Gone,
    Message,
    Publication,
    Source,
    Subscribe,
    Unsubscribe,
    cause_of,
)
from .resolve import Standing, resolve, withdraw
from .state import Advert, Key, Logical, Publisher, State
from .tree import Scope
from .wishes import Asked, Kind, Patch, Wishes

COVERAGE = "coverage"
"""The timer of a leaf that has to know what is covered."""


def routed(to: Point, message: Message) -> Route:
    """A message to a point."""
    return Route(to, message, cause_of(message))


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A node in the role of logical brokers."""

    deployment: Deployment
    at: At

    def role(self, state: State, topic: str, scope: Scope) -> Logical:
        """The logical broker; whoever is addressed as it is it."""
        return state.logical.setdefault((topic, scope), Logical(topic, scope))

    def away(self, topic: str, scope: Scope) -> float:
        """How far this node is from a logical broker's point."""
        return math.dist(self.at, self.deployment.tree.address(topic, scope))

    # --- subscriptions ---

    def subscribed(self, state: State, given: Subscribe, to: Scope, now: Instant) -> Iterator[Effect]:
        """R, for the part of a subscription that is new here."""
        role = self.role(state, given.topic, to)
        wishes = self._wishes(role, given, now)
        area = meet(given.area, self.deployment.tree.cell(to))
        fresh = wishes.news(area, given.version)
        yield from self._again(role, wishes, changed(given, area=minus(area, fresh)), now)
        if fresh:
            passed = joined(part for part, _ in wishes.said(fresh, "below"))
            wishes.cut(fresh)
            terms: list[Asked] = []
            for scope, part, epsilon in resolve(self._standing(role), given.source.at, fresh, given.epsilon):
                kind: Kind = "here" if scope == to else "below"
                wishes.put(Patch(part, given.version, kind, given.epsilon, given.fulfil, now))
                if kind == "here":
                    terms.append(Asked(part, epsilon, given.fulfil, BEGINNING))
                    yield from self._ended_below(role, given, meet(passed, part))
                else:
                    yield self._to_child(role, scope, changed(given, to=scope, area=part))
            yield from self._onward(state, role, terms, now)
            for event in role.latest.values():
                if any(has(term.area, event.location) for term in terms):
                    yield self._forwarded(role, wishes, given.source.scope, changed(event, repeated=True))
        if given.fulfil or wishes.unfulfilled:
            yield from self._watched(role, now)

    def unsubscribed(self, state: State, given: Unsubscribe, to: Scope, now: Instant) -> Iterator[Effect]:
        """R'."""
        role = self.role(state, given.topic, to)
        wishes = self._wishes(role, given, now)
        fresh = wishes.news(meet(given.area, self.deployment.tree.cell(to)), given.version)
        registered = wishes.registered()
        for scope, part, _ in withdraw(self.deployment.tree, to, fresh, registered):
            if scope != to:
                yield self._to_child(role, scope, changed(given, to=scope, area=part))
        if fresh:
            wishes.put(Patch(fresh, given.version, "over"))
            yield from self._onward(state, role, (), now)
            yield from self._reported(role, now)

    def gone(self, state: State, given: Gone, to: Scope, now: Instant) -> Iterator[Effect]:
        """A subscriber does not answer: it is as if it had stopped to say what it wants.  [F49]"""
        role = self.role(state, given.topic, to)
        key = given.source.scope or given.source.at
        if key in role.links and role.links[key].at == given.source.at:
            del role.links[key]
            yield from self._onward(state, role, (), now)

    def _wishes(self, role: Logical, given: Subscribe | Unsubscribe, now: Instant) -> Wishes:
        source = given.source
        wishes = role.links.setdefault(source.scope or source.at, Wishes(source.at))
        wishes.moved(source, given.version)
        wishes.forget(now - self.deployment.memory, BEGINNING)
        return wishes

    def _standing(self, role: Logical) -> Standing:
        tree, topic = self.deployment.tree, role.topic

        def advertised(area: Area) -> Sequence[Point]:
            return [at for at, advert in role.adverts.items() if meet(advert.area, area)]

        def leaves(area: Area) -> Sequence[Point]:
            return [tree.address(topic, leaf) for leaf in tree.leaves(area, role.scope)]

        guaranteed = self.deployment.compliance == "guaranteed"
        return Standing(tree, role.scope, self.at, role.covered, advertised, leaves if guaranteed else None)

    def _again(self, role: Logical, wishes: Wishes, given: Subscribe, now: Instant) -> Iterator[Effect]:
        """What was said before is said again: it is so still, here and below."""
        wishes.renew(given.area, given.version, now)
        for part, patch in list(wishes.said(given.area, "below")):
            if patch.version == given.version:
                for child in self.deployment.tree.children(role.scope):
                    if inner := meet(part, self.deployment.tree.cell(child)):
                        yield self._to_child(role, child, changed(given, to=child, area=inner))

    def _ended_below(self, role: Logical, given: Subscribe, area: Area) -> Iterator[Effect]:
        """A part that was passed down is registered here now."""
        over = Unsubscribe(given.topic, given.source, None, area, given.version)
        for scope, part, _ in withdraw(self.deployment.tree, role.scope, area, NOTHING):
            if scope != role.scope:
                yield self._to_child(role, scope, changed(over, to=scope, area=part))

    def _to_child(self, role: Logical, child: Scope, message: Message) -> Effect:
        return routed(self.deployment.tree.address(role.topic, child), message)

    # --- its own subscription ---

    def _onward(self, state: State, role: Logical, terms: Iterable[Asked], now: Instant) -> Iterator[Effect]:
        """Ask for what is covered now and was not, and end what is not any more.  [F31]

        A part that is asked for already is asked for again if somebody's terms are stricter.  [F40]
        """
        before = joined(each.area for each in role.asked)
        gone = minus(before, role.covered)
        if gone:
            role.asked = _without(role.asked, gone)
            outdated(role.latest, gone)
            yield from self._end(role, gone, self._version(state, role, now))
        for term in terms:
            news = self._stricter(role, term)
            if new := minus(term.area, before):
                news.append(replace(term, area=new))
            for each in news:
                asked = replace(each, version=self._version(state, role, now))
                role.asked = [*_without(role.asked, asked.area), asked]
                yield from self.ask(role, asked)

    def _stricter(self, role: Logical, term: Asked) -> list[Asked]:
        found = []
        for old in role.asked:
            tight = self.deployment.compliance == "guaranteed" and term.epsilon < old.epsilon
            if (tight or term.fulfil > old.fulfil) and (part := meet(old.area, term.area)):
                epsilon = min(term.epsilon, old.epsilon) if tight else old.epsilon
                found.append(Asked(part, epsilon, term.fulfil or old.fulfil, BEGINNING))
        return found

    def moved_here(self, state: State, role: Logical, now: Instant) -> Iterator[Effect]:
        """This node is the broker now: whoever sends to it gets to know, and is asked for nothing new.

        Where ε is guaranteed the ways are others from here, and everything is decided anew.
        """
        if self.deployment.compliance == "guaranteed":
            yield from self._reconsidered(state, role, now)
        else:
            for asked in role.asked:
                yield from self.ask(role, asked)
        if any(wishes.registered(True) for wishes in role.links.values()):
            yield from self._watched(role, now)

    def ask_anew(self, state: State, role: Logical, now: Instant) -> Iterator[Effect]:
        """Send all requests of a role again, under a version later than any before."""
        for asked in role.asked:
            again = replace(asked, version=self._version(state, role, now))
            role.asked = [again if each is asked else each for each in role.asked]
            yield from self.ask(role, again)

    def _reconsidered(self, state: State, role: Logical, now: Instant) -> Iterator[Effect]:
        terms: list[Asked] = []
        before = joined(each.area for each in role.asked)
        for key, wishes in role.links.items():
            for patch in [patch for patch in wishes.patches if patch.kind == "here"]:
                source = Source(wishes.at, scope_of(key), wishes.turn)
                word = Subscribe(
                    role.topic, source, role.scope, patch.area, patch.epsilon, patch.fulfil, patch.version
                )
                for scope, part, epsilon in resolve(
                    self._standing(role), wishes.at, patch.area, patch.epsilon
                ):
                    if scope == role.scope:
                        terms.append(Asked(part, epsilon, patch.fulfil, BEGINNING))
                    else:
                        wishes.put(replace(patch, area=part, kind="below"))
                        yield self._to_child(role, scope, changed(word, to=scope, area=part))
        role.asked = []
        for term in terms:
            yield from self._onward(state, role, [term], now)
        if gone := minus(before, role.covered):
            yield from self._end(role, gone, self._version(state, role, now))

    def _version(self, state: State, role: Logical, now: Instant) -> Instant:
        role.version = max(state.version(now), role.version + 1)
        return role.version

    def ask(self, role: Logical, asked: Asked) -> Iterator[Effect]:
        """Subscribe below: at the children, or with publishers."""

        def subscribe(to: Scope | None, area: Area) -> Message:
            return Subscribe(
                role.topic, self._source(role), to, area, asked.epsilon, asked.fulfil, asked.version
            )

        return self._below(role, asked.area, subscribe)

    def _end(self, role: Logical, area: Area, version: Instant) -> Iterator[Effect]:
        def unsubscribe(to: Scope | None, area: Area) -> Message:
            return Unsubscribe(role.topic, self._source(role), to, area, version)

        return self._below(role, area, unsubscribe)

    def _source(self, role: Logical) -> Source:
        return Source(self.at, role.scope, role.turn)

    def _below(
        self, role: Logical, area: Area, message: Callable[[Scope | None, Area], Message]
    ) -> Iterator[Effect]:
        """To children, each its part; from a leaf, to all nodes in it and to advertisers elsewhere."""
        tree = self.deployment.tree
        for child in tree.children(role.scope):
            if part := meet(area, tree.cell(child)):
                yield self._to_child(role, child, message(child, part))
        if tree.is_leaf(role.scope):
            low, high = tree.corners(role.scope)
            to_all = message(None, area)
            yield Spread(low, high, to_all, cause_of(to_all))
            for at, advert in role.adverts.items():
                if part := meet(area, advert.area):
                    yield routed(at, message(None, part))

    # --- advertisements ---

    def advertised(self, state: State, given: Advertise, now: Instant) -> Iterator[Effect]:
        """A publisher elsewhere: a leaf asks it for what it has been asked for.  What it does not publish any
        more it says itself, where somebody has to know (``Coverage``).  [F32]"""
        role = self.role(state, given.topic, given.to)
        at, known = given.source.at, role.adverts.get(given.source.at)
        if known is not None and known.version > given.version:
            return
        role.adverts[at] = Advert(given.area, given.version, now)
        if self.deployment.tree.is_leaf(role.scope):
            for asked in role.asked:
                if part := meet(asked.area, given.area):
                    source = self._source(role)
                    yield routed(
                        at,
                        Subscribe(role.topic, source, None, part, 0.0, asked.fulfil, asked.version),
                    )

    # --- events ---

    def published(self, state: State, given: Publication, to: Scope) -> Iterator[Effect]:
        """Forward an event to each who wants it, once.  [F43]"""
        role = state.logical.get((given.topic, to))
        if role is None:
            return
        if self.deployment.keeps_latest:
            kept(role.latest, given)
        for key, wishes in role.links.items():
            if wishes.wants(given.location):
                yield self._forwarded(role, wishes, scope_of(key), given)

    def _forwarded(self, role: Logical, wishes: Wishes, to: Scope | None, event: Publication) -> Effect:
        source, way = Source(self.at, role.scope), (*event.way, self.at)
        return routed(wishes.at, changed(event, source=source, to=to, way=way))

    # --- coverage [F42] ---

    def covered(self, state: State, given: Coverage, to: Scope, now: Instant) -> Iterator[Effect]:
        """Publishers have a part of a leaf; or a broker below says what nobody has, or somebody has again."""
        role = self.role(state, given.topic, to)
        if self.deployment.tree.is_leaf(to):
            known = role.covering.get(given.source.at)
            if is_news(known, given):
                role.covering[given.source.at] = Advert(given.area, given.version, now)
                lost = known is not None and bool(minus(known.area, given.area))
                yield from self.checked(role, now) if lost else ()
        elif (below := given.source.scope) is not None and is_news(role.reports.get(below), given):
            role.reports[below] = Advert(given.area, given.version, now)
            yield from self._reported(role, now)

    def _watched(self, role: Logical, now: Instant) -> Iterator[Effect]:
        """Somebody has to know what is covered: a leaf looks when publishers had time to answer."""
        if self.deployment.tree.is_leaf(role.scope):
            name = f"{COVERAGE}/{role.topic}/{role.scope.level}/{role.scope.column}/{role.scope.row}"
            yield SetTimer(name, now + self.deployment.patience)
        else:
            yield from self._reported(role, now)

    def watch(self, role: Logical, now: Instant) -> Iterator[Effect]:
        """It is time to look."""
        since = now - 3 * self.deployment.patience
        role.covering = {at: each for at, each in role.covering.items() if each.renewed >= since}
        yield from self.checked(role, now)
        if any(wishes.registered(True) for wishes in role.links.values()):
            yield from self._watched(role, now)

    def checked(self, role: Logical, now: Instant) -> Iterator[Effect]:
        """A leaf compares what has to be covered with what is."""
        must = joined(wishes.registered(True) for wishes in role.links.values())
        role.missing = minus(must, joined(each.area for each in role.covering.values()))
        yield from self._reported(role, now)

    def _reported(self, role: Logical, now: Instant) -> Iterator[Effect]:
        """Tell subscribers what is missing, if they were told otherwise."""
        if not self.deployment.tree.is_leaf(role.scope):
            asked = joined(each.area for each in role.asked)
            role.missing = meet(joined(report.area for report in role.reports.values()), asked)
        for key, wishes in role.links.items():
            missing = meet(role.missing, wishes.registered(True))
            if missing != wishes.unfulfilled:
                wishes.unfulfilled = missing
                role.version = max(now, role.version + 1)
                source = self._source(role)
                report = Coverage(role.topic, source, scope_of(key), missing, False, role.version)
                yield routed(wishes.at, report)

    # --- time ---

    def renewed(self, state: State, role: Logical, now: Instant) -> Iterator[Effect]:
        """Say again what is asked for, and forget what nobody says again."""
        lease = self.deployment.lease
        assert lease is not None
        for at in [at for at, each in role.adverts.items() if each.renewed < now - lease]:
            del role.adverts[at]
        gone = [w.forget(now - self.deployment.memory, now - lease) for w in role.links.values()]
        role.links = {key: wishes for key, wishes in role.links.items() if wishes.patches}
        if any(gone):
            yield from self._onward(state, role, (), now)
        for asked in role.asked:
            yield from self.ask(role, asked)


def kept(latest: dict[Publisher, Publication], event: Publication) -> None:
    """Keep an event if it is its publisher's latest."""
    publisher = (event.home, event.publisher)
    known = latest.get(publisher)
    if known is None or known.time <= event.time:
        latest[publisher] = event


def outdated(latest: dict[Publisher, Publication], area: Area) -> list[Publication]:
    """Forget the latest events of an area from which no more come."""
    found = [publisher for publisher, event in latest.items() if has(area, event.location)]
    return [latest.pop(publisher) for publisher in found]


def is_news(known: Advert | None, given: Coverage) -> bool:
    """Whether what was said of coverage is not older than what is known."""
    return known is None or known.version <= given.version


def scope_of(key: Key) -> Scope | None:
    """The scope of a subscriber that is a logical broker."""
    return key if isinstance(key, Scope) else None


def _without(asked: Iterable[Asked], area: Area) -> list[Asked]:
    left = ((minus(each.area, area), each) for each in asked)
    return [replace(each, area=rest) for rest, each in left if rest]
