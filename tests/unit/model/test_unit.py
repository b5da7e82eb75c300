"""Units: conversions, products, and a table whose every row is well-formed."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.unit import NONE, UNITS, conversion, convert, nearest, product, quotient

units = st.sampled_from(list(UNITS.values()))


@pytest.mark.parametrize(
    ("value", "unit", "expected", "to"),
    [
        (77, "°F", 25.0, "°C"),
        (25, "°C", 77.0, "°F"),
        (-40, "°C", -40.0, "°F"),
        (0, "K", -273.15, "°C"),
        (0, "°C", 273.15, "K"),
        (32, "degF", 273.15, "K"),
        (36, "km/h", 10.0, "m/s"),
        (100, "kmh", 100.0, "km/h"),
        (60, "mph", 96.56064, "km/h"),
        (1, "kn", 1.852, "km/h"),
        (1, "mi", 5280.0, "ft"),
        (1, "ft", 30.48, "cm"),
        (1, "h", 3_600_000.0, "ms"),
        (1, "day", 86_400.0, "s"),
        (1, "us", 1e-6, "s"),
        (1013.25, "hPa", 101.325, "kPa"),
        (1, "bar", 1000.0, "mbar"),
        (1, "%", 10_000.0, "ppm"),
        (1, "ppm", 1000.0, "ppb"),
        (1, "kWh", 3.6e6, "J"),
        (1500, "mA", 1.5, "A"),
        (0.1, "km", 100.0, "m"),
        (2.5, "m", 2.5, "m"),
        (50, "µg/m³", 0.05, "mg/m³"),
        (50, "ug/m3", 5e-5, "g/m³"),
        (1.2, "kg/m3", 1200.0, "g/m3"),
        (1, "m³/h", 1000 / 60, "L/min"),
        (3.6, "m3/h", 1.0, "L/s"),
        (1, "m³", 1000.0, "L"),
        (2, "kVA", 2000.0, "VA"),
        (3, "kvar", 3000.0, "var"),
        (3000, "rpm", 50.0, "Hz"),
        (400, "ppmv", 400.0, "ppm"),
        (1, "Mbit/s", 1e6, "bit/s"),
    ],
)
def test_known_conversions_are_exact(value, unit, expected, to):
    assert convert(value, UNITS[unit], UNITS[to]) == pytest.approx(expected, rel=1e-15)


def test_exact_conversions_have_no_rounding_error():
    assert convert(77, UNITS["°F"], UNITS["°C"]) == 25.0
    assert convert(36, UNITS["km/h"], UNITS["m/s"]) == 10.0
    assert convert(3, UNITS["ft"], UNITS["cm"]) == 91.44


@given(st.floats(-1e6, 1e6), units, units)
def test_converting_there_and_back_is_exact(value, unit, other):
    if unit.dimension == other.dimension:
        scale, shift = conversion(unit, other)
        back, shift_back = conversion(other, unit)
        assert (Fraction(value) * scale + shift) * back + shift_back == Fraction(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_stays_infinite(value):
    assert convert(value, UNITS["°F"], UNITS["°C"]) == value


def test_nan_stays_missing():
    assert math.isnan(convert(math.nan, UNITS["km"], UNITS["m"]))


def test_units_of_different_dimensions_are_not_converted():
    with pytest.raises(AssertionError):
        convert(1, UNITS["°C"], UNITS["m"])


@pytest.mark.parametrize("name", UNITS)
def test_every_row_of_the_table_is_well_formed(name):
    unit = UNITS[name]
    assert UNITS[unit.name] == unit, "the first name of a row is the unit's own"
    assert unit.factor > 0
    assert list(unit.dimension) == sorted(unit.dimension)
    assert all(power for _, power in unit.dimension)
    assert not unit.offset or unit.dimension == (("temperature", 1),)


def test_each_dimension_has_a_unit_of_factor_one():
    bases = {unit.dimension for unit in UNITS.values() if unit.factor == 1}
    assert {unit.dimension for unit in UNITS.values()} - bases <= {NONE}


@pytest.mark.parametrize(
    ("made", "known"),
    [
        (quotient(UNITS["km"], UNITS["h"]), "km/h"),
        (quotient(UNITS["mi"], UNITS["h"]), "mph"),
        (product(UNITS["V"], UNITS["A"]), "W"),
        (product(UNITS["mV"], quotient(UNITS["A"], UNITS["mV"])), "A"),
        (product(UNITS["W"], UNITS["h"]), "Wh"),
        (product(UNITS["kW"], UNITS["h"]), "kWh"),
        (quotient(UNITS["W"], product(UNITS["m"], UNITS["m"])), "W/m2"),
        (quotient(quotient(UNITS["kg"], UNITS["m"]), product(UNITS["s"], UNITS["s"])), "Pa"),
        (product(UNITS["%"], UNITS["%"]), None),
        (quotient(UNITS["km"], UNITS["km"]), None),
    ],
)
def test_products_and_quotients_have_the_dimension_of_the_unit_with_a_name(made, known):
    expected = UNITS[known].dimension if known else NONE
    assert made.dimension == expected
    if known:
        assert made.factor == UNITS[known].factor


def test_frequency_is_one_over_time():
    per_second = quotient(quotient(UNITS["s"], UNITS["s"]), UNITS["s"])
    assert (per_second.dimension, per_second.factor) == (UNITS["Hz"].dimension, 1)


def test_a_product_is_named_after_its_parts():
    assert product(UNITS["V"], UNITS["A"]).name == "V*A"
    assert quotient(UNITS["km"], UNITS["min"]).name == "km/min"


@given(units, units)
def test_multiplication_undoes_division_of_units(a, b):
    back = product(quotient(a, b), b)
    assert (back.dimension, back.factor) == (a.dimension, a.factor)


def test_differences_of_temperatures_have_no_offset():
    celsius = UNITS["°C"]
    assert convert(9, UNITS["°F"].difference, celsius.difference) == 5.0
    assert celsius.difference.name == "Δ°C"
    assert UNITS["m"].difference is UNITS["m"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("celsius", "°C"),
        ("Meters", "m"),
        ("m3/hr", "m3/h"),
        ("RPM", "rpm"),
        ("Mbps", "Mbit/s"),
        ("ug/m^3", "ug/m3"),
    ],
)
def test_the_nearest_known_unit_is_suggested_for_an_unknown_one(written, meant):
    assert nearest(written) == f"Did you mean '{meant}'?"
    assert nearest("furlongs") is None
