"""A connection delivers messages in order, each once, or reports its end, for any faults of the wire."""

from __future__ import annotations

import heapq
from itertools import count
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.protocol import CancelTimer, Joined, Left, Received, Send, SetTimer
from holdfast.network.motes.connection import End, Terms


class LossyWire:
    """Two ends and what is between them: frames are lost, come twice, and overtake one another."""

    def __init__(self, seed: int, loss: float, twice: float, longest: int, tries: int) -> None:
        self._random, self._loss, self._twice, self._longest = Random(seed), loss, twice, longest
        self._terms = Terms(
            rto=300, tries=tries, queue=10**6, segment=4, size=len, losable=lambda message: False
        )
        self._heap: list = []
        self._order = count()
        self._timers: dict[str, int] = {}
        self.now = 0
        self.deliveries: dict[str, list] = {"a": [], "b": []}
        self.ends: dict[str, End] = {}
        for name in ("a", "b"):
            self.start(name)

    def calm(self) -> None:
        """From now on nothing is lost."""
        self._loss = 0.0

    def start(self, name: str) -> None:
        """A mote begins, or begins again and knows nothing."""
        other = "b" if name == "a" else "a"
        self._timers.pop(name, None)
        self.ends[name] = End(other, self._terms, self.now)
        self.take(name, self.ends[name].open(self.now))

    def take(self, name: str, effects) -> None:
        """Do what an end wants."""
        for each in effects:
            match each:
                case Send(_, frame):
                    for _ in range(1 + (self._random.random() < self._twice)):
                        if self._random.random() >= self._loss:
                            self._push(1 + self._random.randrange(self._longest), each.to, frame)
                case SetTimer(_, at):
                    self._timers[name] = number = next(self._order)
                    heapq.heappush(self._heap, (at, number, name, number))
                case CancelTimer():
                    self._timers.pop(name, None)
                case _:
                    self.deliveries[name].append(each)

    def _push(self, after: int, to: str, frame) -> None:
        heapq.heappush(self._heap, (self.now + after, next(self._order), to, frame))

    def run(self, until: int) -> None:
        """Let everything happen up to a time."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, name, what = heapq.heappop(self._heap)
            if not isinstance(what, int):
                self.take(name, self.ends[name].on_frame(self.now, what))
            elif self._timers.get(name) == what:
                del self._timers[name]
                self.take(name, self.ends[name].on_timer(self.now))
        self.now = until


WIRES = st.tuples(
    st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.5]), st.sampled_from([0.0, 0.3]), st.integers(1, 400)
)
MESSAGES = st.lists(st.text("abc", min_size=1, max_size=15), min_size=1, max_size=12)


@given(WIRES, MESSAGES, MESSAGES)
def test_messages_arrive_in_order_and_once_in_both_directions(wire, there, back):
    found = LossyWire(*wire, tries=10**6)
    found.run(10**6)
    assert found.deliveries == {
        "a": [Joined(found.deliveries["a"][0].now, "b")],
        "b": [found.deliveries["b"][0]],
    }
    for name, messages in (("a", there), ("b", back)):
        for message in messages:
            found.take(name, found.ends[name].send(found.now, message))
    found.run(10**10)
    assert [each.message for each in found.deliveries["b"][1:]] == there
    assert [each.message for each in found.deliveries["a"][1:]] == back


@given(WIRES, MESSAGES, st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 4000)), max_size=4))
def test_a_connection_is_restored_after_restarts_and_skips_and_repeats_nothing(wire, some, restarts):
    found = LossyWire(*wire, tries=4)
    sent = []
    found.run(2_000)
    for i, message in enumerate(some):
        found.run(found.now + 500)
        if found.ends["a"].up:
            sent.append(f"{message} {i}")
            found.take("a", found.ends["a"].send(found.now, sent[-1]))
        for name, after in restarts[i : i + 1]:
            found.run(found.now + after)
            found.start(name)
            found.deliveries[name].append(Left(found.now, "", "restarted"))
    found.run(found.now + 10**7)
    found.calm()
    found.run(found.now + 10**7)
    assert found.ends["a"].up
    assert found.ends["b"].up
    found.take("a", found.ends["a"].send(found.now, "last"))
    found.run(found.now + 10**6)
    assert found.deliveries["b"][-1].message == "last"
    came = [each.message for each in found.deliveries["b"][:-1] if isinstance(each, Received)]
    assert len(set(came)) == len(came)
    count: list[str] = []
    for each in found.deliveries["b"][:-1]:
        count = [*count, each.message] if isinstance(each, Received) else []
        begin = sent.index(count[0]) if count else 0
        assert count == sent[begin : begin + len(count)]
