"""Covering of items in tables: what it promises."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.protocols.cbps.content import covers, satisfied
from holdfast.protocols.cbps.database import Item, Table
from support import naive_match as naive


@pytest.mark.parametrize("kind", ["subscription", "advertisement"])
@given(data=st.data())
def test_covering_of_items_is_reflexive_and_transitive(kind, data):
    a, b, c = (data.draw(naive.numeric_filters) for _ in range(3))
    assert covers(kind, a, a)
    if covers(kind, a, b) and covers(kind, b, c):
        assert covers(kind, a, c)


@given(naive.numeric_filters, naive.numeric_filters, naive.contents())
def test_a_covered_subscription_wants_nothing_that_its_coverer_does_not(a, b, content):
    assume(covers("subscription", a, b))
    assert satisfied(a, content) or not satisfied(b, content)


@given(naive.numeric_filters, naive.numeric_filters, naive.numeric_filters)
def test_a_covered_advertisement_attracts_nothing_that_its_coverer_does_not(a, b, wanted):
    assume(covers("advertisement", a, b))
    attracts = [naive.related(wanted, advertised, "subset", "intersection") for advertised in (a, b)]
    assert attracts[0] or not attracts[1]


@given(st.lists(naive.numeric_filters, max_size=8), st.randoms(use_true_random=False), naive.contents())
def test_who_is_in_sight_wants_what_all_want_in_whatever_order_they_came(filters, random, content):
    stored = Table("subscription")
    items = [Item(i, filter_) for i, filter_ in enumerate(filters)]
    random.shuffle(items)
    for item in items:
        stored.insert(item)
    wanted = any(satisfied(filter_, content) for filter_ in filters)
    assert any(satisfied(item.filter, content) for item in stored.active()) is wanted
