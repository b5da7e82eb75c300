"""Nothing is delivered twice, and nothing new is taken for old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.cbps.message import Key
from holdfast.protocols.cbps.once import WINDOW, Once

keys = st.builds(Key, st.sampled_from(["a", "b"]), st.integers(0, WINDOW - 1) | st.integers(10**6, 10**6 + 5))


@given(st.lists(keys, max_size=40))
def test_a_bundle_counts_when_it_comes_for_the_first_time(keys):
    once, seen, highest = Once(), set(), {}
    for key in keys:
        too_old = key.sequence <= highest.get(key.origin, 0) - WINDOW
        assert once.first(key) is (key not in seen and not too_old)
        seen.add(key)
        highest[key.origin] = max(key.sequence, highest.get(key.origin, 0))


def test_what_is_far_behind_the_newest_counts_as_known():
    once = Once()
    assert once.first(Key("a", WINDOW))
    assert once.first(Key("a", 1))
    assert not once.first(Key("a", 0))


def test_a_publisher_that_starts_again_goes_on_with_higher_numbers():
    once = Once()
    assert all(once.first(Key("a", n)) for n in (5, 6, 10**15, 10**15 + 1))
