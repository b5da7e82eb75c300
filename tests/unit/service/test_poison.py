"""A record that makes the evaluation fail is set aside with its reason; the service goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import asynccontextmanager

import numpy as np
import pyarrow as pa
import pytest

from holdfast.model.batch import TIME
from holdfast.model.event import Event
from holdfast.runtimes.local.engine import Engine
from holdfast.service.feeds.submission import IncomingEvent, table
from holdfast.service.intake import Submission
from holdfast.service.log import frame
from holdfast.service.log.frame import Advance
from holdfast.service.service import Service, Settings

APP = """\
topic Temperature (value float)
topic Badge (name text)
state Warm on Temperature [value > 25; value < 22] per source
filter Seen on Badge where name != "x"
state Mean on avg Temperature over 10 s enter value > 25 exit value < 22
"""


@asynccontextmanager
async def serve(folder, **settings):
    service = Service(folder, folder, Settings(**settings))
    async with service.running():
        if not service.core.definition:
            await service.define(APP)
        yield service


def incoming(i, value, source="s1"):
    return IncomingEvent(Event("Temperature", 1_000 + i, source, {"value": value}, i))


def no_text(rows=3):
    """A text column of which the second value is no UTF-8."""
    offsets, data = np.arange(rows + 1, dtype=np.int32), b"a\xff" + b"b" * (rows - 2)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def badges(topic, names):
    columns = {
        "time": pa.array(range(2_000, 2_000 + len(names))).cast(TIME),
        "source": [f"door-{i}" for i in range(len(names))],
        "name": names,
    }
    return table(topic, pa.RecordBatch.from_pydict(columns))


def stored_rows(service):
    return [(n.subscription, n.scope, n.status, n.time) for n in service.store.notifications(0, 1 << 20)]


def copy_folder(folder, to):
    shutil.copytree(folder, to, ignore=lambda _, names: [one for one in names if one == "lock"])


def test_invalid_text_from_any_feed_does_not_enter_the_log(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            before, poison = service.log.next, badges(service.topics["Badge"], no_text())
            counts = await asyncio.gather(
                service.submit(Submission(entries=[poison])), service.submit(Submission([incoming(0, 26.0)]))
            )
            await service.wait_until_evaluated()
            assert (counts, service.log.next) == ([0, 1], before + 1)
            assert "cannot hold it" in service.store.rejects()[0]["reason"]

    asyncio.run(story())


def test_a_record_that_cannot_be_decoded_is_set_aside_and_counted_once(tmp_path):
    """An earlier version may have accepted it into the log."""

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([incoming(0, 26.0)]))
            await service.wait_until_evaluated()
            service.log.append([badges(service.topics["Badge"], no_text())])
            copy_folder(tmp_path / "a", tmp_path / "b")
        for _ in range(3):
            async with serve(tmp_path / "b") as service:
                await service.submit(Submission([incoming(7, 20.0)]))
                await service.wait_until_evaluated()
                assert [one[2] for one in stored_rows(service) if one[0] == "Warm"] == ["ingress", "egress"]
                (reject,) = service.store.rejects()
                assert reject["feed"] == "log"
                assert "cannot be decoded" in reject["reason"]
                assert sum(service.store.counts().values()) == 3

    asyncio.run(story())


@pytest.fixture
def poisoned_engine(monkeypatch):
    """The evaluation of a value of 66 raises, once it has already changed the state."""
    push = Engine.push_conformed

    def raising(self, known, batch):
        found = push(self, known, batch)
        if known.name == "Temperature" and 66.0 in batch.column("value").to_pylist():
            raise ZeroDivisionError("66 is poison")
        return found

    monkeypatch.setattr(Engine, "push_conformed", raising)


@pytest.mark.usefixtures("poisoned_engine")
@pytest.mark.parametrize("snapshot_every", [0.0, 1e9])
def test_a_reading_whose_evaluation_raises_is_set_aside_alone(tmp_path, snapshot_every):
    """All others are evaluated as if it had never arrived, also after a crash."""
    values = [20.0 + (i * 7) % 11 for i in range(60)]
    bad = [5, 17, 18, 44]

    async def ran(folder, wanted):
        async with serve(folder, snapshot_every=snapshot_every) as service:
            for begin in range(0, 60, 12):
                some = [incoming(i, v, f"s{i % 3}") for i, v in wanted if begin <= i < begin + 12]
                await service.submit(Submission(some))
                await service.wait_until_evaluated()
            copy_folder(folder, folder.with_name(f"{folder.name}-copy"))
            return stored_rows(service), service.store.rejects()

    async def story():
        expected, none = await ran(tmp_path / "a", [(i, v) for i, v in enumerate(values) if i not in bad])
        poison = [(i, 66.0 if i in bad else v) for i, v in enumerate(values)]
        found, rejects = await ran(tmp_path / "b", poison)
        assert (found, none) == (expected, [])
        assert len(expected) > 10
        assert [json.loads(one["payload"])[0]["value"] for one in rejects] == [66.0] * 4
        assert {one["reason"] for one in rejects} == {"its evaluation fails: ZeroDivisionError: 66 is poison"}
        async with serve(tmp_path / "b-copy") as service:
            assert stored_rows(service) == expected
            assert len(service.store.rejects()) == 4
            await service.submit(Submission([incoming(99, 66.0), incoming(100, 40.0, "s9")]))
            await service.wait_until_evaluated()
            assert stored_rows(service)[-1][:3] == ("Warm", "s9", "ingress")
            assert len(service.store.rejects()) == 5

    asyncio.run(story())


@pytest.mark.usefixtures("poisoned_engine")
def test_an_entry_of_poison_costs_at_most_a_hundred_tries(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            some = [incoming(i, 66.0) for i in range(5_000)]
            await service.submit(Submission([*some, incoming(6_000, 30.0)]))
            await service.submit(Submission([incoming(7_000, 30.0)]))
            await service.wait_until_evaluated()
            assert sum(service.store.counts().values()) == 5_001, "with what is left of the entry"
            assert [one[:3] for one in stored_rows(service)][:1] == [("Warm", "s1", "ingress")]

    asyncio.run(story())


def test_an_advance_of_the_clock_that_raises_is_skipped(tmp_path, monkeypatch):
    async def story():
        async with serve(tmp_path / "a") as service:
            reach = Engine.advance_topics
            spoiled = {"Temperature": 10**9}

            def spoil(engine, until):
                return 1 / 0 if until == spoiled else reach(engine, until)

            monkeypatch.setattr(Engine, "advance_topics", spoil)
            await service.submit(Submission(entries=[Advance(spoiled)]))
            await service.submit(Submission([incoming(1, 26.0)]))
            await service.wait_until_evaluated()
            assert stored_rows(service)[0][:3] == ("Warm", "s1", "ingress")
            assert "ZeroDivisionError" in service.store.rejects()[0]["reason"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (1, b"nonsense"),
        (1, frame._ipc(pa.RecordBatch.from_pydict({"a": [1]}))),
        (3, b"{}"),
        (3, b'{"text": "state"}'),
        (9, b""),
    ],
    ids=["no Arrow", "no topic", "no definition", "a wrong definition", "an unknown kind"],
)
def test_the_service_starts_with_any_contents_of_a_record(tmp_path, monkeypatch, kind, body):
    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([incoming(0, 26.0)]))
            await service.wait_until_evaluated()
            with monkeypatch.context() as patch:
                patch.setattr(frame, "_encode", lambda _: (kind, body))
                service.log.append([Advance({"T": 1})])
            copy_folder(tmp_path / "a", tmp_path / "b")
        async with serve(tmp_path / "b") as service:
            assert "s1" in [h.scope for h in await service.holding()]
            await service.submit(Submission([incoming(1, 20.0)]))
            await service.wait_until_evaluated()
            assert "s1" not in [h.scope for h in await service.holding()]

    asyncio.run(story())


def test_a_reading_that_cannot_become_an_entry_is_rejected_alone(tmp_path):
    """A feed lets something through that no column takes: those who came with it are logged all the same."""
    wrong = [
        IncomingEvent(Event("Temperature", 1, "s1", {"value": "warm"}, 1)),
        IncomingEvent(Event("Temperature", 2**70, "s1", {"value": 1.0}, 1)),
        IncomingEvent(Event("Badge", 1, "half a pair \ud800", {"name": "John"}, 1)),
    ]

    async def story():
        async with serve(tmp_path / "a") as service:
            some = [incoming(0, 26.0), wrong[0], incoming(1, 27.0), wrong[1], wrong[2], incoming(2, 20.0)]
            counts = await asyncio.gather(
                service.submit(Submission(some)), service.submit(Submission([incoming(3, 29.0)]))
            )
            await service.wait_until_evaluated()
            assert [one[2] for one in stored_rows(service) if one[0] == "Warm"] == [
                "ingress",
                "egress",
                "ingress",
            ]
            assert counts == [3, 1]
            assert sum(service.store.counts().values()) == 3
            assert not service.failed.done()

    asyncio.run(story())
