"""Nothing is delivered twice, and nothing new is mistaken for old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.protocols.cbps.duplicates import WINDOW, DuplicateFilter
from holdfast.network.protocols.cbps.message import BundleKey

keys = st.builds(
    BundleKey, st.sampled_from(["a", "b"]), st.integers(0, WINDOW - 1) | st.integers(10**6, 10**6 + 5)
)


@given(st.lists(keys, max_size=40))
def test_a_bundle_counts_when_it_arrives_for_the_first_time(keys):
    once, seen, highest = DuplicateFilter(), set(), {}
    for key in keys:
        too_old = key.sequence <= highest.get(key.origin, 0) - WINDOW
        assert once.is_first(key) is (key not in seen and not too_old)
        seen.add(key)
        highest[key.origin] = max(key.sequence, highest.get(key.origin, 0))


def test_numbers_far_behind_the_newest_count_as_seen():
    once = DuplicateFilter()
    assert once.is_first(BundleKey("a", WINDOW))
    assert once.is_first(BundleKey("a", 1))
    assert not once.is_first(BundleKey("a", 0))


def test_a_restarted_publisher_continues_with_higher_numbers():
    once = DuplicateFilter()
    assert all(once.is_first(BundleKey("a", n)) for n in (5, 6, 10**15, 10**15 + 1))
