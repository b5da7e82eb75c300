"""Tables of currents: built in, and from a file."""

from __future__ import annotations

import pytest

from holdfast.errors import InputError, UsageError
from holdfast.network.sim.platforms import MICAZ, TELOSB, Platform, platform, read_platform

FILE = """
volts = 3.3
rom_bytes = 262144
ram_bytes = 32768
radio = {receive = 24.0, transmit = [[0, 24.0], [7, 31.0]], idle = 0.5, sleep = 0.0001}
mcu = {active = 13.0, idle = 6.0, sleep = 0.0013}
work = {send = 400}
"""


def test_the_currents_are_those_of_the_thesis():
    """[D36] Tables 7 and 8."""
    assert (MICAZ.radio.receive, MICAZ.radio.at(0), MICAZ.radio.idle, MICAZ.radio.sleep) == (
        19.7,
        17.4,
        0.02,
        0.001,
    )
    assert (TELOSB.radio.receive, TELOSB.radio.at(0), TELOSB.radio.idle, TELOSB.radio.sleep) == (
        23,
        17.4,
        0.021,
        0.001,
    )
    assert (MICAZ.mcu.active, MICAZ.mcu.idle, MICAZ.mcu.sleep) == (8, 4, 0.009)
    assert (TELOSB.mcu.active, TELOSB.mcu.idle, TELOSB.mcu.sleep) == (1.8, 0.0545, 0.0051)
    assert (TELOSB.rom_bytes, TELOSB.ram_bytes, TELOSB.volts) == (48 * 1024, 10 * 1024, 3.0)


def test_transmitting_at_low_power_draws_less():
    assert MICAZ.radio.at(-25) == 8.5
    assert MICAZ.radio.at(-2) == pytest.approx((16.5 + 15.2) / 2)
    assert MICAZ.radio.at(-40) == 8.5


def test_a_platform_is_given_by_name_or_by_file(tmp_path):
    assert platform("telosb") is TELOSB
    path = tmp_path / "zigduino.toml"
    path.write_text(FILE)
    found = platform(str(path))
    assert isinstance(found, Platform)
    assert (found.name, found.volts, found.radio.at(3.5), found.work.send) == ("zigduino", 3.3, 27.5, 400)


def test_an_unknown_platform_is_reported_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"no platform named 'TelosB'\. Did you mean 'telosb'"):
        platform("TelosB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("volts = ", "this is not TOML"),
        (FILE.replace("receive = 24.0, ", ""), r"missing required field `receive` - at `\$.radio`"),
        (FILE.replace("13.0", '"13 mA"'), r"Expected `float`, got `str` - at `\$.mcu.active`"),
        (FILE.replace("13.0", "-13.0"), "mcu.active is -13.0 mA; a current is from 0 to 10,000 mA"),
        (FILE.replace("13.0", "nan"), "mcu.active is nan mA"),
        (FILE.replace("[7, 31.0]", "[7, -31.0]"), "radio.transmit at 7 dBm is -31.0 mA"),
        (FILE.replace("[[0, 24.0], [7, 31.0]]", "[]"), "radio.transmit is empty"),
        (FILE.replace("3.3", "0"), "volts is 0.0; it is above 0"),
        (FILE.replace("400", "-4"), "work is in microseconds and not negative"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"mine.toml: .*{message}"):
        read_platform(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: there is no such file"):
        platform(str(tmp_path / "none.toml"))
