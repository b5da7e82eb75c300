"""A history in a network: its readings are published by nodes, each at its own time, and what subscribers are
told then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import MINUTE, Duration, Instant
from ...model.space import Point
from .account import Wish
from .case import Case, planned
from .outcome import Outcome
from .readings import Recorded, taped
from .run import Run
from .scenario import Publisher

TAIL = MINUTE
"""How long a network goes on after the last reading, so that what is on its way may come."""


@dataclass(frozen=True)
class Played:
    """A history in a network with a seed: what came of it, and what was told when, in its times."""

    outcome: Outcome
    wishes: list[Wish]
    """Of whom there is something to be told."""
    told: list[tuple[Wish, Instant, Notification]]


def cast(case: Case, events: Sequence[Event]) -> Case:
    """The network with a history in place of what its publishers measure.  A publisher of the scenario says
    which nodes publish a topic; without one all but the subscribers do."""
    scenario, named = case.scenario, {each.topic: each for each in case.scenario.publishers}
    if len(named) < len(scenario.publishers):
        raise UsageError("a topic has two publishers: name all nodes that play it in one of them")
    if not scenario.subscribers:
        raise UsageError("nobody in this network wants to know: say with 'subscribers' which node does")
    topics = dict.fromkeys(event.topic for event in events)
    for topic in named.keys() - topics.keys():
        raise UsageError(f"nodes of this network publish '{topic}', of which the history has no reading")
    sources, (begin, end) = sorted({event.source for event in events}), _span(events)
    publishers, recordings = [], {}
    for i, topic in enumerate(topics):
        recordings[i] = taped((event for event in events if event.topic == topic), sources)
        publishers.append(
            Publisher(
                topic=topic,
                from_=named[topic].from_ if topic in named else "all",
                sampled=named[topic].sampled if topic in named else None,
                recorded=Recorded(file="history"),
                start=scenario.warm_up + recordings[i].begin - begin,
            )
        )
    duration = scenario.warm_up + end - begin + TAIL
    scenario = replace(scenario, publishers=tuple(publishers), duration=duration)
    return replace(case, scenario=scenario, recordings=recordings)


def _span(events: Sequence[Event]) -> tuple[Instant, Instant]:
    times = [event.time for event in events]
    return min(times), max(times)


def stages(case: Case, seed: int) -> Mapping[str, Point]:
    """Where each source of the history stands in the network with that seed."""
    plan = planned(case, seed)
    if all(wish.plain for wish in plan.wishes):
        raise UsageError("nobody in this network wants to know of a condition: name some with 'to'")
    found = {
        plan.placed.names[node]: plan.placed.positions[node] for each in plan.sources for node in each.nodes
    }
    sources = [source for recording in case.recordings.values() for source in recording.tapes]
    missing = list(dict.fromkeys(source for source in sources if source not in found))
    if missing:
        raise UsageError(
            f"no node of this network publishes for {len(missing)} of {len({*sources})} sources of the "
            f"history, such as '{missing[0]}': nodes are called as sources are, or there are as many"
        )
    return {source: found[source] for source in dict.fromkeys(sources)}


def minds_places(case: Case, seed: int) -> bool:
    """Whether it may matter where readings come from."""
    return Run(case, seed).located


def play(case: Case, seed: int) -> Played:
    """Let the network work."""
    run = Run(case, seed)
    outcome = run.finish()
    since = _offset(case)
    told = [
        (wish, came + since, _moved(said, since)) for came, wish, said in run.account.told if not wish.plain
    ]
    return Played(outcome, [wish for wish in run.plan.wishes if not wish.plain], told)


def _offset(case: Case) -> Duration:
    """What is to be added to a time of a run for the time of the history."""
    return min(recording.begin for recording in case.recordings.values()) - case.scenario.warm_up


def _moved(said: Notification, by: Duration) -> Notification:
    since = None if said.since is None else said.since + by
    return said._replace(event=replace(said.event, time=said.event.time + by), since=since)
