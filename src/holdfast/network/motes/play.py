"""Replay of a recorded history in a simulated network: nodes publish its readings at their own times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import MINUTE, Duration, Instant
from ...model.space import Point
from .account import NodeSubscription
from .case import SimulationCase, plan_run
from .outcome import RunOutcome
from .readings import Recorded, to_recording
from .run import SimulationRun
from .scenario import Publisher

TAIL = MINUTE
"""The time in µs that the network runs after the last reading, so that messages in transit can arrive."""


@dataclass(frozen=True)
class PlayResult:
    """The outcome of a history in a network with one seed. Times are those of the history."""

    outcome: RunOutcome
    subscriptions: list[NodeSubscription]
    """The subscriptions to conditions, without plain subscriptions to topics."""
    notifications: list[tuple[NodeSubscription, Instant, Notification]]
    """Each notification, with its subscription and the time of its arrival."""


def cast(case: SimulationCase, events: Sequence[Event]) -> SimulationCase:
    """Return the network with a history in place of the readings that its publishers measure.

    A publisher of the scenario determines which nodes publish a topic. Without one, all nodes except the
    subscribers publish it.
    """
    scenario = case.scenario
    publishers_by_topic = {publisher.topic: publisher for publisher in scenario.publishers}
    if len(publishers_by_topic) < len(scenario.publishers):
        raise UsageError("a topic has two publishers: name all nodes that play it in one of them")
    if not scenario.subscribers:
        raise UsageError("nobody in this network wants to know: say with 'subscribers' which node does")
    topics = dict.fromkeys(event.topic for event in events)
    for topic in publishers_by_topic.keys() - topics.keys():
        raise UsageError(f"nodes of this network publish '{topic}', of which the history has no reading")
    sources, (begin, end) = sorted({event.source for event in events}), _span(events)
    publishers, recordings = [], {}
    for i, topic in enumerate(topics):
        recordings[i] = to_recording((event for event in events if event.topic == topic), sources)
        start = scenario.warm_up + recordings[i].begin - begin
        played = Publisher(topic=topic, recorded=Recorded(file="history"), start=start)
        if (own := publishers_by_topic.get(topic)) is not None:
            played = replace(played, from_=own.from_, sampled=own.sampled)
        publishers.append(played)
    duration = scenario.warm_up + end - begin + TAIL
    scenario = replace(scenario, publishers=tuple(publishers), duration=duration)
    return replace(case, scenario=scenario, recordings=recordings)


def _span(events: Sequence[Event]) -> tuple[Instant, Instant]:
    times = [event.time for event in events]
    return min(times), max(times)


def source_positions(case: SimulationCase, seed: int) -> Mapping[str, Point]:
    """Return the position of each source of the history in the network with this seed."""
    plan = plan_run(case, seed)
    if all(subscription.plain for subscription in plan.subscriptions):
        raise UsageError("nobody in this network wants to know of a condition: name some with 'to'")
    nodes, topology = [node for source in plan.sources for node in source.nodes], plan.topology
    found = {topology.names[node]: topology.positions[node] for node in nodes}
    sources = [source for recording in case.recordings.values() for source in recording.tapes]
    missing = list(dict.fromkeys(source for source in sources if source not in found))
    if missing:
        raise UsageError(
            f"no node of this network publishes for {len(missing)} of {len({*sources})} sources of the "
            f"history, such as '{missing[0]}': nodes are called as sources are, or there are as many"
        )
    return {source: found[source] for source in dict.fromkeys(sources)}


def needs_positions(case: SimulationCase, seed: int) -> bool:
    """Return whether a result may depend on the positions of the sources."""
    return SimulationRun(case, seed).located


def play(case: SimulationCase, seed: int) -> PlayResult:
    """Run the network with a history that `cast` has put into the case; return its outcome."""
    run = SimulationRun(case, seed)
    outcome = run.finish()
    since = min(recording.begin for recording in case.recordings.values()) - case.scenario.warm_up
    notifications = [
        (subscription, arrived + since, _shift(notification, since))
        for arrived, subscription, notification in run.account.notifications
        if not subscription.plain
    ]
    return PlayResult(outcome, [sub for sub in run.plan.subscriptions if not sub.plain], notifications)


def _shift(notification: Notification, by: Duration) -> Notification:
    since = None if notification.since is None else notification.since + by
    event = replace(notification.event, time=notification.event.time + by)
    return notification._replace(event=event, since=since)
