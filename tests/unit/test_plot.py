"""Pictures of conditions, readings, regions and networks show the notifications."""

from __future__ import annotations

import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.errors import UsageError
from holdfast.model.instant import DAY, SECOND

WARM = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per source
state Cold on Climate [temperature < 10; temperature > 12] per source
"""
READINGS = pa.table(
    {
        "time": pa.array([10 * i * SECOND for i in range(8)] * 2).cast(pa.timestamp("us", "UTC")),
        "source": ["a"] * 8 + ["b"] * 8,
        "temperature": [20.0, 26, 24, 21, 20, 27, 28, 28, 20, 20, 9, 11, 13, 20, 20, 20],
    }
)


def is_png(picture):
    return picture._repr_png_().startswith(b"\x89PNG")


def test_a_timeline_has_a_row_for_each_scope_and_a_bar_for_each_interval():
    picture = hf.plot.timeline(hf.replay(WARM, READINGS))
    (panel,) = picture.figure.axes
    assert [one.get_text() for one in panel.get_yticklabels()] == ["Cold b", "Warm a"]
    widths = [
        round((path.get_extents().width) * DAY / SECOND)
        for bars in panel.collections
        for path in bars.get_paths()
    ]
    assert widths == [20, 20, 0]  # Cold of b; Warm of a, and again: it holds at the end
    assert panel.get_title(loc="left") == "3 stretches of 2 conditions"
    assert is_png(picture)


def test_a_timeline_can_be_drawn_from_intervals_and_names_what_it_omits():
    intervals = hf.replay(WARM, READINGS).intervals()
    (panel,) = hf.plot.timeline(intervals, rows=1, zone="Europe/Berlin").figure.axes
    assert "1 more are not shown" in panel.get_title(loc="left")
    with pytest.raises(UsageError, match="no condition held"):
        hf.plot.timeline([])
    with pytest.raises(UsageError, match="of a replay"):
        hf.plot.timeline(["Warm"])


def test_a_band_shows_the_readings_the_thresholds_and_the_active_intervals(tmp_path):
    picture = hf.plot.bands(WARM, "Warm", READINGS, scope="a")
    (panel,) = picture.figure.axes
    line, entrance, exit = panel.get_lines()
    assert line.get_ydata().tolist() == [20.0, 26, 24, 21, 20, 27, 28, 28]
    assert [entrance.get_label(), exit.get_label()] == ["entrance: > 25", "exit: < 22"]
    assert len(panel.patches) == 2
    picture.save(tmp_path / "bands.svg")
    assert (tmp_path / "bands.svg").stat().st_size > 5_000


def test_falling_bands_show_the_readings_unchanged():
    (panel,) = hf.plot.bands(WARM, "Cold", READINGS, scope="b").figure.axes
    assert panel.get_lines()[0].get_ydata().tolist() == [20.0, 20, 9, 11, 13, 20, 20, 20]


@pytest.mark.parametrize(
    ("subscription", "scope", "message"),
    [
        ("Warm", None, "has several scopes: say which. There is 'a', 'b'"),
        ("Warm", "c", "has no scope 'c'"),
        ("Worm", "a", "Did you mean 'Warm'"),
    ],
)
def test_empty_bands_are_refused(subscription, scope, message):
    with pytest.raises(UsageError, match=message):
        hf.plot.bands(WARM, subscription, READINGS, scope=scope)


def test_a_state_without_a_threshold_has_no_band():
    text = "topic Door (open bool)\nstate Open on Door [open; !open]"
    table = pa.table({"time": READINGS["time"], "source": READINGS["source"], "open": [True] * 16})
    with pytest.raises(UsageError, match="compares nothing with a number"):
        hf.plot.bands(text, "Open", table)


def test_regions_with_active_conditions_are_coloured():
    hall = hf.Region("hall", hf.Rectangle((0.0, 0.0), (10.0, 10.0)))
    room = hf.Region("room", hf.Circle((3.0, 3.0), 1.0))
    places = hf.Gazetteer((hall, room))
    holding = [
        hf.Holding("Warm", "room", 0),
        hf.Holding("Cold", "hall", 0, known=False),
    ]
    (panel,) = hf.plot.regions(places, holding).figure.axes
    colours = {
        text.get_text(): patch.get_facecolor() for text, patch in zip(panel.texts, panel.patches, strict=True)
    }
    assert list(colours) == ["hall", "room"], "the inner one is drawn over the outer"
    assert len(set(colours.values())) == 2
    (panel,) = hf.plot.regions(places, holding, subscription="Warm").figure.axes
    assert panel.patches[0].get_facecolor() != colours["hall"]
    quoted = hf.Gazetteer((hall, hf.Region("lab, north", room.shape)))
    (panel,) = hf.plot.regions(quoted, [hf.Holding("Both", 'hall,"lab, north"', 0)]).figure.axes
    assert len({patch.get_facecolor() for patch in panel.patches}) == 1, "both hold"
    with pytest.raises(UsageError, match="nothing to draw"):
        hf.plot.regions(hf.Gazetteer((hf.Region("named", sources=("a",)),)))
