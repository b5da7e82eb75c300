"""Three models of links, as values: which nodes receive a signal, and how well.

``LogDistance`` gives each pair of nodes a received power. Reception follows from signal, noise and
interference, and frames are lost only to bit errors. ``UnitDisk`` receives every frame within a range unless
two signals overlap. ``Measured`` uses the share of frames that was measured for each link, and draws for each
frame whether it is received. The share also stands for the signal's strength: of two overlapping signals, one
survives if it is twice as strong (``CAPTURE_DB``). The first two models may also have a share for each link
(``quality``), drawn by the seed, for losses without a modelled cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10, pi
from typing import ClassVar

import numpy as np

from ...errors import UsageError
from ...model.quantity import Decibels, Metres
from ...model.space import Point
from .chance import derive_seed
from .frame import NodeId
from .radio import ErrorTable, Floats, Radio, milliwatts

CUT_OFF_DB = 10.0
"""Signals this far below the noise, in dB, are ignored. Each would raise the noise by at most 0.4 dB."""

CAPTURE_DB = 3.0
"""The ratio in dB by which a signal of ``UnitDisk`` or ``Measured`` must exceed other signals to survive
them. It is CC2420's co-channel rejection.
"""

LIGHT = 299_792_458.0


@dataclass(frozen=True, slots=True)
class Reception:
    """The reception of a signal of one node at another node."""

    node: NodeId
    power_mw: float
    per_us: float
    """The log of the probability that 1 µs of the signal is correct without interference."""
    quality: float = 1.0
    """The probability that a frame is received at all, where power alone does not decide."""
    decodable: bool = True
    """Whether the node can receive frames; otherwise the signal only interferes."""


@dataclass(frozen=True, slots=True)
class LogDistance:
    """A model of path loss: ``L(d) = L(1 m) + 10·n·log10(d) + X``, with ``X`` normal for each pair and
    constant in time.

    ``loss_at_1_m_db`` defaults to free space at the radio's frequency. ``X`` has the deviation
    ``shadowing_db`` and is the same in both directions. ``asymmetry_db`` is the deviation of a second part
    for each direction, which models differences of transmitters and receivers.
    """

    kind: ClassVar = "log-distance"
    exponent: float = 3.0
    shadowing_db: Decibels = 0.0
    asymmetry_db: Decibels = 0.0
    loss_at_1_m_db: Decibels | None = None
    quality: Shares = (1.0, 1.0)

    def __post_init__(self) -> None:
        _require_shares(self)
        for name in ("exponent", "shadowing_db", "asymmetry_db"):
            if not 0 <= getattr(self, name) <= 100:
                raise UsageError(f"LogDistance: {name} is {getattr(self, name)}; it is from 0 to 100")


@dataclass(frozen=True, slots=True)
class UnitDisk:
    """Nodes within ``range_m`` receive. Nodes within ``interference_m`` (default: the same range) are
    disturbed.
    """

    kind: ClassVar = "disk"
    range_m: Metres
    interference_m: Metres | None = None
    quality: Shares = (1.0, 1.0)

    def __post_init__(self) -> None:
        _require_shares(self)
        if not self.range_m > 0:
            raise UsageError(f"UnitDisk: range_m is {self.range_m}; it must be above 0")
        if self.interference_m is not None and self.interference_m < self.range_m:
            raise UsageError(
                f"UnitDisk: interference_m is {self.interference_m}, below range_m = {self.range_m}; "
                "what can be received disturbs as well"
            )


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured share of frames received on each link, by (sender, receiver). Other pairs have no link."""

    quality: Mapping[tuple[NodeId, NodeId], float]

    def __post_init__(self) -> None:
        for link, quality in self.quality.items():
            if not 0 <= quality <= 1:
                raise UsageError(f"Measured: the quality of link {link} is {quality}; it is from 0 to 1")


Shares = tuple[float, float]
"""The bounds of the share of frames received on a link, in each direction. The seed draws the share."""


def _require_shares(model: LogDistance | UnitDisk) -> None:
    low, high = model.quality
    if not 0 < low <= high <= 1:
        raise UsageError(
            f"{type(model).__name__}: quality is from {low} to {high}; shares are above 0, 1 at most, the "
            "smaller first"
        )


Propagation = LogDistance | UnitDisk | Measured


def receptions(
    model: Propagation, positions: Sequence[Point], radio: Radio, seed: int
) -> Iterator[list[Reception]]:
    """Yield, for each node in order, the receptions of its signal at the nodes in range."""
    for position in positions:
        if not all(map(isfinite, position)):
            raise UsageError(f"a node's position is {position}; coordinates are finite numbers of metres")
    places = np.array([(*p, 0.0)[:3] for p in positions], dtype=float).reshape(-1, 3)
    match model:
        case LogDistance():
            yield from _log_distance(model, places, radio, seed)
        case UnitDisk():
            yield from _unit_disk(model, places, seed)
        case Measured():
            yield from _from_shares(model, len(places))


def free_space_1m_db(frequency_hz: float) -> float:
    """Return the path loss in dB over the first metre in free space, by the formula of Friis.

    >>> round(free_space_1m_db(2.44e9), 1)
    40.2
    """
    return 20.0 * log10(4.0 * pi * frequency_hz / LIGHT)


def mean_power_dbm(model: LogDistance, radio: Radio, metres: Floats) -> Floats:
    """Return the mean received power in dBm at a distance; less than 1 m counts as 1 m."""
    loss = free_space_1m_db(radio.frequency_hz) if model.loss_at_1_m_db is None else model.loss_at_1_m_db
    return np.asarray(radio.power_dbm - loss - 10.0 * model.exponent * np.log10(np.maximum(metres, 1.0)))


def _log_distance(model: LogDistance, places: Floats, radio: Radio, seed: int) -> Iterator[list[Reception]]:
    """Yield, for each node, the receptions of its signal by path loss and shadowing."""
    table, noise = ErrorTable(radio), milliwatts(radio.noise_dbm)
    least = radio.noise_dbm + radio.synchronise_db
    if radio.floor_dbm is not None:
        least = max(least, radio.floor_dbm)
    key, every = derive_seed(seed, "shadowing"), np.arange(len(places))
    for i, place in enumerate(places):
        dbm = mean_power_dbm(model, radio, np.linalg.norm(places - place, axis=1))
        if model.shadowing_db:
            dbm = dbm + model.shadowing_db * _normal(key, np.minimum(i, every), np.maximum(i, every))
        if model.asymmetry_db:
            dbm = dbm + model.asymmetry_db * _normal(key + 1, np.full_like(every, i), every)
        in_range = np.flatnonzero((dbm >= radio.noise_dbm - CUT_OFF_DB) & (every != i))
        shares = _qualities(model.quality, seed, i, len(places))
        found = []
        for j, level in zip(in_range.tolist(), dbm[in_range].tolist(), strict=True):
            power = milliwatts(level)
            per_us = table.per_us(power / noise)
            found.append(Reception(j, power, per_us, shares[j], decodable=level >= least))
        yield found


def _qualities(shares: Shares, seed: int, sender: NodeId, nodes: int) -> list[float]:
    """Return, for each node, the share of frames from ``sender`` that it receives."""
    low, high = shares
    if low == high:
        return [low] * nodes
    every = np.arange(nodes)
    drawn, _ = _uniform(derive_seed(seed, "quality"), np.full_like(every, sender), every)
    return (low + (high - low) * drawn).tolist()


def _unit_disk(model: UnitDisk, places: Floats, seed: int) -> Iterator[list[Reception]]:
    """Yield, for each node, the receptions of its signal within fixed ranges."""
    reach = model.interference_m or model.range_m
    for i, place in enumerate(places):
        metres = np.linalg.norm(places - place, axis=1)
        shares = _qualities(model.quality, seed, i, len(places))
        yield [
            Reception(j, 1.0, 0.0, shares[j], decodable=bool(metres[j] <= model.range_m))
            for j in np.flatnonzero(metres <= reach).tolist()
            if j != i
        ]


def _from_shares(model: Measured, nodes: int) -> Iterator[list[Reception]]:
    found: list[list[Reception]] = [[] for _ in range(nodes)]
    for (sender, receiver), quality in sorted(model.quality.items()):
        if not (0 <= sender < nodes and 0 <= receiver < nodes):
            why = f"names a node that is not there; nodes are 0 to {nodes - 1}"
            raise UsageError(f"Measured: link ({sender}, {receiver}) {why}")
        if quality > 0 and sender != receiver:
            found[sender].append(Reception(receiver, quality, 0.0, quality))
    yield from found


def interference_rule(model: Propagation, radio: Radio) -> tuple[float, ErrorTable | None]:
    """Return the noise in mW and the table of bit errors; ``None`` where overlap alone destroys frames."""
    if isinstance(model, LogDistance):
        return milliwatts(radio.noise_dbm), ErrorTable(radio)
    return 0.0, None


def _normal(key: int, a: np.ndarray, b: np.ndarray) -> Floats:
    """Return a standard normal number for each pair, determined by key and pair."""
    first, second = _uniform(key, a, b)
    return np.asarray(np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * pi * second))


def _uniform(key: int, a: np.ndarray, b: np.ndarray) -> tuple[Floats, Floats]:
    """Return two uniform numbers between 0 and 1 for each pair, determined by key and pair."""
    with np.errstate(over="ignore"):
        pair = _mix(_mix(np.uint64(key % 2**64) + a.astype(np.uint64)) ^ b.astype(np.uint64))
        again = _mix(pair)
    first = ((pair >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
    second = ((again >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
    return first, second


def _mix(words: np.ndarray) -> np.ndarray:
    """Apply the mixing function of splitmix64 (Steele, Lea, Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
