"""The advertisements of a publisher before its first event, and how many of them it stores."""

from __future__ import annotations

import pytest

from holdfast import Attribute, Event, Topic
from holdfast.network.overlay import client
from holdfast.network.overlay.client import Publisher
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import CbpsClient, publish, watch
from holdfast.network.protocols.cbps.event import location_fields, to_content
from holdfast.network.protocols.cbps.parts import pins

TOPIC = Topic("T", (Attribute("value", "float"),))


class PublisherStory:
    """A publisher at a broker, in memory: it is asked what a node is asked."""

    def __init__(self):
        self.net = Overlay()
        self.net.broker("hub")
        self.net.client("p", to="hub", machine=CbpsClient("p", compile_condition))
        self.publisher = Publisher(self)

    def ask(self, request):
        self.net.ask("p", request)

    def publish_from(self, source, place=None, location=None):
        event = Event("T", 1, source, {"value": 1.0}, 1, location, place)
        news = self.publisher.advertise(TOPIC, source, location_fields(event))
        self.ask(publish(to_content(event)))
        self.net.settle()
        return news

    def promised(self):
        """The advertisements at the broker, by the values pinned beside the topic."""
        found = []
        for stored in self.net.nodes["hub"].state.routing.in_force.values():
            for one in stored.bundle.advertisements:
                found.append({name: value for name, value in pins(one.filter).items() if name != "topic"})
        return found


def test_a_publisher_advertises_each_source_before_its_first_event_and_where_it_stays():
    story = PublisherStory()
    assert [story.publish_from("a", location=(1.0, 2.0)) for _ in range(2)] == [True, False]
    assert story.publish_from("b", place="hall") is False
    assert story.promised() == [{"source": "a", "x": 1.0, "y": 2.0}, {"source": "b", "place": "hall"}]
    for x in (2.0, 3.0):
        story.publish_from("a", location=(x, 2.0))
    assert story.promised() == [{"source": "b", "place": "hall"}, {"source": "a"}]
    story.publish_from("b", place="hall", location=(0.0, 0.0))
    assert story.promised() == [{"source": "a"}, {"source": "b"}]
    assert story.net.take("p") == []


def test_only_the_topic_is_advertised_for_very_many_sources(monkeypatch):
    monkeypatch.setattr(client, "MOST_SOURCES", 10)
    story = PublisherStory()
    for n in range(100):
        story.publish_from(f"s{n}", location=(float(n), 0.0))
    assert story.promised() == [{}]
    assert story.publisher._known == {"T": {client.ALL_SOURCES: client.ANYWHERE}}
    assert len(story.net.nodes["p"].state.bundles) == 1
    assert story.net.take("p") == []


@pytest.mark.parametrize("number", [200, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_keys_that_never_return_leave_nothing_in_a_broker(number, monkeypatch):
    """A condition starts and ends for each source."""
    monkeypatch.setattr(client, "MOST_SOURCES", 50)
    story = PublisherStory()
    hub = story.net.nodes["hub"].state
    warm = "topic T (value float) state Warm on T [value > 25; value < 22] per source"
    story.net.client("s", to="hub")
    story.net.ask("s", watch("warm", warm))
    story.net.settle()
    for n in range(number):
        story.publisher.advertise(TOPIC, f"s{n}")
        for value in (30.0, 20.0):
            story.ask(publish(to_content(Event("T", n, f"s{n}", {"value": value}, n))))
        story.net.settle()
    assert len(story.net.take("s")) == 2 * number
    (filtering,) = hub.watching.all()
    assert filtering.replica.bits == set()
    assert len(hub.routing.in_force) <= 2
