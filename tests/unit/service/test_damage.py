"""Damage to the files of a log: at most the damaged record is lost, and it is reported."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from contextlib import asynccontextmanager

import pytest

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic
from holdfast.service import integrity
from holdfast.service.feeds.submission import IncomingEvent, readings
from holdfast.service.intake import Submission
from holdfast.service.log.damage import changed_files, damage_of
from holdfast.service.log.frame import Advance, DefinitionEntry, Readings, Unreadable
from holdfast.service.log.log import Log
from holdfast.service.log.past import is_whole
from holdfast.service.log.seal import reading_files, retain, seal, seals
from holdfast.service.service import Service, Settings

TOPIC = Topic("Temperature", (Attribute("value", "float"), Attribute("name", "text")))
APP = """\
topic Temperature (value float, name text)
state Warm on Temperature [value > 25; value < 22] per source
"""


def batch_of(*values, name="x"):
    return readings(
        TOPIC, [Event("Temperature", i, "s1", {"value": v, "name": name}, -1) for i, v in enumerate(values)]
    )


def write_log(folder, *groups):
    log = Log(folder)
    for group in groups:
        log.append(group)
    end = log.next
    log.close()
    (path,) = (folder / "wal").glob("*.wal")
    return path, end


def read(folder):
    """Every entry, with its position, and the end of the log, as a start sees them."""
    log = Log(folder)
    try:
        return list(log.after(0)), log.next, log.torn
    finally:
        log.close()


def same(one, other):
    if isinstance(one.entry, Readings) and isinstance(other.entry, Readings):
        return one.position == other.position and one.entry.batch.equals(other.entry.batch)
    return one == other


@pytest.fixture
def _no_fsync(monkeypatch):
    """A log that is opened thousands of times need not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.mark.usefixtures("_no_fsync")
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_of_the_live_segment_loses_at_most_its_record(tmp_path, flip):
    folder = tmp_path / "data"
    groups = [
        [DefinitionEntry(APP)],
        [batch_of(1.0, 2.0), Advance({"T": 7})],
        [batch_of(3.0)],
        [Advance({"T": 9})],
    ]
    path, end = write_log(folder, *groups)
    raw, (whole, _, _) = path.read_bytes(), read(folder)
    stored = 0
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        found, position, torn = read(folder)
        assert (position, torn) == (end, 0), place
        lost = [one for one in whole if not any(same(one, other) for other in found)]
        assert len(lost) <= 1, place
        if lost:
            (damage,) = damage_of(folder)
            assert (damage.first, damage.after) == (lost[0].position, lost[0].after)
            assert [one.entry.is_damage for one in found if isinstance(one.entry, Unreadable)] == [True]
        else:
            stored += 1
            assert damage_of(folder) == []
        path.write_bytes(raw)
    assert stored > len(whole) * 60, "a damaged head costs nothing: it is there twice"


@pytest.mark.usefixtures("_no_fsync")
def test_undamaged_records_are_found_after_any_damage_and_the_log_continues(tmp_path):
    """Bytes that change, vanish or appear anywhere; nothing is read twice, or at another place."""
    chance, recovered = random.Random(11), 0
    path, _ = write_log(tmp_path / "a", *([batch_of(float(i), name=f"n{i}")] for i in range(20)))
    raw = path.read_bytes()
    for turn in range(150):
        folder = tmp_path / f"b{turn}"
        shutil.copytree(tmp_path / "a", folder)
        (copy,) = (folder / "wal").glob("*.wal")
        damaged = bytearray(raw)
        for _ in range(chance.choice([1, 1, 2, 3])):
            place, size = chance.randrange(len(damaged)), chance.choice([1, 2, 30, 700])
            match chance.choice("zxdi"):
                case "z":
                    damaged[place : place + size] = bytes(len(damaged[place : place + size]))
                case "x":
                    damaged[place : place + size] = chance.randbytes(len(damaged[place : place + size]))
                case "d":
                    del damaged[place : place + size]
                case "i":
                    damaged[place:place] = chance.randbytes(size)
        copy.write_bytes(damaged)
        log = Log(folder)
        position = 0
        for one in log.after(0):
            assert one.position == position
            position = one.after
            if isinstance(one.entry, Readings):
                assert one.entry.batch.column("name").to_pylist() == [f"n{one.position}"]
                recovered += 1
        assert position == log.next
        (placed,) = log.append([batch_of(99.0, name="new")])
        log.close()
        again = Log(folder)
        *_, last = again.after(0)
        assert (last.position, last.entry.batch.column("name").to_pylist()) == (placed.position, ["new"])
        again.close()
    assert recovered > 150 * 14


def test_the_text_of_a_reading_is_never_mistaken_for_a_record(tmp_path):
    """A client sends the bytes of a record in a text, without knowing the number of the log."""
    folder = tmp_path / "data"
    other, _ = write_log(tmp_path / "other", [batch_of(66.0)])
    fake = other.read_bytes()[36:].decode("latin-1")
    path, end = write_log(folder, [batch_of(1.0, name=fake)], [batch_of(2.0)])
    raw = bytearray(path.read_bytes())
    raw[40] ^= 1
    path.write_bytes(raw)
    found, position, _ = read(folder)
    values = [
        v for one in found if isinstance(one.entry, Readings) for v in one.entry.batch["value"].to_pylist()
    ]
    assert position == end
    assert 66.0 not in values


def test_a_damaged_record_of_a_sealed_segment_remains_known(tmp_path):
    folder = tmp_path / "data"
    path, _ = write_log(folder, [batch_of(1.0)], [batch_of(2.0, 3.0, name="y" * 99)], [batch_of(4.0)])
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"yyy", b"yxy", 1))
    log = Log(folder)
    log.rotate(0)
    seal(folder, log.next)
    (one,) = seals(folder)
    assert (one.first, one.after, one.lost) == (0, 4, ((1, 3),))
    assert [damage[1:3] for damage in damage_of(folder)] == [(1, 3)]
    assert (folder / f"damaged-{path.name}").exists()
    assert not is_whole(folder)
    log.close()


@pytest.fixture
def three(tmp_path):
    """A log of three sealed segments and a live one."""
    folder = tmp_path / "data"
    log = Log(folder)
    for value in (1.0, 2.0, 3.0):
        log.append([batch_of(value)])
        log.rotate(0)
    seal(folder, log.next)
    log.append([batch_of(4.0)])
    log.close()
    assert damage_of(folder) == []
    assert is_whole(folder)
    return folder


def test_a_missing_file_of_sealed_readings_is_detected(three):
    reading_files(three)[1].unlink()
    (damage,) = damage_of(three)
    assert str(damage) == "readings/00000000000000000001-Temperature.parquet is missing (positions 1 to 1)"
    assert not is_whole(three)


def test_a_missing_or_damaged_seal_is_detected(three):
    path = three / "seals" / "00000000000000000001.json"
    raw = bytearray(path.read_bytes())
    raw[20] ^= 1
    path.write_bytes(raw)
    assert ["seals/00000000000000000001.json is damaged" in str(one) for one in damage_of(three)] == [True]
    path.unlink()
    assert [(one.first, one.after, one.is_missing) for one in damage_of(three)] == [(1, 2, True)]


def test_a_flipped_byte_of_a_sealed_file_is_detected(three):
    path = reading_files(three)[1]
    raw = path.read_bytes()
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        (found,) = filter(None, changed_files(three))
        assert found.where == f"readings/{path.name}"
    path.write_bytes(raw)
    assert not any(changed_files(three))


def test_files_removed_by_retention_are_not_reported_as_missing(three):
    retain(three, seconds=None, size=reading_files(three)[2].stat().st_size)
    assert (damage_of(three), len(seals(three))) == ([], 1)
    reading_files(three)[0].unlink()
    assert len(damage_of(three)) == 1


def test_a_log_of_an_earlier_version_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "data" / "wal").mkdir(parents=True)
    (tmp_path / "data" / "wal" / f"{0:020}.wal").write_bytes(bytes(range(256)))
    with pytest.raises(UsageError, match="written by another version of Holdfast"):
        Log(tmp_path / "data")


# --- the service --------------------------------------------------------------------------------------------


@asynccontextmanager
async def serve(folder, **options):
    service = Service(folder, folder, Settings(), **options)
    async with service.running():
        if not service.core.definition:
            await service.define(APP)
        yield service


def incoming(time, value):
    return IncomingEvent(Event("Temperature", time, "s1", {"value": value, "name": "x" * 40}, -1))


async def sent(service, *values):
    for i, value in enumerate(values):
        await service.submit(Submission([incoming(1_000 + i, value)]))
    await service.wait_until_evaluated()


def copy_folder(folder, to):
    """Copy the files that a crash leaves."""
    shutil.copytree(folder, to, ignore=lambda _, names: [one for one in names if one == "lock"])


def test_a_damaged_record_loses_only_its_readings_and_is_reported(tmp_path, caplog):
    async def story():
        async with serve(tmp_path / "a") as service:
            await sent(service, 26.0, 20.0, 27.0, 21.0)
            copy_folder(tmp_path / "a", tmp_path / "b")
        (path,) = (tmp_path / "b" / "wal").glob("*.wal")
        raw = path.read_bytes()
        place = raw.index(b"x" * 40, raw.index(b"x" * 40) + 40)  # in the second reading
        path.write_bytes(raw[:place] + b"?" + raw[place + 1 :])
        for name in ("service.db", "service.db-wal", "service.db-shm"):  # all is computed again
            (tmp_path / "b" / name).unlink(missing_ok=True)
        async with serve(tmp_path / "b") as service:
            (damage,) = service.integrity.damage
            assert "is damaged (positions 2 to 2)" in damage
            assert damage in caplog.text
            emitted = [(one.status, one.time) for one in service.store.notifications()]
            assert emitted == [("ingress", 1_000), ("egress", 1_003)]
        async with serve(tmp_path / "b") as service:
            assert "could not be read in part (positions 2 to 2)" in service.integrity.damage[0]
        async with serve(tmp_path / "b", accept_loss=True) as service:
            assert service.integrity.damage == []

    asyncio.run(story())


def test_health_and_status_report_damage_while_readings_are_accepted(asked, monkeypatch):
    monkeypatch.setattr(integrity, "_LOOK_EVERY", 0.05)

    async def story(client, site):
        before = (await client.get("/health")).json()
        assert before == {"status": "ok", "troubles": {}, "damage": [], "sinks": {}}
        (path,) = (site.service.folder / "wal").glob("*.wal")
        raw = bytearray(path.read_bytes())
        raw[raw.index(b"Badge")] ^= 1
        path.write_bytes(raw)
        while not (health := await client.get("/health")).json()["damage"]:
            await asyncio.sleep(0.01)
        assert (health.status_code, health.json()["status"]) == (200, "trouble")
        assert "is damaged (positions 0 to 0)" in health.json()["damage"][0]
        status = (await client.get("/api/status")).json()
        assert (status["damage"], status["takes_readings"]) == (health.json()["damage"], True)
        assert "holdfast_damage 1" in (await client.get("/metrics")).text

    asked(story)


def test_a_changed_file_of_readings_is_reported_and_readers_warn(asked):
    async def first(client, site):
        line = '{"topic": "Temperature", "source": "s1", "value": 26}'
        assert (await client.post("/api/readings", content=line)).json()["taken"] == 1

    async def then(client, site):
        while not (found := (await client.get("/health")).json()["damage"]):
            await asyncio.sleep(0.01)
        assert "Temperature.parquet is damaged" in found[0]
        assert (await client.get("/api/readings?topic=Temperature")).json()["total"] == 0
        text = site.service.core.definition
        answer = await client.post("/api/dry-run", json={"text": text})
        assert (answer.status_code, "Temperature.parquet" in answer.text) == (422, True)
        edit = text.replace("value > 25", "value > 24")
        assert (await client.put("/api/definition", json={"text": edit})).status_code == 200

    folders = []
    asked(lambda client, site: _then(first(client, site), folders.append(site.service.folder)))
    (path,) = reading_files(folders[0])
    raw = bytearray(path.read_bytes())
    raw[-20] ^= 0xFF
    path.write_bytes(raw)
    asked(then)


async def _then(story, _):
    await story


def test_a_damaged_database_is_refused_with_a_remedy(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            await sent(service, 26.0)
        (tmp_path / "a" / "service.db").write_bytes(b"nonsense" * 1_000)
        with pytest.raises(UsageError, match=r"service.db: file is not a database. Restore"):
            Service(tmp_path / "a", tmp_path / "a")

    asyncio.run(story())


# --- the log is behind the database -------------------------------------------------------------------------


async def _ran(folder):
    """A service that has sealed segments, taken snapshots and notified; after a crash, and after a stop."""
    async with serve(folder) as service:
        await sent(service, 26.0, 20.0)
        await service.on_engine(service.take_snapshot)
        service.snapshot_written.result()
        await sent(service, 27.0, 21.0)
        copy_folder(folder, folder.with_name("crashed"))
    copy_folder(folder, folder.with_name("stopped"))


def _without_wal(folder):
    shutil.rmtree(folder / "wal")


def _without_segments(folder):
    for path in (folder / "wal").glob("*.wal"):
        path.unlink()


def _cut(folder):
    path = max((folder / "wal").glob("*.wal"))
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def _empty(folder):
    max((folder / "wal").glob("*.wal")).write_bytes(b"")


@pytest.mark.parametrize(
    ("state", "harm"),
    [("crashed", harm) for harm in (_without_wal, _without_segments, _cut, _empty)]
    + [("stopped", harm) for harm in (_without_wal, _without_segments)],
)
def test_a_log_behind_the_database_is_refused_with_a_remedy(tmp_path, state, harm):
    async def story():
        await _ran(tmp_path / "a")
        folder = tmp_path / state
        harm(folder)
        with pytest.raises(UsageError, match=r"behind the database.*Restore.*--accept-loss") as refused:
            Service(folder, folder)
        assert "readings or definitions are missing" in str(refused.value)
        with pytest.raises(UsageError, match="behind the database"):
            Service(folder, folder)
        async with serve(folder, accept_loss=True) as service:
            assert service.core.definition == APP
            emitted = len(service.store.notifications())
            assert await service.submit(Submission([incoming(5_000, 30.0)])) == 1
            await service.wait_until_evaluated()
            assert len(service.store.notifications()) == emitted + 1, "nothing that comes is ignored"
        async with serve(folder) as service:
            assert [one.since for one in await service.holding()] == [5_000]

    asyncio.run(story())


def test_missing_readings_without_notifications_are_detected(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            await sent(service, *[20.0] * 6)
            while service.store.log()[1] < service.log.next:
                await asyncio.sleep(0.01)
            copy_folder(tmp_path / "a", tmp_path / "b")
        path = max((tmp_path / "b" / "wal").glob("*.wal"))
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(UsageError, match=r"behind the database.* 1 readings or definitions are missing"):
            Service(tmp_path / "b", tmp_path / "b")

    asyncio.run(story())


def test_a_missing_segment_in_the_middle_is_refused(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            for value in (26.0, 20.0, 27.0):
                await sent(service, value)
                service.log.rotate(0)
            copy_folder(tmp_path / "a", tmp_path / "b")
        paths = sorted((tmp_path / "b" / "wal").glob("*.wal"))
        paths[1].unlink()
        with pytest.raises(UsageError, match=r"is missing \(positions 2 to 2\).*--accept-loss"):
            Service(tmp_path / "b", tmp_path / "b")
        async with serve(tmp_path / "b", accept_loss=True) as service:
            assert [h.since for h in await service.holding()] == [1_000]
            assert service.integrity.damage == []

    asyncio.run(story())


def test_the_database_of_another_log_is_refused(tmp_path):
    async def story():
        for name in "ab":
            async with serve(tmp_path / name) as service:
                await sent(service, 26.0)
        shutil.copy(tmp_path / "a" / "service.db", tmp_path / "b" / "service.db")
        with pytest.raises(UsageError, match="belongs to another log"):
            Service(tmp_path / "b", tmp_path / "b")

    asyncio.run(story())


def test_a_lost_database_is_rebuilt_as_far_as_the_log_reaches(tmp_path):
    async def story():
        await _ran(tmp_path / "a")
        for path in (tmp_path / "stopped").glob("service.db*"):
            path.unlink()
        with pytest.raises(UsageError, match=r"the database is too old.*--accept-loss"):
            Service(tmp_path / "stopped", tmp_path / "stopped")
        async with serve(tmp_path / "stopped", accept_loss=True) as service:
            assert service.log.next > 4

    asyncio.run(story())
