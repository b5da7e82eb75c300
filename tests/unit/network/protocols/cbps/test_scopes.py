"""Which scopes publishers reach through which connection, and which of them are shared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.protocols.cbps.scopes import NO_SCOPES, ScopeReach, includes, intersect, union

KEYS = "abc"
scopes = st.none() | st.frozensets(st.sampled_from(KEYS), max_size=3)


def members(some):
    """A set of scopes, one by one; ``other`` stands for all that are not named here."""
    return {*KEYS, "other"} if some is None else set(some)


@given(a=scopes, b=scopes)
def test_scope_sets_behave_like_sets(a, b):
    assert members(union(a, b)) == members(a) | members(b)
    assert members(intersect(a, b)) == members(a) & members(b)
    assert includes(a, b) is (members(a) >= members(b))


@given(
    advertised=st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), scopes), max_size=8),
    withdrawn=st.lists(st.integers(0, 7), max_size=5),
    beyond=scopes,
)
def test_a_scope_reached_from_here_and_elsewhere_is_shared(advertised, withdrawn, beyond):
    reach, live = ScopeReach(), []
    for peer, some in advertised:
        before = {key for _, known in live for key in members(known)}
        new = members(reach.add(peer, some))
        assert members(some) - before <= new <= members(some)
        assert not new or "other" not in before
        live.append((peer, some))
    for i in withdrawn:
        if i < len(live):
            reach.remove(*live.pop(i))
    for peer in "pqr":
        mine = {key for p, some in live if p == peer for key in members(some)}
        others = {key for p, some in live if p != peer for key in members(some)}
        assert members(reach.through(peer)) == mine
        assert members(reach.shared(peer, beyond)) == mine & (others | members(beyond))


def test_withdrawing_everything_leaves_no_scopes():
    reach = ScopeReach()
    for peer, some in (("p", frozenset("ab")), ("q", frozenset("b")), ("p", None)):
        reach.add(peer, some)
        reach.remove(peer, some)
    assert reach == ScopeReach()
    assert reach.through("p") == NO_SCOPES
