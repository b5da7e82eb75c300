"""Run the validation of the energy model: rows, tables, figure and registration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from holdfast.network.motes.report.style import new_figure
from holdfast.network.sim.energy import EnergyReading

from ..experiment import Drawing, Experiment, Progress, Result, Row, Table
from ..study import conduct, singly
from .claim import MINUTES, OEM_MCU, OEM_RADIO, PTZ_MCU, PTZ_RADIO, claims
from .measure import LOAD_SHARE, TASK, Afterwards, afterwards, online

NAME = "oem-validation"
TITLE = "the online energy model against somebody who computes afterwards  [Energy-aware DDS, Table 9]"
SEED, OTHERS = 1, 10
"""The seed of the run that is read online, and the number of other seeds of a full run."""


def run(_: Path | None, full: bool, progress: Progress) -> Result:
    """Read one run every minute, and compute the energy of separate runs for each duration."""
    progress(f"one run of {MINUTES[-1]} min, read every minute")
    readings = online(SEED, MINUTES[-1])
    seeds = range(SEED + 1, SEED + 1 + (OTHERS if full else 1))
    runs = singly(product(seeds, MINUTES), "a run with seed %d of %d min, computed afterwards".__mod__)
    rows = [
        _row(MINUTES.index(minutes), seed, readings[minutes - 1], after)
        for (seed, minutes), after in conduct(lambda run: afterwards(*run), runs, progress).items()
    ]
    return Result(NAME, _parameters(seeds), rows, claims(rows), readings)


def _row(i: int, seed: int, reading: EnergyReading, after: Afterwards) -> Row:
    radio, mcu = reading.radio_joules * 1e3, reading.mcu_joules * 1e3
    return {
        "minutes": MINUTES[i],
        "seed": seed,
        "paper_radio_ptz": PTZ_RADIO[i],
        "paper_radio_oem": OEM_RADIO[i],
        "paper_radio_error": OEM_RADIO[i] / PTZ_RADIO[i] - 1,
        "radio_afterwards": after.radio,
        "radio_from_frames": after.radio_from_frames,
        "radio_online": radio,
        "radio_error": max(radio / after.radio - 1, radio / after.radio_from_frames - 1, key=abs),
        "paper_mcu_ptz": PTZ_MCU[i],
        "paper_mcu_oem": OEM_MCU[i],
        "paper_mcu_error": OEM_MCU[i] / PTZ_MCU[i] - 1,
        "mcu_afterwards": after.mcu,
        "mcu_online": mcu,
        "mcu_error": mcu / after.mcu - 1,
    }


def _parameters(seeds: range) -> dict[str, Any]:
    return {
        "platform": "micaz, 3 V: radio 19.7 mA receiving, 17.4 transmitting; processor 8 mA active, 4 idle",
        "rest state": "radio listens (as receiving), processor idle: the thesis' validation mode",
        "nodes": "5 publishers, 1 rendezvous node, 1 subscriber, all within reach; one publisher is observed",
        "traffic": "20 bytes each second from each publisher, forwarded; no acknowledgements",
        "medium access": "802.15.4 CSMA/CA, CC2420, path loss exponent 3",
        "processor load": f"{LOAD_SHARE * 100:.2f} % of the time, in tasks of {TASK} µs at 4 Hz",
        "online": f"one run of {MINUTES[-1]} min, seed {SEED}, read while it goes on",
        "afterwards": f"a run of its own for each duration, seeds {seeds[0]} to {seeds[-1]}, from the trace",
        "unit": "mJ; errors are fractions (0.003 is 0.3 %)",
    }


def _tables(result: Result) -> list[Table]:
    thesis, ours = ("PTZ", "OEM", "error"), ("ours online", "error")
    radio = ("paper_radio_ptz", "paper_radio_oem", "paper_radio_error",
             "radio_afterwards", "radio_from_frames", "radio_online", "radio_error")  # fmt: skip
    mcu = ("paper_mcu_ptz", "paper_mcu_oem", "paper_mcu_error", "mcu_afterwards", "mcu_online", "mcu_error")
    radio_heads = ("min", "seed", *thesis, "ours, states", "ours, frames", *ours)
    mcu_heads = ("min", "seed", *thesis, "ours, states", *ours)
    return [
        Table("Radio, mJ (Table 9)", radio_heads, [_line(row, radio) for row in result.rows]),
        Table("Processor, mJ (Table 9)", mcu_heads, [_line(row, mcu) for row in result.rows]),
    ]


def _line(row: Row, columns: Sequence[str]) -> list[Any]:
    shown = [f"{row[name]:.1e}" if name.endswith("error") else f"{row[name]:,.1f}" for name in columns]
    return [row["minutes"], row["seed"], *shown]


def figure(result: Result) -> Drawing:
    """Draw energy over time: online values as lines, computed values and those of the thesis as points."""
    readings: list[EnergyReading] = result.exhibit
    minutes = [row["minutes"] for row in result.rows]
    drawing = new_figure(9, 4)
    radio, mcu = [each.radio_joules for each in readings], [each.mcu_joules for each in readings]
    parts = (("radio", "Radio", radio), ("mcu", "Processor", mcu))
    for axes, (part, title, joules) in zip(drawing.subplots(1, 2), parts, strict=True):
        axes.plot(range(1, len(joules) + 1), joules, color="tab:blue", label="ours, online")
        for column, mark, colour, label in (
            (f"{part}_afterwards", "o", "tab:blue", "ours, afterwards"),
            (f"paper_{part}_ptz", "x", "tab:red", "thesis, PowerTOSSIM-z"),
        ):
            points = [row[column] / 1e3 for row in result.rows]
            axes.plot(minutes, points, mark, color=colour, markerfacecolor="none", markersize=9, label=label)
        axes.set(title=title, xlabel="min", ylabel="J", xlim=0, ylim=0)
        axes.legend(frameon=False)
    return drawing


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
