"""Reception: path loss, disks, measured links; and the data sheets of the radios."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
import pytest

from holdfast.errors import UsageError
from holdfast.network.sim.propagation import (
    CUT_OFF_DB,
    LogDistance,
    Measured,
    UnitDisk,
    mean_power_dbm,
    receptions,
)
from holdfast.network.sim.radio import (
    CC1000,
    CC1000_SPS,
    CC2420,
    CC2420_TOSSIM,
    ErrorTable,
    milliwatts,
    ncfsk,
    oqpsk,
    tossim,
)

LINE = [(float(x), 0.0) for x in range(0, 200, 10)]


def receptions_by_node(model, positions=LINE, radio=CC2420, seed=1):
    return [{h.node: h for h in each} for each in receptions(model, positions, radio, seed)]


def receptions_of_first(model, positions, radio=CC2420):
    return {h.node: h for h in next(receptions(model, positions, radio, 1))}


def decibels(power_mw: float) -> float:
    return float(10 * np.log10(power_mw))


# Data sheets.


def test_the_cc2420_loses_one_frame_in_a_hundred_at_its_sensitivity():
    """SWRS041C: -95 dBm, frames of 20 bytes."""
    sinr = milliwatts(-95 - CC2420.noise_dbm)
    assert 1 - (1 - float(oqpsk(np.array(sinr)))) ** (8 * 20) == pytest.approx(0.01, rel=0.05)


def test_the_cc1000_has_one_wrong_bit_in_a_thousand_at_its_sensitivity():
    assert float(ncfsk(np.array(milliwatts(-96 - CC1000.noise_dbm)))) == pytest.approx(1e-3, rel=0.05)


def test_tossims_curve_keeps_the_sensitivity_and_its_frame_of_23_bytes():
    sinr = milliwatts(-95 - CC2420_TOSSIM.noise_dbm)
    assert 1 - (1 - float(tossim(np.array(sinr)))) ** (8 * 20) == pytest.approx(0.01, rel=0.05)
    wrong = 0.5 * erfc(0.9794 * (5 - 2.3851) / sqrt(2))
    assert (1 - float(tossim(np.array(milliwatts(5))))) ** (8 * 23) == pytest.approx((1 - wrong) ** 46)


@pytest.mark.parametrize("quality", [(0.0, 1.0), (0.9, 0.8), (0.5, 1.1)])
@pytest.mark.parametrize("model", [LogDistance, lambda **given: UnitDisk(10.0, **given)])
def test_impossible_shares_are_refused(model, quality):
    with pytest.raises(UsageError, match="shares are above 0, 1 at most, the smaller first"):
        model(quality=quality)


def test_frames_last_as_long_as_their_bits():
    assert CC2420.airtime(31) == (5 + 1 + 31) * 32  # 32 µs a byte
    assert CC2420.synchronisation == 160
    assert CC1000.airtime(31) == 8750  # 42 bytes at 208.33 µs, rounded up once
    assert CC1000.airtime(32) == 8959


@pytest.mark.parametrize("radio", [CC2420, CC1000], ids=lambda radio: radio.name)
def test_the_table_of_errors_is_the_formula(radio):
    table = ErrorTable(radio)
    for sinr_db in np.arange(-19.9, 39.9, 0.37):
        right = 1 - float(radio.error_rate(np.array(milliwatts(sinr_db))))
        bits = 1e6 / radio.bit_rate
        assert np.exp(table.per_us(milliwatts(sinr_db)) * bits) == pytest.approx(right, abs=0.004)
    assert table.per_us(1e9) == 0.0
    assert table.per_us(0.0) < -0.01


@pytest.mark.parametrize("error_rate", [oqpsk, ncfsk, tossim])
def test_a_stronger_signal_never_means_more_errors(error_rate):
    rates = error_rate(10 ** (np.arange(-30, 30, 0.1) / 10))
    assert (np.diff(rates) <= 1e-12).all()
    assert 0 <= rates.min() <= rates.max() <= 0.5


# Path loss.


def test_power_falls_by_the_exponent():
    model = LogDistance(3.0, loss_at_1_m_db=40)
    assert mean_power_dbm(model, CC2420, np.array([1.0, 10.0, 100.0])).tolist() == pytest.approx(
        [-40, -70, -100]
    )
    assert mean_power_dbm(model, CC2420, np.array([0.0, 0.5])).tolist() == pytest.approx([-40, -40])


def test_signals_far_below_the_noise_are_ignored_and_those_near_it_only_interfere():
    first = receptions_of_first(LogDistance(3.0), [(float(x), 0.0) for x in range(0, 400, 2)])
    levels = {node: decibels(h.power_mw) for node, h in first.items()}
    assert min(levels.values()) == pytest.approx(CC2420.noise_dbm - CUT_OFF_DB, abs=0.3)
    for node, h in first.items():
        assert h.decodable == (levels[node] >= CC2420.noise_dbm + CC2420.synchronise_db)
    assert {h.decodable for h in first.values()} == {True, False}


def test_a_receive_threshold_keeps_weak_frames_out():
    """[F81] The thesis on SPS receives nothing below -84 dBm."""
    places = [(float(x), 0.0) for x in range(0, 2000, 5)]

    def reach(radio):
        received = receptions_of_first(LogDistance(3.0), places, radio)
        return max(5 * node for node, h in received.items() if h.decodable)

    loss = 31.2  # free space at 868 MHz, first metre
    assert reach(CC1000_SPS) == pytest.approx(10 ** ((5 - loss + 84) / 30), rel=0.07)
    assert reach(CC1000) > 2 * reach(CC1000_SPS)


def test_shadowing_is_symmetric_by_default():
    plain, shadowed = (
        receptions_by_node(LogDistance(3.0)),
        receptions_by_node(LogDistance(3.0, shadowing_db=6)),
    )
    apart = [
        decibels(shadowed[a][b].power_mw) - decibels(plain[a][b].power_mw)
        for a in range(8) for b in range(8) if a != b
    ]  # fmt: skip
    assert 3 < np.std(apart) < 9
    assert all(shadowed[a][b].power_mw == shadowed[b][a].power_mw for a in range(5) for b in range(a))
    asymmetric = receptions_by_node(LogDistance(3.0, shadowing_db=6, asymmetry_db=2))
    assert all(asymmetric[a][b].power_mw != asymmetric[b][a].power_mw for a in range(5) for b in range(a))


def test_shadowing_is_normal_and_depends_only_on_the_pair():
    places = [(float(i % 40), float(i // 40)) for i in range(1600)]
    model = LogDistance(0.0, shadowing_db=1.0, loss_at_1_m_db=0)
    found = np.array([decibels(h.power_mw) for h in next(receptions(model, places, CC2420, 3))])
    assert abs(found.mean()) < 0.1
    assert found.std() == pytest.approx(1.0, rel=0.05)
    assert np.mean(np.abs(found) < 1) == pytest.approx(0.683, abs=0.05)
    few = next(receptions(model, places[:10], CC2420, 3))
    assert [decibels(h.power_mw) for h in few] == found[:9].tolist()  # more nodes change nothing for these
    assert next(receptions(model, places[:10], CC2420, 4)) != few


# The other two.


def test_a_disk_receives_within_its_range_and_interferes_beyond():
    (first, *_) = receptions_by_node(UnitDisk(35.0, 55.0))
    assert {node: h.decodable for node, h in first.items()} == {1: True, 2: True, 3: True, 4: False, 5: False}
    (first, *_) = receptions_by_node(UnitDisk(30.0), [(0, 0, 0), (0, 0, 30), (0, 1, 30)])
    assert list(first) == [1]


def test_measured_links_have_their_measured_quality():
    found = receptions_by_node(Measured({(0, 1): 0.75, (1, 0): 0.25, (1, 2): 0.0}), LINE[:3])
    assert [list(each) for each in found] == [[1], [0], []]
    assert (found[0][1].quality, found[1][0].quality) == (0.75, 0.25)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogDistance(-1.0), "exponent is -1.0"),
        (lambda: LogDistance(3.0, shadowing_db=float("nan")), "shadowing_db is nan"),
        (lambda: UnitDisk(0.0), "range_m is 0.0; it must be above 0"),
        (lambda: UnitDisk(10.0, 5.0), "interference_m is 5.0, below range_m"),
        (lambda: Measured({(0, 1): 1.5}), r"quality of link \(0, 1\) is 1.5; it is from 0 to 1"),
        (
            lambda: receptions_by_node(Measured({(0, 7): 0.5}), LINE[:2]),
            r"link \(0, 7\) names a node that is not there",
        ),
        (lambda: receptions_by_node(UnitDisk(1.0), [(0.0, float("inf"))]), "coordinates are finite"),
    ],
)
def test_impossible_models_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()
