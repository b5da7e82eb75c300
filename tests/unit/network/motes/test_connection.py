"""A connection delivers messages of any length in order, each once, and reports when the other end is
gone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from holdfast.model.protocol import (
    CancelTimer,
    Effect,
    Input,
    Joined,
    Left,
    Received,
    Send,
    SetTimer,
    Undelivered,
)
from holdfast.network.motes.connection import (
    HEADER,
    ConnectionAck,
    ConnectionHello,
    ConnectionSegment,
    End,
    Terms,
    bytes_of,
)

TERMS = Terms(rto=100, tries=3, queue=3, segment=10, size=len, losable=lambda message: message.islower())


def frames(output: Iterable[Effect | Input]) -> list:
    return [each.message for each in output if isinstance(each, Send)]


def inputs(output: Iterable[Effect | Input]) -> list:
    return [each for each in output if isinstance(each, Joined | Left | Received | Undelivered)]


def ends() -> tuple[End, End]:
    """Both ends of an established connection."""
    a, b = End("b", TERMS, 1), End("a", TERMS, 2)
    (hello,) = frames(a.open(0))
    (reply,) = frames(b.on_frame(0, hello))
    assert inputs(a.on_frame(0, reply)) == [Joined(0, "b")]
    (hello,) = frames(b.open(0))
    (reply,) = frames(a.on_frame(0, hello))
    assert inputs(b.on_frame(0, reply)) == [Joined(0, "a")]
    return a, b


def exchange(a: End, b: End, output: list, now: int = 0) -> list[Input]:
    """Deliver everything that is on its way; return the inputs of the machines above."""
    received: list[Input] = []
    on_the_way = [(b, frame) for frame in frames(output)]
    while on_the_way:
        to, frame = on_the_way.pop(0)
        output = list(to.on_frame(now, frame))
        received += inputs(output)
        on_the_way += [(a if to is b else b, each) for each in frames(output)]
    return received


def test_a_message_is_sent_in_segments_that_fit_and_arrives_whole():
    a, b = ends()
    output = list(a.send(0, "x" * 25))
    (first,) = frames(output)
    assert (first.size, first.last, bytes_of(first)) == (10, False, HEADER + 10)
    assert exchange(a, b, output) == [Received(0, "a", "x" * 25)]
    assert a.sent is None
    assert not a.waiting


def test_messages_arrive_in_order():
    a, b = ends()
    output = [each for message in ("one", "two", "three") for each in a.send(0, message)]
    assert len(frames(output)) == 1, "one segment at a time"
    assert [each.message for each in exchange(a, b, output)] == ["one", "two", "three"]


def test_unacknowledged_segments_are_sent_again_at_growing_intervals_and_received_once():
    a, b = ends()
    (segment,) = frames(a.send(0, "hello"))
    waits = []
    for now in (100, 300):
        again = list(a.on_timer(now))
        assert frames(again) == [segment]
        waits += [each.at - now for each in again if isinstance(each, SetTimer)]
    assert waits == [200, 400]
    first, second = (list(b.on_frame(500, segment)) for _ in range(2))
    assert inputs(first) == [Received(500, "a", "hello")]
    assert inputs(second) == []
    assert frames(first) == frames(second) == [ConnectionAck(2, 1, 0, "hello")]
    assert list(a.on_frame(500, frames(first)[0])) == [CancelTimer("connection b")]
    assert a.counts == {"sent again": 2}


def test_an_end_that_does_not_answer_is_given_up_and_greeted_again():
    a, _ = ends()
    output = list(a.send(0, "hello")) + list(a.send(0, "you"))
    for now in (100, 300, 700):
        output = list(a.on_timer(now))
    assert inputs(output) == [Left(700, "b", "b does not answer")]
    assert frames(output) == [ConnectionHello(700, 2, False)]
    assert not a.waiting
    assert list(a.send(800, "too late")) == []


def test_after_a_restart_both_ends_start_new_sessions():
    a, b = ends()
    exchange(a, b, list(a.send(0, "before")))
    again = End("b", TERMS, 50)
    (hello,) = frames(again.open(50))
    output = list(b.on_frame(60, hello))
    assert inputs(output) == [Left(60, "a", "a has begun anew")]
    received = exchange(b, again, output, 60)
    assert sorted(each.peer for each in received) == ["a", "b"]
    assert all(isinstance(each, Joined) for each in received)
    (segment,) = frames(again.send(70, "after"))
    assert inputs(b.on_frame(70, segment)) == [Received(70, "a", "after")]


def test_a_segment_of_an_earlier_session_is_not_taken_for_a_new_one():
    a, b = ends()
    (old,) = frames(a.send(0, "old"))
    again = End("b", TERMS, 50)
    exchange(again, b, list(again.open(50)), 50)
    assert list(b.on_frame(60, old)) == []


def test_a_full_end_drops_the_oldest_message_that_may_be_lost():
    a, _ = ends()
    list(a.send(0, "under way"))
    output = [each for message in ("STORED", "old", "new", "newer") for each in a.send(5, message)]
    assert inputs(output) == [Undelivered(5, "b", "old")]
    assert [message for message, _ in a.waiting] == ["STORED", "new", "newer"]


def test_hello_is_sent_until_the_other_end_answers():
    a = End("b", TERMS, 1)
    times = [0]
    output = list(a.open(0))
    for _ in range(4):
        (timer,) = [each for each in output if isinstance(each, SetTimer)]
        times.append(timer.at)
        output = list(a.on_timer(timer.at))
        assert frames(output) == [ConnectionHello(1, None, False)]
    assert [later - earlier for earlier, later in pairwise(times)] == [100, 200, 400, 800]


def test_a_segment_completes_the_greeting_of_an_end_that_missed_the_answer():
    a, b = End("b", TERMS, 1), End("a", TERMS, 2)
    (hello,) = frames(a.open(0))
    (reply,) = frames(b.on_frame(0, hello))
    list(a.on_frame(0, reply))
    output = list(a.send(0, "hi"))
    (segment,) = frames(output)
    assert isinstance(segment, ConnectionSegment)
    assert inputs(b.on_frame(0, segment)) == [Joined(0, "a"), Received(0, "a", "hi")]
