"""A quantity is written with its unit."""

from __future__ import annotations

import pytest

from holdfast.model.quantity import DURATION, ENERGY, LENGTH, POWER, SHARE


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (DURATION, "2 s", 2_000_000),
        (DURATION, "1.5 ms", 1500),
        (DURATION, "0.1 us", 0),
        (DURATION, " 2min ", 120_000_000),
        (DURATION, "1e3 s", 1_000_000_000),
        (LENGTH, "14 m", 14.0),
        (LENGTH, ".5 km", 500.0),
        (ENERGY, "200 mJ", 0.2),
        (ENERGY, "1 Wh", 3600.0),
        (POWER, "-10 dBm", -10.0),
        (SHARE, "+50 ppm", 50.0),
    ],
)
def test_a_quantity_is_a_number_with_its_unit(quantity, text, value):
    found = quantity.read(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "given", ["2", "s", "2 m", "two s", "", "2 s s", "nan s", None, 2, 2.5, [2], "1e400 s"]
)
def test_an_invalid_duration_is_refused(given):
    with pytest.raises(ValueError, match=r"duration|too large"):
        DURATION.read(given)
