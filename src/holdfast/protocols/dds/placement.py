"""State filters on the publisher's node: only the starts and ends of a condition travel, reliably.

A subscription with a condition is placed where the samples are born.  Each publisher runs the machine for
its own samples, so a condition must be one that holds for each source alone (law 3: split by scope).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...model.event import Event, Transition, Value
from ...model.instant import Instant
from ...model.protocol import Peer
from .deployment import Condition
from .topic import Topic, TopicId


@dataclass(slots=True)
class Placed:
    """The conditions that run on a node, by topic and name, with what each remembers."""

    states: dict[tuple[TopicId, str], Any] = field(default_factory=dict)
    samples: dict[TopicId, int] = field(default_factory=dict)

    def place(self, topic: TopicId, names: Iterable[str], known: Mapping[str, Condition]) -> None:
        """From now on exactly these run on a topic; those that run already go on."""
        wanted = {name for name in names if name in known}
        for key in [k for k in self.states if k[0] == topic and k[1] not in wanted]:
            del self.states[key]
        for name in sorted(wanted):
            if (topic, name) not in self.states:
                self.states[topic, name] = known[name].initial()

    def react(
        self,
        topic: Topic,
        source: Peer,
        values: Mapping[str, Value],
        time: Instant,
        known: Mapping[str, Condition],
    ) -> Iterator[tuple[str, Transition]]:
        """What a sample starts or ends."""
        number = self.samples[topic.id] = self.samples.get(topic.id, -1) + 1
        event = Event(topic.name, time, source, values, number)
        for key in [k for k in self.states if k[0] == topic.id]:
            self.states[key], transitions = known[key[1]].react(self.states[key], event)
            for transition in transitions:
                yield key[1], transition
