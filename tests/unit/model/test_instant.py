"""Instants and durations as text and back."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.model.instant import (
    BEGINNING,
    DAY,
    HOUR,
    MINUTE,
    NEVER,
    SECOND,
    from_datetime,
    instant,
    parse_instant,
    show_duration,
    show_instant,
)

FIRST = from_datetime(datetime.min.replace(tzinfo=UTC))
LAST = from_datetime(datetime.max.replace(tzinfo=UTC))


@given(st.integers(FIRST, LAST))
def test_a_printed_instant_is_parsed_back(at):
    assert parse_instant(show_instant(at)) == at


@given(st.datetimes())
def test_an_instant_is_printed_as_by_the_standard_library(instant):
    shown = show_instant(from_datetime(instant))
    assert shown == instant.isoformat(timespec="microseconds") + "Z"


@given(st.integers(FIRST, LAST), st.integers(FIRST, LAST))
def test_texts_of_instants_sort_like_instants(a, b):
    assert (show_instant(a) < show_instant(b)) == (a < b)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (-DAY, "1969-12-31T00:00:00.000000Z"),
        (1_189_690_500_000_000, "2007-09-13T13:35:00.000000Z"),
        (FIRST, "0001-01-01T00:00:00.000000Z"),
        (LAST, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_known_instants_have_known_texts(at, text):
    assert show_instant(at) == text
    assert parse_instant(text) == at


@pytest.mark.parametrize("at", [FIRST - 1, LAST + 1, NEVER, BEGINNING])
def test_instants_beyond_the_years_1_to_9999_cannot_be_printed(at):
    with pytest.raises(OverflowError):
        show_instant(at)


@pytest.mark.parametrize(
    "text",
    ["2007-09-13T13:35:00Z", " 2007-09-13 13:35 ", "2007-09-13T15:35:00+02:00", "20070913T133500"],
)
def test_instants_parse_in_other_notations(text):
    assert parse_instant(text) == 1_189_690_500_000_000


def test_a_naive_time_is_interpreted_in_the_given_zone():
    east = timezone(timedelta(hours=2))
    assert parse_instant("1970-01-01T02:00", east) == 0
    assert parse_instant("1970-01-01T02:00Z", east) == 2 * HOUR  # it has its own offset
    summer = ZoneInfo("Europe/Berlin")
    assert parse_instant("2007-07-01T02:00", summer) == parse_instant("2007-07-01T00:00Z")
    assert parse_instant("2007-01-01T01:00", summer) == parse_instant("2007-01-01T00:00Z")


def test_an_instant_parses_in_a_given_format():
    assert parse_instant("13/09/2007 13.35", format="%d/%m/%Y %H.%M") == 1_189_690_500_000_000
    with pytest.raises(ValueError, match="does not match"):
        parse_instant("2007-09-13", format="%d/%m/%Y")


@pytest.mark.parametrize("text", ["", "noon", "12:00", "2007-02-30", "99999-01-01"])
def test_an_invalid_instant_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_instant(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0 us"),
        (1, "1 us"),
        (999, "999 us"),
        (1_000, "1 ms"),
        (1_500, "1500 us"),
        (30 * SECOND, "30 s"),
        (90 * SECOND, "90 s"),
        (2 * MINUTE, "2 min"),
        (HOUR, "1 h"),
        (36 * HOUR, "36 h"),
        (48 * HOUR, "2 d"),
    ],
)
def test_a_duration_is_printed_in_its_largest_whole_unit(length, text):
    assert show_duration(length) == text


@given(st.integers(0, 10**15))
def test_a_printed_duration_is_parsed_back(length):
    from holdfast.lang.grammar import parse_duration

    assert parse_duration(show_duration(length)) == length


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("yesterday", "ISO 8601"),
        ("2026-13-01", "ISO 8601"),
        (None, "ISO 8601"),
        (date(2026, 1, 1), "write a datetime"),
        (1751371200, "it counts seconds since 1970: an instant is that times 1_000_000"),
        (1751371200.5, "it counts seconds"),
        ("1751371200", "it counts seconds"),
        (1751371200123, "it counts milliseconds since 1970: an instant is that times 1_000"),
        (1751371200123456, "a number that is one is used as it is"),
        (float("nan"), "whole microseconds"),
        (10**400, "ISO 8601"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), "not in the years 1 to 9999"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_an_invalid_time_is_refused_with_the_accepted_forms(when, words):
    with pytest.raises(UsageError, match=words):
        instant(when)
