"""Radios: rates, powers, thresholds, and bit error rates by signal-to-noise ratio.

To add a radio, define a `Radio` from its data sheet and add it to `RADIOS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb, erfc, log10, sqrt

import numpy as np
import numpy.typing as npt

from ...model.instant import SECOND, Duration

Floats = npt.NDArray[np.float64]


def oqpsk(sinr: Floats) -> Floats:
    """Return the bit error rate of the 2.4 GHz PHY of 802.15.4: O-QPSK, 16 sequences of 32 chips.

    [IEEE 802.15.4-2006, E.4.1.8]  ``8/15 · 1/16 · Σ_{k=2}^{16} (-1)^k C(16,k) exp(20·SINR·(1/k - 1))``
    """
    k = np.arange(2, 17)
    signs = np.array([(-1) ** i * comb(16, i) for i in k], dtype=float)
    exponents = 20.0 * np.multiply.outer(np.asarray(sinr, dtype=float), 1.0 / k - 1.0)
    return np.clip(np.exp(exponents) @ signs * (8 / 15 / 16), 0.0, 0.5)


def tossim(sinr: Floats) -> Floats:
    """Return the bit error rate of TOSSIM's CC2420, fitted to measurements (``CpmModelC`` of TinyOS 2.1).

    TOSSIM defines the share of wrong symbols, ``½·erfc(0.9794·(SINR - 2.3851 dB)/√2)``, and receives a frame
    if 46 symbols are right. These are 23 bytes of two symbols each, so a bit has the error rate of a quarter
    symbol.
    """
    decibels = 10.0 * np.log10(np.maximum(np.asarray(sinr, dtype=float), 1e-9))
    wrong = [0.5 * erfc(0.9794 * (decibel - 2.3851) / sqrt(2)) for decibel in decibels.ravel()]
    bits = 1.0 - (1.0 - np.array(wrong)) ** 0.25
    return np.clip(bits, 0.0, 0.5).reshape(decibels.shape)


def ncfsk(sinr: Floats) -> Floats:
    """Return the bit error rate of non-coherent FSK with noise bandwidth equal to the bit rate:
    ``½·exp(-SINR/2)``.
    """
    return np.asarray(0.5 * np.exp(-0.5 * np.asarray(sinr, dtype=float)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Radio:
    """The parameters of a transceiver that affect the channel, as in its data sheet."""

    name: str
    bit_rate: int
    frequency_hz: float
    power_dbm: float
    noise_dbm: float
    """The noise in the receiver's bandwidth, including the receiver's own. The value is chosen so that the
    data sheet's sensitivity holds.
    """
    error_rate: Callable[[Floats], Floats]
    synchronise_db: float
    """The least signal-to-noise-and-interference ratio at which a receiver detects the start of a frame."""
    carrier_dbm: float
    """The channel is busy at or above this power in dBm, or while a frame is being received."""
    co_channel_db: float | None = None
    """The ratio by which a frame must exceed all simultaneous frames, in dB (the data sheet's co-channel
    rejection). With ``None``, bit errors alone decide, and other frames count as noise.
    """
    floor_dbm: float | None = None
    """A receive threshold in dBm. Weaker frames are not received, whatever the noise."""
    preamble: int = 5
    """The number of bytes after which a receiver is synchronised: preamble and start delimiter."""
    header: int = 1
    """The number of bytes between the preamble and the frame itself: its length field."""
    longest: int = 127
    """The length in bytes of the longest frame, without preamble and length field."""
    turnaround: Duration = 192
    sensing: Duration = 128
    """The time in µs for which the channel is sampled before it counts as clear."""

    def airtime(self, size: int) -> Duration:
        """Return the duration of a frame of ``size`` bytes (without preamble and length field), in µs."""
        return -(-(self.preamble + self.header + size) * 8 * SECOND // self.bit_rate)

    @property
    def synchronisation(self) -> Duration:
        """The duration of the preamble, in µs."""
        return -(-self.preamble * 8 * SECOND // self.bit_rate)


CC2420 = Radio(
    name="cc2420",
    bit_rate=250_000,
    frequency_hz=2.44e9,
    power_dbm=0.0,
    noise_dbm=-95.4,
    error_rate=oqpsk,
    synchronise_db=-3.0,
    carrier_dbm=-77.0,
    co_channel_db=3.0,
)
"""TI CC2420 (SWRS041C): 250 kbit/s, 0 dBm, sensitivity -95 dBm at 1 % lost frames of 20 bytes,
clear-channel threshold -77 dBm or a frame being received (mode 3), turnaround 192 µs, co-channel
rejection -3 dB: a frame survives another one if it is 3 dB stronger.
"""

CC2420_TOSSIM = replace(
    CC2420, name="cc2420-tossim", error_rate=tossim, noise_dbm=-100.94, synchronise_db=0.0, co_channel_db=None
)
"""CC2420 as TOSSIM models it: one curve for noise and interference, with no reception below 3 dB. The noise
is chosen so that the data sheet's sensitivity holds.
"""

CC1000 = Radio(
    name="cc1000",
    bit_rate=38_400,
    frequency_hz=868e6,
    power_dbm=5.0,
    noise_dbm=-106.95,
    error_rate=ncfsk,
    synchronise_db=7.0,
    carrier_dbm=-96.0,
    preamble=10,
    longest=255,
    turnaround=250,
    sensing=1_000,
)
"""TI CC1000 (SWRS048A): 38.4 kbit/s FSK at 868 MHz, 5 dBm, sensitivity -96 dBm (one bit error in 1000; the
value in the thesis on SPS), turnaround 250 µs.
"""

CC1000_SPS = replace(CC1000, name="cc1000-sps", floor_dbm=-84.0)
"""CC1000 as configured in SWANS by the thesis on SPS: frames below -84 dBm are not received [F81]."""

RADIOS = {radio.name: radio for radio in (CC2420, CC2420_TOSSIM, CC1000, CC1000_SPS)}


def milliwatts(dbm: float) -> float:
    """Convert dBm to mW.

    >>> milliwatts(0), milliwatts(-30)
    (1.0, 0.001)
    """
    return 10.0 ** (dbm / 10.0)


class ErrorTable:
    """A table of the log of the probability that a bit is correct, by SINR in steps of 1/20 dB, without
    interpolation.

    An error rate below 10^-12 counts as zero, so that a frame on a good link needs no random number.
    """

    LOWEST, HIGHEST, STEPS = -20.0, 40.0, 20

    __slots__ = ("_per_us",)

    def __init__(self, radio: Radio) -> None:
        decibels = np.arange(self.LOWEST, self.HIGHEST, 1 / self.STEPS) + 0.5 / self.STEPS
        wrong = radio.error_rate(10.0 ** (decibels / 10.0))
        wrong[wrong < 1e-12] = 0.0
        self._per_us: list[float] = (np.log1p(-wrong) * radio.bit_rate / SECOND).tolist()

    def per_us(self, sinr: float) -> float:
        """Return the log of the probability that 1 µs of a signal is received correctly."""
        if sinr <= 0.01:
            return self._per_us[0]
        index = int((10.0 * log10(sinr) - self.LOWEST) * self.STEPS)
        return self._per_us[index] if index < len(self._per_us) else 0.0
