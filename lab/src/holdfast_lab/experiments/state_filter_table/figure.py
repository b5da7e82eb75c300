"""The figure of one region."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result
from ..series import MINUTE, Temperatures, Times
from .field import VALIDITY, Field, TableSetting, region_name
from .scheme import Scheme


@dataclass(frozen=True)
class TableExhibit:
    """Data of the figure: a region, its subscribers, and their events."""

    field: Field
    setting: TableSetting
    times: Times
    temps: Temperatures
    schemes: tuple[Scheme, Scheme]


def figure(result: Result) -> Drawing:
    """Draw the temperature of the region with most subscribers, and the events of each subscriber."""
    exhibit: TableExhibit = result.exhibit
    field, setting = exhibit.field, exhibit.setting
    region = max(field.coverage, key=lambda r: len(field.subscribers_of(r)))
    subscribers = sorted(field.subscribers_of(region), key=lambda s: s.rank)
    hours = (exhibit.times - exhibit.times[0]) / (60 * MINUTE)
    sensor = field.sensors_of(region)[0]
    sf, ecf = exhibit.schemes

    drawing = new_figure(10, 6)
    air, conditions = drawing.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    air.plot(hours, exhibit.temps[sensor], color="0.25", linewidth=1)
    for subscriber in subscribers:
        air.axhline(setting.threshold(subscriber), color="tab:red", linewidth=0.6, alpha=0.7)
    air.set_ylabel("°C")
    what = f"the thresholds of its {len(subscribers)} subscribers, what they got"
    air.set_title(f"Region {region_name(region)}, {what}")
    for i, subscriber in enumerate(subscribers):
        toggles = [hours[p.at] for p in sf.delivered if p.subscriber == subscriber.name]
        for start, end in zip(toggles[::2], [*toggles[1::2], hours[-1]], strict=False):
            conditions.plot([start, end], [i + 0.15] * 2, color="tab:blue", linewidth=4, alpha=0.35)
        conditions.plot(toggles, [i + 0.15] * len(toggles), "|", color="tab:blue", markersize=9)
        sent = [hours[p.at] for p in ecf.delivered if p.subscriber == subscriber.name and p.sensor == sensor]
        for start in sent:
            valid = [start, start + VALIDITY / MINUTE / 60]
            conditions.plot(valid, [i - 0.15] * 2, color="tab:orange", lw=4, alpha=0.35)
        conditions.plot(sent, [i - 0.15] * len(sent), "|", color="tab:orange", markersize=9)
    labels = [f"{s.name}  > {setting.threshold(s)} °C" for s in subscribers]
    conditions.set_yticks(range(len(subscribers)), labels)
    conditions.set_xlabel("hours; events delivered: SF (blue) and, from one of the sensors, ECF (orange)")
    return drawing
