"""The measures of a network, and the contents of a trace."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.instant import SECOND
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.frame import BROADCAST
from holdfast.network.sim.metrics import energy, footprint, relative
from holdfast.network.sim.platforms import TELOSB
from holdfast.network.sim.propagation import UnitDisk
from holdfast.network.sim.trace import ENERGY, FRAMES, STATES, Trace
from support.air import air, poisson


def test_lifetime_total_waste_and_packets_for_a_joule():
    """[D64]"""
    network = air([(0, 0)] * 4, battery_j=1.0, batteries={2: 0.355}).network
    network.run(10 * SECOND)
    judged = energy(network, received=142)
    assert judged.rest == "radio listen, mcu idle"
    assert judged.lifetime == network.nodes[2].died == pytest.approx(0.355 / 0.0711 * SECOND, abs=1)
    assert judged.total_mj == pytest.approx(3 * 711 + 355)
    assert judged.wasted_mj == pytest.approx(3355 - judged.total_mj)
    assert judged.packets_per_joule == pytest.approx(142 / (judged.total_mj / 1000))


def test_wasted_energy_of_the_thesis_grid():
    """[AT14] 49 nodes of 1 J that have used 20,000 mJ leave 29,000 mJ."""
    network = air([(0, 0)] * 49, battery_j=1.0, propagation=UnitDisk(1.0)).network
    network.run(round(20 / 49 / 0.0711 * SECOND))
    judged = energy(network, received=0)
    assert (judged.total_mj, judged.wasted_mj) == (pytest.approx(20_000), pytest.approx(29_000))
    assert judged.lifetime is None


def test_an_endless_supply_has_no_waste():
    network = air([(0, 0)], rest=Rest("sleep", "sleep")).network
    assert energy(network, received=0).packets_per_joule is None
    network.run(SECOND)
    assert energy(network, received=0).wasted_mj is None
    assert energy(network, received=0).rest == "radio sleep, mcu sleep"


def test_relative_consumption_is_shown_in_steps_of_five_percent():
    """[D65, AT13] The node that used most is 100 %."""
    assert relative([500, 125, 488, 487, 12, 13]) == [1.0, 0.25, 1.0, 0.95, 0.0, 0.05]
    assert relative([]) == []
    assert relative([0.0, 0.0]) == [0.0, 0.0]


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_relative_consumption_preserves_the_order(consumed):
    shown = relative(consumed)
    assert max(shown) in (0.0, 1.0)
    assert all(
        a <= b
        for (_, a), (_, b) in zip(
            *[sorted(zip(consumed, shown, strict=True))[i:] for i in (0, 1)], strict=False
        )
    )


def test_a_footprint_counts_queue_and_neighbours_of_the_run():
    """[D70]"""
    network = air([(0, 0)] * 6, propagation=UnitDisk(1.0), platform=TELOSB).network
    for _ in range(4):
        network.nodes[0].link.send(BROADCAST, "x", 20)
    network.run(SECOND)
    found = footprint(network, {"subscriptions": 96}, rom_bytes=23_034)
    assert found.ram == {"system": 1162, "queue": 3 * 127, "neighbours": 4, "subscriptions": 96}
    assert found.ram_bytes == 1162 + 381 + 4 + 96
    assert found.fits
    assert not footprint(network, {"history": 10_000}).fits
    assert not footprint(network, rom_bytes=50_000).fits


def test_a_trace_is_written_as_parquet_with_its_schema(tmp_path):
    trace = Trace()
    network = air([(0, 0)] * 5, trace, propagation=UnitDisk(1.0)).network
    network.meter(SECOND)
    poisson(network, range(5), BROADCAST, 20, SECOND // 10)
    network.run(3 * SECOND)
    written = trace.write(tmp_path / "trace")
    assert [path.name for path in written] == ["frames.parquet", "states.parquet", "energy.parquet"]
    for path, schema, table in zip(written, (FRAMES, STATES, ENERGY), trace.tables().values(), strict=True):
        assert pq.read_schema(path).names == schema.names
        assert pq.read_table(path).to_pylist() == table.to_pylist()
    frames = trace.frames.table()
    totals = network.totals()
    assert frames["what"].to_pylist().count("transmit") == totals.transmissions
    assert frames["what"].to_pylist().count("receive") == totals.received


def test_an_empty_trace_is_a_table_without_rows(tmp_path):
    assert [pq.read_table(path).num_rows for path in Trace().write(tmp_path)] == [0, 0, 0]
