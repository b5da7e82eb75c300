"""The log of a service as an input: replay, and a live query on Spark, give the ids that it told."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND, instant
from holdfast.service.feeds.submission import Given
from holdfast.service.service import Service, Settings, Submission

APP = """\
topic Climate (temperature float)
topic Door (open bool)
state  Warm on Climate [temperature > 25; temperature < 22] per source
filter Ajar on Door where open
"""
START = instant("2026-06-21T12:00:00Z")


def kept(folder, first, number):
    """A service that has kept some readings in several segments; the ids of what it told."""

    async def story():
        service = Service(folder, folder.parent, Settings(segment_bytes=4_000, snapshot_every=0.0))
        async with service.running():
            if service.core.definition != APP:
                await service.define(APP)
            for i in range(first, first + number):
                door = Event("Door", START + i * SECOND, f"{folder.name}-door", {"open": i % 9 == 0})
                room = Event(
                    "Climate",
                    START + i * SECOND,
                    f"{folder.name}-{i % 3}",
                    {"temperature": 20.0 + (i * 7) % 11},
                )
                await service.submit(Submission([Given(door), Given(room)]))
            await service.settled()
            return [one.id for one in service.store.notifications(0, 1 << 30)]

    return asyncio.run(story())


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def test_replay_reads_the_log_of_a_service(tmp_path, definition, holdfast):
    told = kept(tmp_path / "data", 0, 150)
    assert len(list((tmp_path / "data/readings").glob("*.parquet"))) > 2, "several segments were sealed"
    ran = holdfast("replay", definition, "-i", f"log:{tmp_path / 'data'}")
    assert ran.status == 0, ran.err
    assert sorted(json.loads(line)["id"] for line in ran.out.splitlines()) == sorted(told)
    assert len(told) > 20


@pytest.mark.parametrize(
    "command", [("replay", "-i", "log:nowhere"), ("run", "--source", "log:nowhere", "--checkpoint", "c")]
)
def test_a_folder_that_is_no_log(command, definition, holdfast):
    name, *options = command
    ran = holdfast(name, definition, *options)
    assert ran.status == 2
    assert "no service keeps its log there" in ran.err


@pytest.mark.soak
def test_a_live_query_on_spark_tells_the_same_of_two_services(tmp_path, definition, holdfast):
    """Two services, one Spark job: it reads what is sealed, then what came later, and tells it once."""
    north, south = tmp_path / "north", tmp_path / "south"
    expected = set(kept(north, 0, 80)) | set(kept(south, 1_000, 80))
    command = (
        "run", definition, "--source", f"log:{north}", "--source", f"log:{south}", "--settle", "0",
        "--checkpoint", tmp_path / "checkpoint", "--sink", f"jsonl:{tmp_path / 'told.jsonl'}",
        "--available-now",
    )  # fmt: skip
    assert holdfast(*command).status == 0
    expected |= set(kept(south, 1_080, 40))
    ran = holdfast(*command)
    assert ran.status == 0, ran.err
    told = [json.loads(line)["id"] for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert len(told) == len(set(told))
    assert set(told) == expected
