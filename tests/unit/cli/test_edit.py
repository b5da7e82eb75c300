"""The preview of a revision in numbers."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, UsageError, check, parse
from holdfast.cli.edit import forecast

TOPIC = "topic T (v float)\n"
OLD = TOPIC + "state Warm on T [v > 25; v < 22] per source\n"
READINGS = (("a", 26), ("b", 30), ("c", 24))


@pytest.fixture
def definitions(tmp_path):
    """The old definition, and a function that writes a new one."""
    old = tmp_path / "old.hf"
    old.write_text(OLD)

    def new(high):
        path = tmp_path / "new.hf"
        path.write_text(OLD.replace("> 25", f"> {high}"))
        return path

    return old, new


def readings():
    return [Event("T", i, source, {"v": float(v)}, i) for i, (source, v) in enumerate(READINGS)]


def test_an_engine_that_remembers_readings_previews_what_they_decide(definitions, tmp_path):
    old, new = definitions
    engine, snapshot = Engine(OLD, remember=True), tmp_path / "engine.snapshot"
    for event in readings():
        engine.push(event)
    snapshot.write_bytes(engine.snapshot())
    assert forecast(old, new(23), snapshot, None) == {"Warm": "2 stay so, 1 start"}
    assert forecast(old, new(28), snapshot, None) == {"Warm": "1 stay so, 1 become unknown"}
    with pytest.raises(UsageError, match=r"--state .*nothing\.here: No such file"):
        forecast(old, new(28), tmp_path / "nothing.here", None)


def test_the_preview_of_a_live_query_counts_its_active_scopes(definitions):
    live = pytest.importorskip("support.live")
    old, new = definitions
    with live.site() as here:
        app = parse(OLD)
        here.put("1.parquet", check(app).topics[0], readings())
        live.Stream(here.live(app, sink=print)).run()
        assert forecast(old, new(23), here.checkpoint, None) == {"Warm": "2 stay so"}
        assert forecast(old, new(28), here.checkpoint, None) == {"Warm": "2 are as the files say"}


def test_the_preview_counts_muted_conditions_and_levels(tmp_path):
    text = (
        "topic T (value float)\nstate Warm on T [value > 25; value < 22] per source\n"
        "levels Heat on T: low [value > 25; value < 22], high [value > {}; value < 27] per source\n"
        "state Two = at least {} of Warm until fewer than 1\n"
        'mute Two during "Sat 00:00 – Mon 06:00"\n'
    )
    old, new, state = (tmp_path / name for name in ("old.hf", "new.hf", "state"))
    old.write_text(text.format(35, 2))
    new.write_text(text.format(30, 3))
    engine = Engine(old.read_text())
    for source, value in (("a", 40.0), ("b", 26.0)):
        engine.push(Event("T", 1_700_000_000_000_000, source, {"value": value}))
    state.write_bytes(engine.snapshot())
    assert forecast(old, new, state, None) == {
        "Warm": "2 stay so", "Heat": "1 stay so, 1 become unknown", "Two": "1 become unknown",
    }  # fmt: skip
