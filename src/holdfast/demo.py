"""The demonstration: a day in a small building on generated sensors, shown as a timeline in the terminal.

There are four rooms on two floors, two climate sensors in each (redundant and slightly wrong), and one badge
reader per room. Everything is generated from a seed. On Spark the day arrives as a file for each hour, and a
streaming query emits starts and ends as it goes. The local engine emits the same notifications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .definition.check import check
from .definition.parse import parse
from .files.interval import Interval, Pairing
from .files.timeline import axis, bars
from .files.write import event_line
from .model.batch import TIME, concatenate, times
from .model.event import Notification
from .model.instant import DAY, HOUR, MINUTE, Instant, parse_instant
from .runtimes.local.engine import Engine
from .runtimes.spark.streaming.ledger import read_ledger

DEFINITION = """\
topic Climate (temperature float °C, co2 float ppm)
topic Badge (name text, room text)

region building
region ground in building    region kitchen in ground    region lab in ground
region upper in building     region office in upper      region attic in upper

let warm = 25 °C

state  Warm   on Climate [temperature > warm; temperature < warm - 1] per place
state  Stuffy on Climate [co2 > 1000 ppm; co2 < 800 ppm] per place
state  Heat   on Climate [temperature > 27 °C; temperature < 25 °C]
         scope kitchen, lab, office, attic within ground, upper within building
state  John   on Badge [name == "John" && room == "lab"; name == "John" && room != "lab"]
filter Spike  on Climate where co2 > 1500 ppm
"""

DAWN = parse_instant("2026-06-21")
ROOMS = ("kitchen", "lab", "office", "attic")
PEOPLE = ("John", "Ann", "Mary")
SEED = 7


@dataclass(frozen=True)
class Day:
    """The result of a simulated day.

    It has the number of readings, the notifications, and the start of each scope that is active at the end.
    """

    events: int
    notifications: list[Notification]
    open: dict[tuple[str, str | None], Instant]


def climate(seed: int = SEED) -> pa.RecordBatch:
    """Return the climate readings of the day, one per sensor and minute, ordered by time.

    ``seed`` fixes the noise.
    """
    rng = np.random.default_rng(seed)
    minutes = np.arange(DAY // MINUTE)
    hours = minutes / 60
    columns: dict[str, list[np.ndarray]] = {"time": [], "temperature": [], "co2": []}
    names: list[str] = []
    for i, room in enumerate(ROOMS):
        sun = np.clip(np.sin((hours - 6 - i) / 12 * np.pi), 0, None)
        used = ((hours > 8 + i / 2) & (hours < 11 + i)) | ((hours > 13) & (hours < 15 + i))
        people = np.convolve(used * 1.0, np.ones(45) / 45, mode="same")
        drift = np.cumsum(rng.normal(0, 0.03, len(minutes)))
        room_temperature = 20.5 + (4.5 + i) * sun + 1.2 * people + 0.3 * drift
        room_co2 = 450 + (500 + 180 * i) * people + 40 * np.cumsum(rng.normal(0, 0.02, len(minutes)))
        for sensor in "ab":
            names.append(f"{room}-{sensor}")
            columns["time"].append(DAWN + minutes * MINUTE)
            columns["temperature"].append(room_temperature + rng.normal(0, 0.15, len(minutes)))
            columns["co2"].append(room_co2 + rng.normal(0, 12, len(minutes)))
    order = np.argsort(np.concatenate(columns["time"]), kind="stable")
    sources = np.repeat(names, len(minutes))[order]
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array(np.concatenate(columns["time"])[order]).cast(TIME),
            "source": pa.array(sources).dictionary_encode(),
            "place": pa.array([name.rpartition("-")[0] for name in sources]).dictionary_encode(),
            "temperature": np.concatenate(columns["temperature"])[order].round(2),
            "co2": np.concatenate(columns["co2"])[order].round(0),
        }
    )


def badges(seed: int = SEED) -> pa.RecordBatch:
    """Return the badge readings of the day: persons walk through the rooms at random times.

    ``seed`` fixes them.
    """
    rng = np.random.default_rng(seed + 1)
    times = np.sort(rng.integers(8 * HOUR, 19 * HOUR, 60)) + DAWN
    rooms = rng.choice(ROOMS, len(times))
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array(times).cast(TIME),
            "source": pa.array([f"{room}-door" for room in rooms]),
            "name": pa.array(rng.choice(PEOPLE, len(times))),
            "room": pa.array(rooms),
        }
    )


def hours(seed: int = SEED) -> Iterator[dict[str, pa.RecordBatch]]:
    """Yield the readings of the day hour by hour.

    Each item has a batch for each topic. Rows have sequence numbers that continue from hour to hour.
    """
    batches = {"Climate": climate(seed), "Badge": badges(seed)}
    for name, batch in batches.items():
        batches[name] = batch.append_column("sequence", pa.array(np.arange(len(batch))))
    for hour in range(24):
        ends = [DAWN + hour * HOUR, DAWN + (hour + 1) * HOUR]
        cuts = {topic: np.searchsorted(times(batch), ends) for topic, batch in batches.items()}
        yield {topic: batches[topic].slice(first, last - first) for topic, (first, last) in cuts.items()}


def run(seed: int = SEED) -> Day:
    """Process the day in a local engine, hour by hour, and return the result."""
    engine = Engine(parse(DEFINITION))
    events, notifications = 0, []
    for hour in hours(seed):
        for topic, batch in hour.items():
            events += len(batch)
            notifications += engine.push_batch(topic, batch)
    held = {(h.subscription, h.scope): h.since for h in engine.holding()}
    return Day(events, sorted(notifications, key=lambda n: n.order), held)


def run_live(folder: Path, say: Callable[[str], None], seed: int = SEED) -> Day:
    """Process the day in a streaming query on Spark and return the result.

    The day is written to ``folder``, one file per hour, while the query reads it. ``say`` is called with each
    line of output.
    """
    from .runtimes.spark.session import redirect_stderr, session
    from .runtimes.spark.streaming.query import live, started

    inbox, notifications = folder / "inbox", []
    inbox.mkdir()

    def print_transition(notification: Notification) -> None:
        notifications.append(notification)
        if notification.status != "atomic":
            what = "starts" if notification.status == "ingress" else "ends"
            where = f" in {notification.scope}" if notification.scope else ""
            say(f"  {_clock(notification.event.time)}  {notification.subscription} {what}{where}")

    fleet = live(
        DEFINITION,
        inbox,
        checkpoint=folder / "checkpoint",
        sink=print_transition,
        every=0,
        settle=0,
        shards=4,
    )
    with redirect_stderr(folder / "spark.log"):
        spark = session(is_brief=True)
    with started(fleet, spark) as query:
        for number, hour in enumerate(hours(seed)):
            _arrive(inbox / f"{number:02}.parquet", hour)
            query.wait(0.2)
        while query.record.files < 24:
            query.wait(0.2)
        query.stop()
        record = query.record
    held = read_ledger(folder / "checkpoint" / "ledger.sqlite").holding
    found = {(name, scope): since for name, scope, since in held}
    return Day(record.rows, sorted(notifications, key=lambda n: n.order), found)


def _arrive(path: Path, hour: dict[str, pa.RecordBatch]) -> None:
    """Write the readings of an hour as one file, which appears under its name only when it is complete."""
    parts = [
        batch.append_column("topic", pa.array([topic] * len(batch), pa.string()))
        for topic, batch in hour.items()
    ]
    hidden = path.with_name(f".{path.name}")
    pq.write_table(pa.Table.from_batches([concatenate(parts)]), hidden)
    hidden.rename(path)


def intervals_of(day: Day) -> list[Interval]:
    """Return the intervals of all conditions of a day.

    Conditions that are active at the end have intervals without an end.
    """
    pairing = Pairing()
    ended = pairing.pair(day.notifications)
    return ended + [
        Interval(name, scope, since, None, "", None, None) for (name, scope), since in day.open.items()
    ]


def _clock(at: Instant) -> str:
    minutes = (at - DAWN) // MINUTE
    return f"{minutes // 60:02}:{minutes % 60:02}"


def report(day: Day) -> Iterator[str]:
    """Yield the lines of the report: a bar chart of the intervals, then the counts."""
    yield "\nActive intervals (bars are the day; longest interval and count):\n"
    order = [condition.name for condition in check(parse(DEFINITION)).conditions]
    yield from bars(intervals_of(day), axis(DAWN, DAWN + DAY - 1), order, "now")
    notifications = len(day.notifications)
    share = notifications / day.events
    yield f"\n{day.events:,} readings became {notifications} notifications ({share:.2%}).  The first two:\n"
    yield from (event_line(notification).rstrip() for notification in day.notifications[:2])
