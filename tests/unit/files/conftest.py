"""Small files, and what reading them gives."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.files.find import find
from holdfast.files.read import inspect, read
from holdfast.files.reading import Reading
from holdfast.files.tally import Rejects, Tally
from holdfast.model.batch import to_events
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic

TEMPERATURE = Topic("Temperature", (Attribute("value", "float"),))
SIGHTING = Topic("Sighting", (Attribute("name", "text"), Attribute("room", "text")))
MIXED = Topic(
    "Mixed",
    (Attribute("f", "float"), Attribute("i", "int"), Attribute("t", "text"), Attribute("b", "bool")),
)


class _Recorder(Rejects):
    def __init__(self, strict: bool = False) -> None:
        super().__init__(strict=strict)
        self.seen: list[tuple[int, str, Any]] = []

    def write(self, file: Any, row: int, reason: str, data: Any) -> None:
        super().write(file, row, reason, data)
        self.seen.append((row, reason, data))


@dataclass
class Result:
    """The result of reading a file."""

    events: list[Event] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    rejected: list[tuple[int, str, Any]] = field(default_factory=list)
    batches: list[tuple[Topic, pa.RecordBatch]] = field(default_factory=list)

    @property
    def reasons(self) -> list[tuple[int, str]]:
        return [(row, reason) for row, reason, _ in self.rejected]

    def column(self, name: str) -> list[Any]:
        return [e.attributes[name] for e in self.events]


@pytest.fixture
def temperature() -> Topic:
    return TEMPERATURE


@pytest.fixture
def sighting() -> Topic:
    return SIGHTING


@pytest.fixture
def mixed() -> Topic:
    return MIXED


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., str]:
    """Write text, bytes or an Arrow table to a file, by its suffix, and return its path."""

    def write(name: str, content: Any, **options: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = pa.table(content)
        if isinstance(content, pa.Table):
            pq.write_table(content, path, **options)
        else:
            raw = content.encode() if isinstance(content, str) else content
            path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return str(path)

    return write


@pytest.fixture
def reads() -> Callable[..., Result]:
    """Inspect and read inputs."""

    def run(
        *inputs: str, topics: tuple[Topic, ...] = (TEMPERATURE,), strict: bool = False, **options: Any
    ) -> Result:
        keywords = {k: options.pop(k) for k in ("chunk_rows", "row_groups") if k in options}
        reading = Reading(topics, **options)
        result, rejects = Result(), _Recorder(strict)
        for file in find(inputs, [t.name for t in topics]):
            inspect(file, reading)
            for topic, batch in read(file, reading, result.tally, rejects, **keywords):
                batch.validate(full=True)
                result.batches.append((topic, batch))
                result.events += to_events(topic, batch)
        result.rejected = rejects.seen
        return result

    return run
