"""Golden cases: random definitions and histories with their recorded notifications.

A change that must not change results is compared with them. ``python -m support.golden`` (with
``PYTHONPATH=tests``) records them again, which only a change of results justifies; the commit then names
the change and its reason.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from holdfast import Event, parse
from support.runtimes import engine
from support.whole import definitions, histories, visible

FILE = Path(__file__).resolve().parent.parent / "golden" / "cases.jsonl.gz"
RUNS, MOST = 150, 12


class Golden(NamedTuple):
    """A definition, a history in order of arrival, and its notifications in the order of an output."""

    text: str
    events: list[Event]
    notifications: list[str]


def read() -> list[Golden]:
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        return [_decode(json.loads(line)) for line in lines]


def _decode(case: dict) -> Golden:
    events = [
        Event(topic, time, source, attributes, sequence, None if location is None else tuple(location))
        for topic, time, source, attributes, sequence, location in case["events"]
    ]
    return Golden(case["text"], events, case["notifications"])


def _encode(case: Golden) -> dict:
    events = [[e.topic, e.time, e.source, e.attributes, e.sequence, e.location] for e in case.events]
    return {"text": case.text, "events": events, "notifications": case.notifications}


def sample(runs: int, most: int) -> list[Golden]:
    """Cases that emit something, so many at most of each run: the cases of one run resemble one another."""
    found: dict[str, Golden] = {}

    def collect(text: str, events: Sequence[Event]) -> None:
        notifications = visible(engine(parse(text), events))
        if notifications:
            found.setdefault(text, Golden(text, list(events), notifications))

    once = settings(
        max_examples=most, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    for run in range(runs):
        seed(run)(once(given(definitions(), histories(least=4, most=40))(collect)))()
    return list(found.values())


def record() -> None:
    FILE.parent.mkdir(exist_ok=True)
    lines = [json.dumps(_encode(case), ensure_ascii=False) + "\n" for case in sample(RUNS, MOST)]
    with open(FILE, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write("".join(lines).encode())
    sys.stdout.write(f"{len(lines)} cases in {FILE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    record()
