from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.files.reading import Reading
from holdfast.files.times import LATEST, NeedsUnit, to_instants, to_utc
from holdfast.model.instant import from_datetime, parse_instant

ZONES = [
    UTC,
    timezone(timedelta(hours=5, minutes=30)),
    ZoneInfo("Europe/Zurich"),
    ZoneInfo("America/St_Johns"),
]
EPOCH = datetime(1970, 1, 1)


def instants(values, type=None, **options):
    column, bad, *_ = to_instants(pa.array(values, type), Reading((), **options))
    return [None if b else v for v, b in zip(column.cast(pa.int64()).to_pylist(), bad, strict=True)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2007-09-13", "2007-09-13T00:00:00"),
        ("2007-09-13 13:35", "2007-09-13T13:35:00"),
        ("2007-09-13T13:35:01.5", "2007-09-13T13:35:01.500000"),
        ("2007-09-13T13:35:01.123456789Z", "2007-09-13T13:35:01.123456"),
        ("2007-09-13t13:35:01z", "2007-09-13T13:35:01"),
        ("20070913T133501", "2007-09-13T13:35:01"),
        ("2007-09-13T13:35:01+02:00", "2007-09-13T11:35:01"),
        ("2007-09-13 13:35:01-0330", "2007-09-13T17:05:01"),
        ("2007-09-13 13:35:01 UTC", "2007-09-13T13:35:01"),
        ("  2007-09-13 13:35:01  ", "2007-09-13T13:35:01"),
    ],
)
def test_iso_times_are_read_alone_and_among_other_formats(text, meant):
    expected = parse_instant(meant + "+00:00")
    assert instants([text]) == [expected]
    mixed = ["2000-01-01", text, "2000-01-01T00:00:00Z", "never", None, text]
    found = instants(mixed)
    assert (found[1], found[5], found[3], found[4]) == (expected, expected, None, None)


@pytest.mark.parametrize(
    "text",
    ["1189690500", "20070913", "1700010112345", "2007-13-01", "2007-9-13", "25:00", "2007-09-13x13:35"],
)
def test_text_that_is_not_iso_is_not_guessed(text):
    assert instants([text, "2007-09-13"]) == [None, parse_instant("2007-09-13")]


# Text does not define which of two equal local times is meant when clocks go back; the first is (fold=0).
WRITTEN = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
    lambda instant: instant.replace(fold=0)
)


@given(st.lists(WRITTEN), st.sampled_from(ZONES))
def test_naive_times_are_read_as_python_reads_them(moments, zone):
    expected = [from_datetime(instant, zone) for instant in moments]
    assert instants([m.isoformat() for m in moments], pa.string(), zone=zone) == expected
    assert instants(moments, pa.timestamp("us"), zone=zone) == expected


@pytest.mark.parametrize("zone", ZONES[2:])
def test_every_minute_of_a_year_with_clock_changes_is_read_as_python_reads_it(zone):
    first = datetime(2007, 1, 1, 0, 0, 30)
    moments = [first + timedelta(minutes=7 * i) for i in range(365 * 24 * 60 // 7)]
    local = np.array([(m - EPOCH) // timedelta(microseconds=1) for m in moments], np.int64)
    assert to_utc(local, zone).tolist() == [from_datetime(m, zone) for m in moments]


def test_an_ambiguous_local_time_is_the_earlier_and_a_skipped_one_keeps_the_old_offset():
    zone = ZoneInfo("Europe/Zurich")
    assert instants(["2007-10-28 02:30", "2007-03-25 02:30"], zone=zone) == [
        parse_instant("2007-10-28T00:30Z"),
        parse_instant("2007-03-25T01:30Z"),
    ]


LOCAL = ["2007-10-28 02:30", "2007-10-28 02:00", "2007-10-28 03:00", "2007-10-28 01:59:59.999999",
         "2007-03-25 02:30", "2007-03-25 03:00", None, "2007-06-01 12:00"]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (LOCAL, {}),
        ([*LOCAL, "never", "2007-10-28T02:30+01:00"], {}),
        (
            [text and text.split(".")[0].ljust(19, ":")[:16] for text in LOCAL],
            {"time_format": "%Y-%m-%d %H:%M"},
        ),
        ([text and datetime.fromisoformat(text) for text in LOCAL], {}),
        ([*LOCAL, "1193535000"], {"time_unit": "s"}),
    ],
    ids=["iso", "mixed", "format", "timestamps", "numbers"],
)
def test_ambiguous_and_skipped_local_times_are_counted(values, options):
    column = pa.array(values)
    found = to_instants(column, Reading((), zone=ZoneInfo("Europe/Zurich"), **options))
    assert (found.twice, found.never) == (2, 1)
    plain = to_instants(column, Reading((), **options))
    assert (plain.twice, plain.never) == (0, 0)


def test_an_ambiguous_half_hour_is_counted():
    times = [f"2007-03-25 {h:02}:{m:02}" for h in range(4) for m in range(0, 60, 10)]
    found = to_instants(pa.array(times), Reading((), zone=ZoneInfo("Australia/Lord_Howe")))
    assert (found.twice, found.never) == (3, 0)


@given(st.lists(st.integers(-(2**62), 2**62)))
def test_nanoseconds_are_cut_to_the_previous_microsecond(ticks):
    assert instants(ticks, pa.timestamp("ns", "UTC")) == [t // 1000 for t in ticks]
    assert instants(ticks, pa.int64(), time_unit="ns") == [t // 1000 for t in ticks]


def test_numbers_count_in_the_unit():
    at = parse_instant("2007-09-13T13:35:00Z")
    assert instants([1189690500], time_unit="s") == [at]
    assert instants([1189690500.25, float("nan")], time_unit="s") == [at + 250_000, None]
    assert instants([1189690500123.0], time_unit="ms") == [at + 123_000]
    assert instants(["1189690500", "1189690500.25", "1e9", "2007-09-13", "x"], time_unit="s") == [
        at, at + 250_000, 10**15, parse_instant("2007-09-13"), None,
    ]  # fmt: skip
    with pytest.raises(NeedsUnit):
        instants([1189690500])


def test_times_beyond_the_calendar_are_unreadable():
    assert instants([2**62, -(2**62), 0], pa.int64(), time_unit="s") == [None, None, 0]
    assert instants([2**62, -(2**62), 0], pa.timestamp("us")) == [None, None, 0]
    assert instants([LATEST, LATEST + 1], pa.timestamp("us")) == [LATEST, None]
    assert instants([1e300, float("inf"), 0.0], time_unit="s") == [None, None, 0]


def test_dates_are_midnights_in_the_zone():
    assert instants([date(2007, 9, 13)], zone=ZONES[1]) == [parse_instant("2007-09-12T18:30Z")]


def test_a_time_format_reads_what_python_reads():
    text = ["25-Feb-2008 0:22:46", "31-Feb-2008 0:22:46", ""]
    assert instants(text, time_format="%d-%b-%Y %H:%M:%S") == [
        parse_instant("2008-02-25T00:22:46"),
        None,
        None,
    ]
    zoned = instants(["2008-02-25 0100 +0100"], time_format="%Y-%m-%d %H%M %z", zone=ZONES[3])
    assert zoned == [parse_instant("2008-02-25T00:00Z")]
