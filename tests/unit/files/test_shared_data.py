"""Real measurements, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.files.find import find
from holdfast.files.plan import closed_parts
from holdfast.files.read import inspect, read
from holdfast.files.reading import Reading
from holdfast.files.sort import Sorter
from holdfast.files.tally import Rejects, Tally
from holdfast.model.batch import concatenate
from holdfast.model.instant import parse_instant
from holdfast.model.topic import Attribute, Topic

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data (../shared/data) is not here")


def table(path, topic, **options):
    tally = Tally()
    reading = Reading((topic,), **options)
    (file,) = find([str(DATA / path)])
    inspect(file, reading)
    whole = concatenate(batch for _, batch in read(file, reading, tally, Rejects(strict=True)))
    assert (tally.used, tally.rows) == (len(whole), len(whole))
    assert tally.bytes == pytest.approx(file.size, rel=0.01)
    return whole


def floats(*names):
    return tuple(Attribute(name, "float") for name in names)


def test_rooms_of_the_berkeley_data_are_read():
    whole = table(
        "berkeley-sdh-rooms/rooms.parquet",
        Topic("Room", floats("co2", "temperature")),
        rename={"source": "room"},
    )
    assert len(whole) == 479_007
    assert len(whole["source"].unique()) == 45
    assert whole["time"][0].value == parse_instant("2013-08-23T23:04:00Z")


def test_stations_of_st_bernard_have_numbers_as_names():
    topic = Topic("Weather", floats("ambient_temp", "wind_speed"))
    whole = table("sensorscope-stbernard/stbernard.parquet", topic, rename={"source": "station"})
    assert len(whole) == 588_524
    assert {"5", "19"} <= set(whole["source"].unique().to_pylist())


def test_roads_of_aarhus_are_sorted_and_planned():
    topic = Topic("Traffic", (Attribute("avg_speed", "float"), Attribute("vehicle_count", "int")))
    reading = Reading((topic,), {"source": "report_id"})
    files = find([str(DATA / "aarhus-traffic" / "traffic-2014-08.parquet")])
    parts = closed_parts(files, reading)
    assert sum(part.rows for part in parts) == 3_607_772
    with Sorter(1 << 30) as sorter:
        for part in parts:
            for piece in part.pieces:
                for _, batch in read(piece.file, reading, Tally(), Rejects(), row_groups=piece.row_groups):
                    sorter.add(batch)
        last, rows = None, 0
        for batch in sorter.drain():
            first = batch["time"][0].value
            assert last is None or last <= first
            last, rows = batch["time"][-1].value, rows + len(batch)
    assert rows == 3_607_772


def test_sensors_of_the_mavlab_data_have_separate_date_and_time():
    topic = Topic("Sensor", (Attribute("on", "bool"), Attribute("where", "text")))
    whole = table(
        "smarthome-discrete/mavlab_2003_march.csv",
        topic,
        rename={"time": "Date+Time AM/PM", "source": "SensorID", "on": "Value", "where": "Location"},
        time_format="%m/%d/%Y %I:%M:%S %p",
    )
    assert whole["time"][0].value == parse_instant("2003-03-01T22:10:10Z")
    assert whole["on"][:2].to_pylist() == [True, False]
    assert whole["where"][0].as_py() == "Studio E"
