"""Live on Spark: a definition that needs more stages than the checkpoint has goes on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast import Engine, InputError, Notification, check, parse
from support.runtimes import session
from support.stages import STAGES, part

live = pytest.importorskip("support.live")
query = pytest.importorskip("holdfast.runtimes.spark.streaming.query")


class Died(Exception):
    """The query died."""


class StageStory:
    """A query on Spark and an engine with the same input and the same sequence of definitions."""

    def __init__(self, folder: Path, text: str) -> None:
        self.here, self.out = live.Site(folder), folder / "out.jsonl"
        self.here.inbox.mkdir()
        self.engine, self.expected = Engine(text), list[Notification]()

    def arrives(self, number: int) -> None:
        events = part(number)
        self.here.put(f"{number}.parquet", check(parse(STAGES[0])).topics[0], events)
        self.expected += [note for event in events for note in self.engine.push(event)]

    def revised(self, text: str) -> None:
        self.engine._running.latest = {}  # a live query does not store the latest readings
        self.expected += self.engine.revise(text)

    def runs(self, text: str) -> None:
        how: dict[str, Any] = {"every": None, "settle": 0, "shards": 2, "batch_bytes": 1}
        it = hf.spark.live(
            text, self.here.inbox, checkpoint=self.here.checkpoint, sink=f"jsonl:{self.out}", **how
        )
        hf.spark.run(it, session())

    def folders(self) -> list[str]:
        return sorted(path.name for path in self.here.checkpoint.iterdir() if path.is_dir())

    def same(self) -> bool:
        """Whether the query and the engine emitted the same ids, each once."""
        emitted = sorted(json.loads(line)["id"] for line in self.out.read_text().splitlines())
        return emitted == sorted(note.id for note in self.expected)

    def read_ledger(self) -> tuple[int, int, int]:
        """The last batch, the files that were read, and how many conditions hold."""
        status = hf.spark.status(self.here.checkpoint)
        return status["batch"], status["files"]["read"], status["holding"]


def test_an_additional_stage_takes_over_although_no_input_is_left(tmp_path):
    """In short; whatever dies on the way, below and in ``unit/runtimes/spark/live/test_generation.py``."""
    story = StageStory(tmp_path, STAGES[1])
    story.arrives(0)
    story.runs(STAGES[1])
    story.revised(STAGES[2])
    story.runs(STAGES[2])
    assert story.folders() == ["spark-1", "states-1"]
    story.arrives(1)
    story.runs(STAGES[2])
    assert story.folders() == ["spark-1"], "the shards have what was kept"
    assert story.same()
    assert {note.subscription for note in story.expected} == {"Warm", "Hot", "Floor", "House"}
    assert story.read_ledger() == (2, 2, len(story.engine.holding()))


@pytest.mark.soak
def test_an_additional_stage_takes_over_with_the_next_batch_despite_crashes(tmp_path, monkeypatch):
    story = StageStory(tmp_path, STAGES[0])

    def dies(text: str, at: Any, name: str, fault: Exception, *, after: bool) -> None:
        """Run it, and let it die before it does something, or after it."""
        do = getattr(at, name)

        def then(*args: Any) -> None:
            if after:
                do(*args)
            raise fault

        with monkeypatch.context() as patched:
            patched.setattr(at, name, then)
            with pytest.raises(type(fault)):
                story.runs(text)

    story.arrives(0)
    story.arrives(1)
    story.runs(STAGES[0])
    story.revised(STAGES[1])
    story.arrives(2)
    dies(STAGES[1], query, "sweep", Died(), after=False)
    assert story.folders() == ["spark", "states-1"], "it has been decided, and the old one is still there"
    dies(STAGES[1], query._Batches, "_write", InputError("before Spark's commit"), after=True)
    assert story.folders() == ["spark-1", "states-1"]
    story.runs(STAGES[1])
    assert story.same()

    story.revised(STAGES[2])
    story.arrives(3)
    story.arrives(4)
    story.runs(STAGES[2])
    assert story.folders() == ["spark-2", "states-2"]
    story.revised(STAGES[0])
    story.arrives(5)
    story.runs(STAGES[0])
    assert story.folders() == ["spark-2"], "the shards have what was kept"
    assert story.same()
    assert {note.subscription for note in story.expected} == {"Warm", "Hot", "Floor", "House"}
    assert story.read_ledger() == (5, 6, len(story.engine.holding()))
