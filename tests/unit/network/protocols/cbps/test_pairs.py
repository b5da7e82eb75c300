"""A subscriber that received a start receives its end, or an unknown."""

from __future__ import annotations

from holdfast.model.event import Event, Notification
from holdfast.network.protocols.cbps.pairs import PairTracker


def plain(_name: str) -> None:
    """A condition without correction."""


def notification(status: str) -> Notification:
    return Notification("Warm", Event("T", 0, "a"), status, "a", None)  # type: ignore[arg-type]


def test_a_release_is_over_when_every_delivered_start_has_ended():
    pairing = PairTracker()
    assert pairing.should_deliver("w", notification("ingress"))
    pairing.release("w")
    assert list(pairing.finished(plain)) == []
    assert pairing.should_deliver("w", notification("egress"))
    assert list(pairing.finished(plain)) == ["w"]
    assert not pairing.should_deliver("w", notification("ingress")), "a new start"


def test_unknown_pairs_are_reported_and_not_awaited():
    pairing = PairTracker()
    pairing.should_deliver("w", notification("ingress"))
    pairing.release("w")
    assert pairing.should_deliver("w", notification("unknown"))
    assert list(pairing.finished(plain)) == ["w"]


def test_preserved_pairs_are_awaited_while_unknown():
    pairing = PairTracker()
    pairing.should_deliver("w", notification("ingress"))
    pairing.release("w")
    assert pairing.should_deliver_unknown("w", ("Warm", "a"), 0, is_preserved=True)
    assert list(pairing.finished(plain)) == []
    assert pairing.should_deliver("w", notification("known"))
    assert pairing.should_deliver("w", notification("egress"))
    assert list(pairing.finished(plain)) == ["w"]
    assert not pairing.should_deliver_unknown("w", ("Warm", "b"), 0, is_preserved=True), (
        "it was not told to start"
    )
