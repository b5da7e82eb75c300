"""Starts and ends become intervals."""

from __future__ import annotations

import holdfast as hf
from holdfast.files.interval import Pairing

WARM = """
topic T (value float)
state Warm on T [value > 25; value < 22] per source
"""


def test_a_late_end_gives_an_interval_of_zero_length_to_a_later_start():
    engine, pairing = hf.Engine(WARM), Pairing()
    arrived = [("2026-07-01T12:01:40Z", 26.0), ("2026-07-01T12:00:50Z", 21.0)]
    output = [
        note
        for at, value in arrived
        for note in engine.push(hf.Event("T", hf.instant(at), "s", {"value": value}))
    ]
    (interval,) = pairing.pair(output)
    assert interval.end == interval.start
    assert interval.duration == 0
    assert not pairing.still_open()
