"""Run the table: settings, rows, parameters and registration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InputError

from ..data import locate
from ..experiment import Experiment, Progress, Result, Row, Table
from ..series import Cleaned, Period
from .air import CROWN, PASS, Air
from .claim import claims
from .count import LINES, TableMeasurement, measure
from .field import SEEDS, SUBSCRIBERS, Field, Subscriber, TableSetting, draw, region_name
from .figure import TableExhibit, figure
from .period import DEADBAND, HELD, SLOW, eligible, median, plateau, temperatures, variants


def run(name: str, air: Air, data: Path | None, full: bool, progress: Progress) -> Result:
    """Measure the table; with ``full``, every eligible period with many fields too."""
    base = TableSetting()
    progress("reading")
    cleaned = air.read(locate(air.file, data))
    periods = eligible(cleaned, air.fresh, base)
    if not periods:
        raise InputError(f"no 30 hours of {air.file} have 16 stations that cross the thresholds")
    period, stations = periods[0]
    field = draw(air.seed, stations)
    progress(base.name)
    temps = temperatures(field, period, base)
    main = measure(field, base, period.times, temps)
    runs: dict[str, TableMeasurement] = {base.name: main}
    for setting in variants(median(period, stations)):
        progress(setting.name)
        readings = temperatures(field, period, setting)
        runs[setting.name] = measure(field, setting, period.times, readings)
    made = plateau()
    runs[made[1].name] = measure(*made)
    rows: list[Row] = []
    for label, run in runs.items():
        rows += [_row(label, line, getattr(run.sf, line), getattr(run.ecf, line)) for line in LINES]
    many = _many(periods, air.seed, progress) if full else {}
    rows += [row for name, measured in many.items() for row in _spread(name, measured)]
    parameters = _parameters(air, cleaned, periods, field, full)
    exhibit = TableExhibit(field, base, period.times, temps, main.schemes)
    return Result(name, parameters, rows, tuple(claims(runs, many, air.why)), exhibit)


def _many(
    periods: list[tuple[Period, list[int]]], first: int, progress: Progress
) -> dict[str, list[TableMeasurement]]:
    """Measure every eligible period with many fields, in the main setting and in the most informative
    variants.
    """
    found: dict[str, list[TableMeasurement]] = {}
    for period, stations in periods:
        varied = variants(median(period, stations))
        settings = [TableSetting(), *(v for v in varied if v.name in (HELD, DEADBAND, SLOW))]
        for seed in range(first, first + SEEDS):
            progress(f"{period.start}, seed {seed}")
            field = draw(seed, stations)
            for setting in settings:
                readings = temperatures(field, period, setting)
                found.setdefault(setting.name, []).append(measure(field, setting, period.times, readings))
    return found


def _row(setting: str, line: str, sf: Any, ecf: Any) -> Row:
    called, paper_sf, paper_ecf, _ = LINES[line]
    paper = {"paper_sf": paper_sf, "paper_ecf": paper_ecf}
    return {"setting": setting, "statistic": called, **paper, "sf": sf, "ecf": ecf}


def _spread(setting: str, many: Sequence[TableMeasurement]) -> list[Row]:
    """The median and two quantiles of many runs, line by line."""
    rows = []
    for name, part in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
        for line in LINES:
            both = ([getattr(run.sf, line) for run in many], [getattr(run.ecf, line) for run in many])
            sf, ecf = (None if None in c else round(float(np.quantile(c, part)), 6) for c in both)
            rows.append(_row(f"{setting}, {name} of {len(many)} runs", line, sf, ecf))
    return rows


def _parameters(
    air: Air,
    cleaned: Cleaned,
    periods: list[tuple[Period, list[int]]],
    field: Field,
    full: bool,
) -> dict[str, Any]:
    period, stations = periods[0]
    shares = {region_name(r): len(field.subscribers_of(r)) for r in field.coverage}
    return {
        "data": air.file,
        "readings": f"{cleaned.read} in the file",
        "dropped": dict(cleaned.dropped),
        "grid": air.grid,
        "period": f"30 h from {period.start}: the first from a midnight (UTC) in which 16 stations with a "
        "fresh reading 95 % of the time are above all and below all thresholds at some time",
        "periods that would do": [p.start for p, _ in periods],
        "carried readings": sum(period.carried[s] for s in stations),
        "thresholds": [TableSetting().threshold(Subscriber("", 0, rank)) for rank in range(SUBSCRIBERS)],
        "median of the period": median(period, stations),
        "thresholds by": "equal steps of 0.1 °C about the paper's 10 °C, dealt to subscribers by chance",
        "redundant sensors": "report the same values, at the same moments (uniform in a region)",
        "subscribers in regions": shares,
        "sensors in regions": {region_name(r): len(field.sensors_of(r)) for r in field.coverage},
        "stations of regions": {region_name(r): field.stations[r] for r in field.coverage},
        "validity": "30 min, both ends included: the next match passes after 33 min",
        "seed": f"{air.seed} to {air.seed + SEEDS - 1}, for each period" if full else air.seed,
    }


def _tables(result: Result) -> list[Table]:
    settings = list(dict.fromkeys(row["setting"] for row in result.rows))
    first = [row for row in result.rows if row["setting"] == settings[0]]
    counted = {called: how for called, _, _, how in LINES.values()}
    by = {(row["setting"], row["statistic"]): row for row in result.rows}
    columns = [
        ("passed SF", "source-side passes", "sf"),
        ("ECF", "source-side passes", "ecf"),
        ("suppr.", "duplicates suppressed", "sf"),
        ("shared SF", "shared events before suppression", "sf"),
        ("after", "shared events after suppression", "sf"),
        ("ECF", "shared events before suppression", "ecf"),
        ("deliv. SF", "delivered events", "sf"),
        ("ECF", "delivered events", "ecf"),
        ("worst SF", "worst error seen (min)", "sf"),
        ("ECF", "worst error seen (min)", "ecf"),
        ("cond. SF", "conditions told apart", "sf"),
        ("ECF", "conditions told apart", "ecf"),
    ]
    return [
        Table(
            "The document's figures and ours",
            ("statistic", "document SF", "ours", "document ECF", "ours", "how it is counted"),
            [
                (r["statistic"], r["paper_sf"], r["sf"], r["paper_ecf"], r["ecf"], counted[r["statistic"]])
                for r in first
            ],
        ),
        Table(
            "What it depends on",
            ("setting", *(head for head, _, _ in columns)),
            [
                ("the document", *(by[settings[0], s][f"paper_{scheme}"] for _, s, scheme in columns)),
                *((setting, *(by[setting, s][scheme] for _, s, scheme in columns)) for setting in settings),
            ],
        ),
    ]


def _experiment(name: str, air: Air, where: str) -> Experiment:
    title = f"state filters against content filters with a 30-minute validity{where}"
    return Experiment(name, f"{title}  [State-Filters, Table II]", partial(run, name, air), _tables, figure)


ON_THE_PASS = _experiment("state-filter-table", PASS, "")
UNDER_TREES = _experiment("state-filter-redwoods", CROWN, ", under trees")
