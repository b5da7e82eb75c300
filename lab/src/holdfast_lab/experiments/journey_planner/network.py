"""Hosts at work: every event goes to whom it concerns, and what that costs is counted.

Components see what they would see in one process: hosts of a level run before those that build on them,
each over its whole input, by the reference machine.  [F50, F64]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from holdfast.kinds.component.detector import component
from holdfast.kinds.component.detector.component import InstantState, Published
from holdfast.kinds.component.detector.knowledge import Knowledge
from holdfast.kinds.component.detector.smc import EvaluationContext, Inputs, Rule, Smc, Tables
from holdfast.kinds.component.detector.topic_levels import levels
from holdfast.model.instant import Instant

from .definition import NEAR, USER
from .deployment import Host


@dataclass
class Most:
    """The largest that was seen of something, for each component."""

    of: Counter[str] = field(default_factory=Counter)

    def see(self, name: str, count: int) -> None:
        self.of[name] = max(self.of[name], count)


@dataclass
class Account:
    """What happened in a network of hosts.

    An event is *disseminated* if a host on another node than its publisher's wants it, *delivered* there once
    for each such host; what a host on the publisher's own node gets is local.
    """

    published: Counter[str] = field(default_factory=Counter)
    disseminated: Counter[str] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)
    local: Counter[str] = field(default_factory=Counter)
    received: Most = field(default_factory=Most)
    points: Most = field(default_factory=Most)
    combinations: Most = field(default_factory=Most)
    examined: Most = field(default_factory=Most)
    spawned: Most = field(default_factory=Most)
    detecting: Counter[str] = field(default_factory=Counter)
    """How many hosts of each component have published something."""
    notifications: list[Published] = field(default_factory=list)


def run(hosts: Sequence[Host], readings: Iterable[Knowledge], until: Instant) -> Account:
    """Let the hosts take the readings, as far as ``until``."""
    network = _Network(hosts)
    account = network.account
    for known in readings:
        network.publish(known, known.source)
    instrumented = {host.smc.topic: _counting(host.smc, account.examined) for host in hosts}
    level = levels(host.smc for host in hosts)
    for number in sorted(range(len(hosts)), key=lambda i: level[hosts[i].smc.topic]):
        host, inbox = hosts[number], network.inboxes.pop(number, [])
        account.received.see(host.smc.topic, len(inbox))
        published = list(_evaluate(instrumented[host.smc.topic], inbox, until, account))
        account.detecting[host.smc.topic] += bool(published)
        account.notifications += published
        for notifications in published:
            network.publish(notifications.event, host.node)
    return account


class _Network:
    """Publish/subscribe between hosts: what waits for each, and what has been sent."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.account = Account()
        self.inboxes: dict[int, list[Knowledge]] = defaultdict(list)
        self._nodes = [host.node for host in hosts]
        self._wanted: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for number, host in enumerate(hosts):
            for topic, among in host.subscriptions:
                for one in among if among is not None else (None,):
                    self._wanted[topic, one].append(number)

    def publish(self, event: Knowledge, node: str) -> None:
        """Give an event that a node publishes to the hosts that want it, each counted as near or far."""
        account, topic = self.account, event.topic
        own = event.source if topic == USER else event.place
        takers = [*self._wanted.get((topic, own), ()), *self._wanted.get((topic, None), ())]
        remote = sum(self._nodes[number] != node for number in takers)
        account.published[topic] += 1
        account.disseminated[topic] += bool(remote)
        account.delivered[topic] += remote
        account.local[topic] += len(takers) - remote + (topic == NEAR)  # the user's own application
        for number in takers:
            self.inboxes[number].append(event)


# --- evaluation, with instruments --------------------------------------------------------------


def _evaluate(smc: Smc, inbox: Sequence[Knowledge], until: Instant, account: Account) -> Iterator[Published]:
    """What a host publishes, instant by instant, and the most that it ever kept and examined."""
    state = InstantState()
    coming: dict[Instant, set[str]] = defaultdict(set)
    for known in inbox:
        component.take(smc, state, known)
        coming[known.time].add(known.topic)
    while (now := component.due(state)) is not None and now < until:
        yield from component.advance(smc, state, now + 1)
        account.points.see(smc.topic, knowledge_points(state))
        account.spawned.see(smc.topic, sum(one.since is not None for one in state.instances.values()))
        for topic in coming.pop(now, ()):
            account.combinations.see(smc.topic, combinations(smc, state, topic))


def knowledge_points(state: InstantState) -> int:
    """How many knowledge points an information space holds; where its host is, is one of them."""
    return sum(_sizes(state).values()) + len(state.hosts)


def combinations(smc: Smc, state: InstantState, topic: str) -> int:
    """How many combinations of knowledge an event of a topic is part of, as the thesis counts: the full
    product of what other queries hold, whatever road that is of."""
    sizes = _sizes(state)
    return prod(sizes.get(name, 0) for name, one in smc.inputs.items() if topic not in one.query.topics)


def _sizes(state: InstantState) -> dict[str, int]:
    return {name: sum(map(len, by_key.values())) for name, by_key in state.info.points.items()}


@dataclass(frozen=True)
class Counted(Rule):
    """A rule that says how many combinations it examines in one evaluation."""

    topic: str = ""
    most: Most = field(default_factory=Most)

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        self.most.see(self.topic, prod(len(tables(name)) for name in self.mentions or inputs))
        return super().detect(inputs, tables, context)


def _counting(smc: Smc, most: Most) -> Smc:
    def with_counters(rule: Rule) -> Rule:
        return Counted(**vars(rule), topic=smc.topic, most=most)

    return replace(
        smc, enter=with_counters(smc.enter), exit=None if smc.exit is None else with_counters(smc.exit)
    )
