"""State filters on the publisher's node: only starts and ends of a condition are sent, reliably.

A condition of a subscription is evaluated where the samples originate. Each publisher runs the machine on its
own samples, so only conditions per source are possible (law 3: split by scope).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....model.event import Event, Transition, Value
from ....model.instant import Instant
from ....model.protocol import Peer
from .deployment import PublisherMachine
from .topic import DdsTopic, TopicId

Values = Mapping[str, Value]
Machines = Mapping[str, PublisherMachine]


@dataclass(slots=True)
class PlacedConditions:
    """The conditions that run on a node, by topic and name, with their states."""

    states: dict[tuple[TopicId, str], Any] = field(default_factory=dict)
    samples: dict[TopicId, int] = field(default_factory=dict)

    def place(self, topic: TopicId, names: Iterable[str], known: Machines) -> None:
        """Run exactly the named conditions on a topic. Conditions that already run keep their state."""
        wanted = {name for name in names if name in known}
        for key in [k for k in self.states if k[0] == topic and k[1] not in wanted]:
            del self.states[key]
        for name in sorted(wanted):
            if (topic, name) not in self.states:
                self.states[topic, name] = known[name].initial()

    def react(
        self, topic: DdsTopic, source: Peer, values: Values, time: Instant, known: Machines
    ) -> Iterator[tuple[str, Transition]]:
        """Yield the transitions that a sample causes, each with the name of its condition."""
        number = self.samples[topic.id] = self.samples.get(topic.id, -1) + 1
        event = Event(topic.name, time, source, values, number)
        for key in [k for k in self.states if k[0] == topic.id]:
            watch = known[key[1]]
            self.states[key], transitions = watch.react(self.states[key], event)
            for transition in transitions:
                yield key[1], transition
