"""Run hosts and count their messages and evaluations. [F50, F64]

Hosts run by level, each over its whole input, with the reference machine. So components receive the same
input as in one process.
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


def record_maximum(maxima: Counter[str], name: str, count: int) -> None:
    """Keep the largest count seen for a component."""
    maxima[name] = max(maxima[name], count)


@dataclass
class Account:
    """The counts of a network of hosts.

    An event is *disseminated* if a host on another node subscribes to it, and *delivered* once to each such
    host. Events for hosts on the publisher's own node are local.
    """

    published: Counter[str] = field(default_factory=Counter)
    disseminated: Counter[str] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)
    local: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    combinations: Counter[str] = field(default_factory=Counter)
    examined: Counter[str] = field(default_factory=Counter)
    spawned: Counter[str] = field(default_factory=Counter)
    detecting: Counter[str] = field(default_factory=Counter)
    """The number of hosts of each component that published an event."""
    notifications: list[Published] = field(default_factory=list)


def run(hosts: Sequence[Host], readings: Iterable[Knowledge], until: Instant) -> Account:
    """Run hosts on readings, up to the time ``until``."""
    network = _Network(hosts)
    account = network.account
    for known in readings:
        network.publish(known, known.source)
    instrumented = {host.smc.topic: _counting(host.smc, account.examined) for host in hosts}
    level = levels(host.smc for host in hosts)
    for number in sorted(range(len(hosts)), key=lambda i: level[hosts[i].smc.topic]):
        host, inbox = hosts[number], network.inboxes.pop(number, [])
        record_maximum(account.received, host.smc.topic, len(inbox))
        published = list(_evaluate(instrumented[host.smc.topic], inbox, until, account))
        account.detecting[host.smc.topic] += bool(published)
        account.notifications += published
        for notifications in published:
            network.publish(notifications.event, host.node)
    return account


class _Network:
    """Publish/subscribe between hosts, with an inbox for each."""

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
        """Deliver an event of a node to the subscribed hosts, and count local and remote deliveries."""
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
    """Yield the events that a host publishes, and record its maxima of knowledge points and evaluations."""
    state = InstantState()
    coming: dict[Instant, set[str]] = defaultdict(set)
    for known in inbox:
        component.take(smc, state, known)
        coming[known.time].add(known.topic)
    while (now := component.due(state)) is not None and now < until:
        yield from component.advance(smc, state, now + 1)
        record_maximum(account.points, smc.topic, knowledge_points(state))
        active = sum(instance.since is not None for instance in state.instances.values())
        record_maximum(account.spawned, smc.topic, active)
        for topic in coming.pop(now, ()):
            record_maximum(account.combinations, smc.topic, combinations(smc, state, topic))


def knowledge_points(state: InstantState) -> int:
    """Return the number of knowledge points in an information space; the host's position is one."""
    return sum(_sizes(state).values()) + len(state.hosts)


def combinations(smc: Smc, state: InstantState, topic: str) -> int:
    """Return how many combinations an event of a topic is part of, by the thesis' count: the product of all
    knowledge points of the other queries.
    """
    sizes = _sizes(state)
    return prod(sizes.get(name, 0) for name, one in smc.inputs.items() if topic not in one.query.topics)


def _sizes(state: InstantState) -> dict[str, int]:
    return {name: sum(map(len, by_key.values())) for name, by_key in state.info.points.items()}


@dataclass(frozen=True)
class Counted(Rule):
    """A rule that records how many combinations it examines in one evaluation."""

    topic: str = ""
    maxima: Counter[str] = field(default_factory=Counter)

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        count = prod(len(tables(name)) for name in self.mentions or inputs)
        record_maximum(self.maxima, self.topic, count)
        return super().detect(inputs, tables, context)


def _counting(smc: Smc, maxima: Counter[str]) -> Smc:
    """The component with rules that count the combinations they examine."""
    enter, leave = (
        rule and Counted(**vars(rule), topic=smc.topic, maxima=maxima) for rule in (smc.enter, smc.exit)
    )
    assert enter is not None
    return replace(smc, enter=enter, exit=leave)
