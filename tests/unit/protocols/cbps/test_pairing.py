"""Whoever was told a start is told its end, or that nobody knows any more."""

from __future__ import annotations

from holdfast.model.event import Event, Notification
from holdfast.protocols.cbps.pairing import Pairing


def plain(_name: str) -> None:
    """It does not correct what it has told."""


def said(status: str) -> Notification:
    return Notification("Warm", Event("T", 0, "a"), status, "a", None)  # type: ignore[arg-type]


def test_what_is_released_is_over_with_the_end_of_what_was_told():
    pairing = Pairing()
    assert pairing.tells("w", said("ingress"))
    pairing.release("w")
    assert list(pairing.over(plain)) == []
    assert pairing.tells("w", said("egress"))
    assert list(pairing.over(plain)) == ["w"]
    assert not pairing.tells("w", said("ingress")), "a new start"


def test_what_nobody_knows_any_more_is_told_so_and_not_waited_for():
    pairing = Pairing()
    pairing.tells("w", said("ingress"))
    pairing.release("w")
    assert pairing.tells("w", said("unknown"))
    assert list(pairing.over(plain)) == ["w"]


def test_what_is_kept_though_nobody_knows_it_is_waited_for():
    pairing = Pairing()
    pairing.tells("w", said("ingress"))
    pairing.release("w")
    assert pairing.loses("w", ("Warm", "a"), 0, kept=True)
    assert list(pairing.over(plain)) == []
    assert pairing.tells("w", said("known"))
    assert pairing.tells("w", said("egress"))
    assert list(pairing.over(plain)) == ["w"]
    assert not pairing.loses("w", ("Warm", "b"), 0, kept=True), "it was not told to start"
