"""Platforms: currents of radio and processor in each state [D36], and memory sizes.

The currents of MicaZ and TelosB are those of the thesis (tables 7 and 8). Transmit currents below 0 dBm come
from the CC2420 data sheet (SWRS041, "output power programming"). Mica2 uses PowerTOSSIM's table (Shnayder et
al., SenSys 2004). ``ProcessingTimes`` is an estimate of the time that TinyOS needs for a frame over SPI,
because the thesis gives no such number. To add a platform, add it to `PLATFORMS` or write a TOML file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ...errors import InputError, UsageError, did_you_mean
from ...model.instant import Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class RadioCurrents:
    """The radio's current in mA in each state. ``transmit`` has pairs of output power (dBm) and current."""

    receive: float
    transmit: tuple[tuple[float, float], ...]
    idle: float
    sleep: float

    def at(self, power_dbm: float) -> float:
        """Return the transmit current in mA, interpolated linearly between two rows of the table."""
        rows = sorted(self.transmit)
        return float(np.interp(power_dbm, [dbm for dbm, _ in rows], [ma for _, ma in rows]))


@dataclass(frozen=True, slots=True, kw_only=True)
class McuCurrents:
    """The processor's current in mA in each state."""

    active: float
    idle: float
    sleep: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingTimes:
    """The time in µs for which the processor is active: for a frame sent, a frame received, and a timer."""

    send: Duration = 1_500
    receive: Duration = 1_500
    timer: Duration = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A type of node with its currents, voltage and memory. The energy of a state is E = Δt·V·I. [D35]"""

    name: str
    radio: RadioCurrents
    mcu: McuCurrents
    volts: float = 3.0
    work: ProcessingTimes = ProcessingTimes()
    rom_bytes: int = 0
    ram_bytes: int = 0


_CC2420 = (
    (0.0, 17.4), (-1.0, 16.5), (-3.0, 15.2), (-5.0, 13.9), (-7.0, 12.5), (-10.0, 11.2), (-15.0, 9.9),
    (-25.0, 8.5),
)  # fmt: skip

MICAZ = Platform(
    name="micaz",
    radio=RadioCurrents(receive=19.7, transmit=_CC2420, idle=0.020, sleep=0.001),
    mcu=McuCurrents(active=8.0, idle=4.0, sleep=0.009),
    rom_bytes=128 * 1024,
    ram_bytes=4 * 1024,
)
TELOSB = Platform(
    name="telosb",
    radio=RadioCurrents(receive=23.0, transmit=_CC2420, idle=0.021, sleep=0.001),
    mcu=McuCurrents(active=1.8, idle=0.0545, sleep=0.0051),
    rom_bytes=48 * 1024,
    ram_bytes=10 * 1024,
)
MICA2 = Platform(
    name="mica2",
    radio=RadioCurrents(
        receive=7.0,
        transmit=((-20.0, 3.7), (-8.0, 6.5), (0.0, 8.5), (4.0, 11.6), (6.0, 13.8), (10.0, 21.5)),
        idle=7.0,
        sleep=0.0002,
    ),
    mcu=McuCurrents(active=8.0, idle=3.2, sleep=0.110),
    rom_bytes=128 * 1024,
    ram_bytes=4 * 1024,
)

PLATFORMS = {platform.name: platform for platform in (MICAZ, TELOSB, MICA2)}


def platform(name: str) -> Platform:
    """Find a platform by name, or read it from a ``.toml`` file."""
    if name.endswith(".toml"):
        return read_platform(Path(name))
    if name not in PLATFORMS:
        hint = did_you_mean(name, PLATFORMS) or f"There is {', '.join(PLATFORMS)}, or a .toml file."
        raise UsageError(f"no platform named '{name}'. {hint}")
    return PLATFORMS[name]


def read_platform(path: Path) -> Platform:
    """Read a platform from a TOML file with the fields of `Platform`."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this is not TOML: {error}") from None
    try:
        found = msgspec.convert({"name": path.stem} | document, Platform)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}") from None
    return validate(found, str(path))


def validate(platform: Platform, where: str) -> Platform:
    """Return the platform; raise an `InputError` if a value is out of range."""
    radio, mcu = platform.radio, platform.mcu
    currents = {
        "radio.receive": radio.receive, "radio.idle": radio.idle, "radio.sleep": radio.sleep,
        "mcu.active": mcu.active, "mcu.idle": mcu.idle, "mcu.sleep": mcu.sleep,
        **{f"radio.transmit at {dbm:g} dBm": ma for dbm, ma in radio.transmit},
    }  # fmt: skip
    if not radio.transmit:
        raise InputError(f"{where}: radio.transmit is empty; give [[dBm, mA], …], one pair at least")
    for name, milliamperes in currents.items():
        if not 0 <= milliamperes < 10_000:
            raise InputError(f"{where}: {name} is {milliamperes} mA; a current is from 0 to 10,000 mA")
    if not 0 < platform.volts < 100:
        raise InputError(f"{where}: volts is {platform.volts}; it is above 0 and below 100")
    if min(platform.work.send, platform.work.receive, platform.work.timer) < 0:
        raise InputError(f"{where}: work is in microseconds and not negative")
    return platform
