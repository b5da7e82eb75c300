"""The outbox of a slow consumer is bounded; dropped messages are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.connection.outbox import Outbox
from holdfast.network.overlay.wire.fault import WireFault


def outbox(most=3, most_bytes=1000, when_full="drop-oldest"):
    return Outbox(most, most_bytes, when_full)


def test_messages_leave_in_the_order_of_arrival():
    box = outbox()
    for data in (b"a", b"b", b"c"):
        assert box.put(data, data, losable=True) == []
    assert box.take(1) == b"a"
    assert box.take(100) == b"bc"
    assert (len(box), box.size) == (0, 0)


def test_a_full_outbox_drops_the_oldest_message_that_may_be_lost():
    box = outbox()
    box.put(b"subscription")
    given_up = [box.put(data, int(data), losable=True) for data in (b"1", b"2", b"3", b"4")]
    assert given_up == [[], [], [1], [2]]
    assert box.take(100) == b"subscription34"


def test_a_full_outbox_of_messages_that_must_not_be_lost_is_an_error():
    box = outbox(2)
    box.put(b"a")
    box.put(b"b")
    with pytest.raises(WireFault, match=r"too slow: 3 messages .* at most 2"):
        box.put(b"c")


def test_the_policy_disconnect_drops_no_message():
    box = outbox(2, when_full="disconnect")
    box.put(b"a", "a", losable=True)
    box.put(b"b", "b", losable=True)
    with pytest.raises(WireFault, match="too slow"):
        box.put(b"c", "c", losable=True)


def test_bytes_are_bounded_but_one_message_always_fits():
    box = outbox(100, most_bytes=10)
    assert box.put(b"x" * 50, "x", losable=True) == []
    assert box.put(b"y" * 9, "y", losable=True) == ["x"]
    assert box.take(100) == b"y" * 9


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()) | st.integers(1, 30), max_size=60),
    st.integers(1, 5),
    st.integers(1, 40),
)
def test_an_outbox_equals_a_bounded_list(steps, most, most_bytes):
    """Against the obvious list: the same is given up, the same remains, in the same order."""
    box, naive = outbox(most, most_bytes), []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            taken = b""
            while naive and len(taken) < step:
                taken += naive.pop(0)[0]
            assert box.take(step) == taken
            continue
        size, losable = step
        message, given_up = number if losable else None, []
        naive.append((bytes([number]) * size, message))
        while len(naive) > most or (sum(len(data) for data, _ in naive) > most_bytes and len(naive) > 1):
            found = [i for i, (_, may) in enumerate(naive) if may is not None]
            if not found:
                with pytest.raises(WireFault):
                    box.put(bytes([number]) * size, message, losable=message is not None)
                return
            given_up.append(naive.pop(found[0])[1])
        assert box.put(bytes([number]) * size, message, losable=message is not None) == given_up
        assert (len(box), box.size) == (len(naive), sum(len(data) for data, _ in naive))


def test_a_consumer_that_takes_nothing_costs_no_more_than_the_bound():
    box = outbox(10)
    box.put(b"kept")
    given_up = [one for n in range(10_000) for one in box.put(b"reading", n, losable=True)]
    assert len(box._queue) <= 2 * 10 + 2
    assert given_up == list(range(10_000 - 9))
