"""Live on Spark: a definition that needs more stages than the checkpoint has goes on with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast as hf
from holdfast import Engine, InputError, Notification, check, parse
from support.runtimes import session
from support.stages import STAGES, part

live = pytest.importorskip("support.live")
query = pytest.importorskip("holdfast.runtimes.spark.live.query")


class Died(Exception):
    """The query died."""


def test_a_stage_more_is_taken_from_the_next_batch_on_whatever_dies_on_the_way(tmp_path, monkeypatch):
    spark, here = session(), live.Site(tmp_path)
    here.inbox.mkdir()
    engine, expected = Engine(STAGES[0]), list[Notification]()

    def arrives(number: int) -> None:
        events = part(number)
        here.put(f"{number}.parquet", check(parse(STAGES[0])).topics[0], events)
        expected.extend(note for event in events for note in engine.push(event))

    def revised(text: str) -> None:
        engine._works.latest = {}  # nobody keeps the latest readings live
        expected.extend(engine.revise(text))

    def run(text: str) -> None:
        how = {
            "every": None,
            "settle": 0,
            "shards": 3,
            "batch_bytes": 1,
            "sink": f"jsonl:{tmp_path / 'out.jsonl'}",
        }
        hf.spark.run(hf.spark.live(text, here.inbox, checkpoint=here.checkpoint, **how), spark)

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
                run(text)

    def folders() -> list[str]:
        return sorted(path.name for path in here.checkpoint.iterdir() if path.is_dir())

    def told() -> list[str]:
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        return sorted(json.loads(line)["id"] for line in lines)

    arrives(0)
    arrives(1)
    run(STAGES[0])
    revised(STAGES[1])
    arrives(2)
    dies(STAGES[1], query, "sweep", Died(), after=False)
    assert folders() == ["spark", "states-1"], "it has been decided, and the old one is still there"
    dies(STAGES[1], query._Batches, "_write", InputError("before Spark's commit"), after=True)
    assert folders() == ["spark-1", "states-1"]
    run(STAGES[1])
    assert told() == sorted(note.id for note in expected)

    revised(STAGES[2])
    arrives(3)
    arrives(4)
    run(STAGES[2])
    assert folders() == ["spark-2", "states-2"]
    revised(STAGES[0])
    arrives(5)
    run(STAGES[0])
    assert folders() == ["spark-2"], "the shards have what was kept"
    assert told() == sorted(note.id for note in expected)
    assert {note.subscription for note in expected} == {"Warm", "Hot", "Floor", "House"}
    status = hf.spark.status(here.checkpoint)
    assert (status["batch"], status["files"]["read"]) == (5, 6)
    assert status["holding"] == len(engine.holding())
