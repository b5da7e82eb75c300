"""The picture of rings: what it shows is what agents do."""

from __future__ import annotations

import pytest

from holdfast.cli.rings import draw, moments
from holdfast.errors import UsageError
from holdfast.model.relation import apart
from support.agents import relationship_of, walks

MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
TEAM = relationship_of("""topic User ()
group Team of User ("ann", "bob")
relate Together all of Team within 15 m until 25 m""")


@pytest.mark.parametrize("seed", range(5))
def test_silent_members_stay_in_their_ring_and_rings_are_drawn_until_the_first_end(seed):
    events = walks(("ann", "bob"), 200, seed, size=200.0, step=8.0, jump=0.0)
    rings, silent = (), 0
    way = list(moments(MEET.relation, MEET.relation.ties[0], events))
    for instant in way:
        if not instant.rings:
            silent += 1
            for at, (centre, radius) in zip(instant.places, rings, strict=True):
                assert apart(at, centre) < radius
        rings = instant.rings or rings
    assert silent > len(way) / 4
    held = [instant.holds for instant in way]
    assert held == [*sorted(held[:-1]), False]


def test_a_picture_is_drawn_or_refused_with_a_reason(tmp_path):
    events = walks(("ann", "bob"), 200, 1, size=40.0, step=8.0)
    draw(MEET, events, tmp_path / "rings.png")
    assert (tmp_path / "rings.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="no two of 'Meet' meet"):
        draw(MEET, events[:2], tmp_path / "rings.png")
    with pytest.raises(UsageError, match="rings are of two who are named"):
        draw(TEAM, events, tmp_path / "rings.png")
    with pytest.raises(UsageError, match=r"rings\.what"):
        draw(MEET, events, tmp_path / "rings.what")
