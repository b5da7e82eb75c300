from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing
from threading import Event as Event_

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.instant import HOUR, SECOND
from holdfast.runtimes.local.engine import Engine
from holdfast.service import core, named
from holdfast.service import service as service_module
from holdfast.service.feeds.submission import IncomingEvent, Rejected
from holdfast.service.intake import Submission
from holdfast.service.log.frame import DefinitionEntry
from holdfast.service.log.log import NoRoom
from holdfast.service.log.past import is_whole
from holdfast.service.log.seal import reading_files, retain
from holdfast.service.origins import RepeatedRequest, Request
from holdfast.service.serve import Address, ServicePlan, _reload, serving
from holdfast.service.service import Service, Settings
from holdfast.service.store import ServiceStore
from support.patience import PATIENCE

APP = """
topic Temperature (value float)
topic Badge (name text)
state  Warm on Temperature [value > 25; value < 22] per source
filter Hot  on Temperature where value > 30
state  John on Badge [name == "John"; name != "John"]
"""
LASTING = """
topic Temperature (value float)
state Long
  A = latest Temperature
  enter A.value > 25 for 1 min
  exit  A.value < 22
"""


class ServiceClock:
    now = 1_750_000_000 * SECOND  # of our days

    def __call__(self):
        return self.now


@asynccontextmanager
async def serve(folder, definition=APP, clock=None, **settings):
    service = Service(folder, folder, Settings(**settings), clock or ServiceClock())
    async with service.running():
        if service.core.definition != definition:
            await service.define(definition)
        yield service


def reading(i, value, source="s1", sequence=None):
    return IncomingEvent(
        Event("Temperature", i, source, {"value": value}, i if sequence is None else sequence)
    )


def day(n=120):
    """Readings that cross every threshold, of two topics."""
    for i in range(n):
        if i % 7 == 3:
            yield IncomingEvent(Event("Badge", i, "door", {"name": "John" if i % 2 else "Ann"}, i))
        else:
            yield reading(i, float(20 + (i * 13) % 14), f"s{i % 3}")


def expected_ids(events, definition=APP):
    engine = Engine(parse(definition))
    return sorted(n.id for one in events for n in engine.push(one.event))


def ids(service):
    return sorted(one.id for one in service.store.notifications(0, 1 << 30))


async def feed(service, given, size=9):
    for i in range(0, len(given), size):
        await service.submit(Submission(given[i : i + size]))


def test_notifications_equal_those_of_the_engine(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            given = list(day())
            await feed(service, given)
            await service.wait_until_evaluated()
            assert ids(service) == expected_ids(given)
            assert len(ids(service)) > 40
            held = await service.holding()
            assert {h.subscription for h in held} <= {"Warm", "John"}
            last = service.store.notifications(0, 1 << 30)[-1]
            line = json.loads(last.line)
            assert (line["id"], line["status"]) == (last.id, last.status)

    asyncio.run(story())


@pytest.mark.parametrize("snapshot_every", [0.0, 0.02, 1e9])
def test_logged_entries_without_evaluation_are_notified_once_after_a_restart(tmp_path, snapshot_every):
    """A copy of the folder is what a crash leaves; each copy goes on with what was not acknowledged."""

    async def story():
        given = list(day())
        size = 29
        async with serve(tmp_path / "a", snapshot_every=snapshot_every, segment_bytes=2_000) as service:
            for i in range(0, len(given), size):
                held = Event_()
                paused = asyncio.create_task(service.on_engine(held.wait))  # nothing is evaluated meanwhile
                await service.submit(Submission(given[i : i + size]))
                service.snapshot_written.result()
                shutil.copytree(tmp_path / "a", tmp_path / f"copy-{i + size}", ignore=_lock)
                held.set()
                await paused
                await service.wait_until_evaluated()
        for folder in tmp_path.glob("copy-*"):
            async with serve(folder, snapshot_every=snapshot_every, segment_bytes=2_000) as service:
                await feed(service, given[int(folder.name.removeprefix("copy-")) :])
                await service.wait_until_evaluated()
                assert ids(service) == expected_ids(given), folder.name

    asyncio.run(story())


def _lock(_folder, names):
    return [name for name in names if name in ("lock",) or name.startswith(".")]


def test_a_message_repeated_by_a_broker_is_processed_once_even_after_a_restart(tmp_path):
    async def story():
        given = [one._replace(origin=i + 1) for i, one in enumerate(day(50))]
        async with serve(tmp_path / "a") as service:
            assert await service.submit(Submission(given)) == 50
            assert await service.submit(Submission(given[-5:], again=True)) == 0
            assert service.counts.repeated == 5
        async with serve(tmp_path / "a") as service:
            assert await service.submit(Submission(given, again=True)) == 0
            assert await service.submit(Submission(given[:2])) == 2, "not said to be sent again"

    asyncio.run(story())


def test_a_keyed_request_is_remembered_for_a_day_even_after_a_crash(tmp_path):
    clock, request = ServiceClock(), Request.of([b"ann", b"k"], [b"body"])
    keyed = Submission([reading(1, 26.0), reading(2, 20.0)], request=request)

    async def story():
        async with serve(tmp_path / "a", clock=clock, snapshot_every=1e9) as service:
            assert await service.submit(keyed) == 2
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)  # no snapshot knows of it
        for _ in range(3):
            async with serve(tmp_path / "b", clock=clock, segment_bytes=1) as service:
                clock.now += 6 * HOUR
                with pytest.raises(RepeatedRequest):
                    await service.submit(keyed)
                await service.on_engine(service.take_snapshot)
                service.snapshot_written.result()
                with pytest.raises(RepeatedRequest):
                    await service.submit(keyed)
        clock.now += 7 * HOUR
        async with serve(tmp_path / "b", clock=clock):
            pass  # a snapshot forgets what is older than a day
        async with serve(tmp_path / "b", clock=clock) as service:
            assert await service.submit(keyed) == 2

    asyncio.run(story())


def test_keyed_requests_do_not_displace_messages_that_a_broker_may_repeat(tmp_path):
    async def story():
        given = [one._replace(origin=i + 1) for i, one in enumerate(day(50))]
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission(given))
            for i in range(15):
                some = [reading(i, 20.0)] * 10_000
                await service.submit(Submission(some, request=Request.of([b"%d" % i], [b"body"])))
            assert await service.submit(Submission(given, again=True)) == 0

    asyncio.run(story())


SILENT = """
topic Temperature (value float)
state Dead on Temperature [silent 20 s; !silent 20 s] per source
"""


class Feeding:
    """A feed of a clock: it has read all, or is away."""

    def __init__(self, clock):
        self.clock, self.is_there = clock, True

    def serves(self, _topic):
        return True

    def read_until(self):
        return self.clock() if self.is_there else None


async def passing(service, clock, seconds, *sources):
    """Seconds go by, in each of which some sources report."""
    for _ in range(seconds):
        clock.now += SECOND
        given = [reading(clock.now, 20.0, source, clock.now) for source in sources]
        await service.submit(Submission(given))
        await service.advance_clock()
        await service.wait_until_evaluated()


def dead(service, scope):
    return [one.status for one in service.store.notifications() if one.scope == scope]


def test_an_outage_of_the_broker_does_not_count_as_silence_of_its_sources(tmp_path):
    """No message waits in the broker, since the devices could not publish either; 'c' never comes back."""

    async def story():
        clock = ServiceClock()
        feed = Feeding(clock)
        async with serve(tmp_path, SILENT, clock) as service:
            await service.attach_feeds([feed])
            await passing(service, clock, 10, "a", "b", "c")
            feed.is_there = False
            await passing(service, clock, 135)
            feed.is_there = True
            await passing(service, clock, 8)
            assert dead(service, "a") == dead(service, "b") == dead(service, "c") == []
            await passing(service, clock, 4, "a")
            assert dead(service, "b") == dead(service, "c") == []
            await passing(service, clock, 20, "a", "b")
            assert dead(service, "c") == ["ingress"]

    asyncio.run(story())


def test_downtime_of_the_service_does_not_count_as_silence_of_sources(tmp_path):
    """Readings posted over HTTP while the service is down wait nowhere; 'c' never comes back."""

    async def story():
        clock = ServiceClock()
        async with serve(tmp_path / "a", SILENT, clock) as service:
            await service.attach_feeds([])
            await passing(service, clock, 10, "a", "b", "c")
            while service.store.lags() != {"Temperature": 0}:
                await asyncio.sleep(0.01)
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=shutil.ignore_patterns("lock"))
        clock.now += 135 * SECOND
        async with serve(tmp_path / "b", SILENT, clock) as service:
            await service.attach_feeds([])
            await passing(service, clock, 4)
            await passing(service, clock, 4, "a")
            assert dead(service, "b") == dead(service, "c") == []
            await passing(service, clock, 20, "a", "b")
            assert dead(service, "c") == ["ingress"]

    asyncio.run(story())


def test_timers_fire_by_the_wall_clock_and_notify_once(tmp_path):
    async def story():
        clock = ServiceClock()
        async with serve(tmp_path / "a", LASTING, clock) as service:
            await service.submit(Submission([reading(clock.now, 26.0, sequence=1)]))
            await service.wait_until_evaluated()
            assert ids(service) == []
            clock.now += 70 * SECOND
            while not ids(service):
                await asyncio.sleep(0.02)
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)
            emitted = ids(service)
        async with serve(tmp_path / "b", LASTING, clock) as service:
            assert ids(service) == emitted
            assert [h.subscription for h in await service.holding()] == ["Long"]

    asyncio.run(story())


def test_nothing_is_acknowledged_while_the_disk_is_full(tmp_path, monkeypatch):
    async def story():
        async with serve(tmp_path / "a") as service:
            append = service.log.append
            monkeypatch.setattr(service.log, "append", _full)
            waiting = asyncio.create_task(service.submit(Submission([reading(1, 26.0)])))
            while not service.troubles:
                await asyncio.sleep(0.01)
            assert "No space left" in service.troubles["log"]
            assert not waiting.done()
            monkeypatch.setattr(service.log, "append", append)
            assert await waiting == 1
            assert service.troubles == {}

    asyncio.run(story())


def test_a_failed_snapshot_is_retried_by_time_while_readings_are_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "_TRY_AGAIN", 0.05)
    keep, tries = ServiceStore.save_snapshot, []

    def failing(*_):
        tries.append(1)
        raise (
            OSError(24, "Too many open files") if len(tries) % 2 else RuntimeError("of a kind nobody expects")
        )

    async def story():
        async with serve(tmp_path / "a", snapshot_every=0.0) as service:
            await asyncio.to_thread(service.snapshot_written.result)  # that of the definition
            monkeypatch.setattr(ServiceStore, "save_snapshot", failing)
            assert await service.submit(Submission([reading(1, 26.0)])) == 1
            await service.on_engine(service.take_snapshot)  # one that began before may have been under way
            while len(tries) < 4:  # nothing comes meanwhile
                await asyncio.sleep(0.01)
            assert "no snapshot can be taken" in service.troubles["snapshot"]
            assert service.takes_readings
            assert await service.submit(Submission([reading(2, 20.0)])) == 1
            await service.wait_until_evaluated()
            assert len(service.store.notifications()) == 2
            monkeypatch.setattr(ServiceStore, "save_snapshot", keep)
            while service.troubles:
                await asyncio.sleep(0.01)
            assert service.store.snapshot().position == service.log.next

    asyncio.run(story())


def test_a_service_stops_in_order_even_while_no_snapshot_can_be_written(tmp_path, monkeypatch):
    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(1, 26.0)]))
            with monkeypatch.context() as patch:
                patch.setattr(ServiceStore, "save_snapshot", _no_room)
                await service.on_engine(service.take_snapshot)
                service.snapshot_written.result()
                assert "snapshot" in service.troubles
            await service.submit(Submission([reading(2, 27.0)]))
        async with serve(tmp_path / "a") as service:
            assert (service.core.position, service.store.snapshot().position) == (3, 3)

    asyncio.run(story())


def _no_room(*_):
    raise OSError(28, "No space left on device")


def _full(_entries):
    raise NoRoom("No space left on device")


def _cut(folder):
    """Let a log be one from which the oldest readings were removed."""
    (folder / "readings").mkdir(parents=True, exist_ok=True)
    (folder / "readings" / "trimmed").touch()


def test_a_definition_changes_while_the_service_runs(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(1, 26.0)]))
            await service.wait_until_evaluated()
            other = APP.replace("per source", "per place")
            _cut(service.folder)
            with pytest.raises(UsageError, match="'Warm' would mean something else"):
                await service.define(other)
            more = APP + "filter Cold on Temperature where value < 0\n"
            change = await service.define(more)
            assert (change.added, change.removed, change.changed, change.holding) == (["Cold"], [], [], [])
            assert [h.subscription for h in await service.holding()] == ["Warm"]
            change = await service.define(other, ["Warm"])
            assert (change.removed, change.changed) == (["Cold"], ["Warm"])
            assert await service.holding() == []
            emitted = service.store.notifications()
            assert [(one.subscription, one.scope, one.status, one.since) for one in emitted] == [
                ("Warm", "s1", "ingress", None),
                ("Warm", "s1", "withdrawn", 1),
            ]
        async with serve(tmp_path / "a", other) as service:
            assert [one.id for one in service.store.notifications()] == [one.id for one in emitted]
            assert await service.holding() == []

    asyncio.run(story())


def test_a_revision_is_decided_by_the_log_also_for_new_conditions(tmp_path):
    """New and changed conditions are as if they had run from the first reading on; each change is notified
    once, also after a restart."""
    more = "state Cold on Temperature [value < 21; value > 23] per source\n"

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(1, 26.0), reading(2, 20.0), reading(3, 25.5)]))
            await service.wait_until_evaluated()
            edit = APP.replace("value > 25", "value > 25.7") + more
            assert await service.forecast(DefinitionEntry(edit)) == {"Warm": {"ends": 1}}
            await service.define(edit)
            assert [(one.subscription, one.status) for one in service.store.notifications()[-1:]] == [
                ("Warm", "revised")
            ]
            await service.define(edit.replace("value > 23", "value > 26"))
            emitted = [(one.subscription, one.status, one.since) for one in service.store.notifications()]
            assert emitted[-1] == ("Cold", "revised", 2)
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)
        async with serve(tmp_path / "b", edit.replace("value > 23", "value > 26")) as service:
            assert [(h.subscription, h.since) for h in await service.holding()] == [("Cold", 2)]
            assert [
                (one.subscription, one.status, one.since) for one in service.store.notifications()
            ] == emitted

    asyncio.run(story())


LADDER = """
topic Temperature (value float)
levels Heat on Temperature: warn [value > {}; value < 22], alarm [value > 30; value < 27] per source
state Mean on avg Temperature over 10 s enter value > {} exit value < 22
"""


def test_a_revision_of_any_kind_is_decided_by_a_complete_log(tmp_path):
    """Levels and components are as if the new definition had always run. Where the log was cut components
    restart, and levels are unknown where the rest does not decide them."""
    before, after = LADDER.format(25, 25), LADDER.format(28, 26.5)

    async def story():
        async with serve(tmp_path / "a", before) as service:
            came = [(1, 26.0, "s1"), (2, 27.0, "s2"), (3, 31.0, "s2"), (4, 31.0, "s2")]
            await service.submit(Submission([reading(*one) for one in came]))
            await service.wait_until_evaluated()
            assert await service.forecast(DefinitionEntry(after)) == {"Heat": {"ends": 1}}
            change = await service.define(after)
            assert (change.changed, change.incompatible, change.holding) == (["Mean", "Heat"], [], [])
            assert [(h.subscription, h.scope, h.since) for h in await service.holding()] == [
                ("Heat", "s2", 3),
                ("Mean", None, 3),
            ]
            emitted = [(one.id, one.scope, one.status) for one in service.store.notifications()]
            assert emitted[-1][1:] == ("s1", "revised")
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)
            _cut(service.folder)
            assert (await service.forecast(DefinitionEntry(before)))["Mean"] == {"unknown": 1}
            change = await service.define(before)
            assert (change.changed, change.incompatible) == (["Mean", "Heat"], [])
            means = [one for one in service.store.notifications() if one.subscription == "Mean"]
            assert [one.status for one in means] == ["ingress", "unknown"]
        async with serve(tmp_path / "b", after) as service:
            assert emitted == [(one.id, one.scope, one.status) for one in service.store.notifications()]

    asyncio.run(story())


def test_a_component_restarts_where_the_log_was_cut_even_after_a_crash(tmp_path):
    before, after = LADDER.format(25, 25), LADDER.format(25, 29)
    for name in "ab":
        _cut(tmp_path / name)

    async def story():
        clock = ServiceClock()
        async with serve(tmp_path / "a", before, clock) as service:
            await service.submit(Submission([reading(1, 26.0), reading(2, 27.0), reading(3, 27.0)]))
            await service.wait_until_evaluated()
            clock.now += 20 * SECOND
            while service.core.engine.watermarks["Temperature"] < SECOND:
                await asyncio.sleep(0.01)  # until the clock reports that time continues
            await service.define(after)
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock, dirs_exist_ok=True)
        async with serve(tmp_path / "b", after, clock) as service:
            held = [(h.subscription, h.since, h.known) for h in await service.holding()]
            assert held == [("Heat", 1, True), ("Mean", 1, False)]
            come = service.core.engine.watermarks["Temperature"]  # by the clock
            for second in (5, 9, 11, 30):
                await service.submit(Submission([reading(come + second * 1_000_000, 10.0)]))
            await service.wait_until_evaluated()
            means = [one for one in service.store.notifications() if one.subscription == "Mean"]
            assert [one.status for one in means] == ["ingress", "unknown", "egress"]
            assert means[-1].since == 1
            assert means[-1].time > come + 10_000_000, "when ten seconds have been heard"

    asyncio.run(story())


def test_levels_and_counts_continue_where_the_log_was_cut_or_are_unknown(tmp_path):
    text = (
        "topic Temperature (value float)\n"
        "levels Heat on Temperature:\n"
        "  warn [value > 25; value < 22], alarm [value > {}; value < 27] per source\n"
        "state Some = at least {} of Heat until fewer than 1\n"
    )

    async def story():
        async with serve(tmp_path / "a", text.format(35, 2)) as service:
            await service.submit(
                Submission([reading(1, 40.0), reading(2, 28.0, "s2"), reading(3, 20.0, "s3")])
            )
            await service.wait_until_evaluated()
            _cut(service.folder)
            output = len(service.store.notifications())
            change = await service.define(text.format(30, 3))
            assert (change.changed, change.incompatible) == (["Heat", "Some"], [])
            emitted = [(one.subscription, one.scope, one.status) for one in service.store.notifications()]
            assert emitted[output:] == [("Heat", "s2", "unknown"), ("Some", None, "unknown")]
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)
        async with serve(tmp_path / "b", text.format(30, 3)) as service:
            assert sorted((h.subscription, h.scope, h.known) for h in await service.holding()) == [
                ("Heat", "s1", True), ("Heat", "s2", False), ("Some", None, False)
            ]  # fmt: skip
            await service.submit(Submission([reading(5, 26.0, "s2"), reading(6, 20.0, "s1")]))
            await service.submit(Submission([reading(7, 20.0, "s2"), reading(8, 20.0, "s3")]))
            await service.wait_until_evaluated()
            emitted = [(one.subscription, one.scope, one.status) for one in service.store.notifications()]
            assert emitted[output + 2 :] == [
                ("Heat", "s2", "known"), ("Heat", "s1", "egress"), ("Heat", "s2", "egress"),
                ("Some", None, "egress"),
            ]  # fmt: skip

    asyncio.run(story())


COUNTED = f"""{LADDER}
state Some = at least 2 of Heat
mute Heat during "Sat 00:00 – Mon 06:00" in "Europe/Berlin"
"""


def test_a_revision_includes_downstream_conditions(tmp_path):
    """With a complete log; otherwise both restart, where that is requested for the one."""
    before, after = COUNTED.format(25, 25), COUNTED.format(28, 25)

    async def story(folder, *, whole):
        async with serve(folder, before) as service:
            await service.submit(Submission([reading(1, 26.0), reading(2, 31.0, "s2")]))
            await service.wait_until_evaluated()
            if not whole:
                _cut(service.folder)
            change = await service.define(after, () if whole else ["Heat"])
            holding = [(h.subscription, h.scope) for h in await service.holding()]
            emitted = [one.status for one in service.store.notifications() if one.subscription == "Some"]
            return [h[:2] for h in change.holding], holding[:-1], emitted

    holding = [("Heat", "s1"), ("Heat", "s2"), ("Some", None)]
    revised, withdrawn = ["ingress", "revised"], ["ingress", "withdrawn"]
    assert asyncio.run(story(tmp_path / "a", whole=True)) == ([], [("Heat", "s2")], revised)
    assert asyncio.run(story(tmp_path / "b", whole=False)) == (holding, [], withdrawn)


def test_the_preview_of_a_revision_is_computed_beside_the_engine(tmp_path, monkeypatch):
    """Readings are evaluated while the log is replayed, and nothing of it is sealed or removed."""
    started, go_on = Event_(), Event_()
    fitting = core._to_history

    def waiting(entries, topics):
        started.set()
        assert go_on.wait(PATIENCE)
        yield from fitting(entries, topics)

    async def story():
        async with serve(tmp_path / "a", snapshot_every=0) as service:
            await service.submit(Submission([reading(1, 26.0)]))
            await service.wait_until_evaluated()
            monkeypatch.setattr(core, "_to_history", waiting)
            counted = asyncio.create_task(service.forecast(DefinitionEntry(APP.replace("> 25", "> 25.7"))))
            await asyncio.to_thread(started.wait, PATIENCE)
            stored = service.snapshot_written
            await service.submit(Submission([reading(2, 21.0), reading(3, 25.5)]))
            await service.wait_until_evaluated()
            assert [(h.subscription, h.since) for h in await service.holding()] == [("Warm", 3)]
            assert service.snapshot_written is stored
            go_on.set()
            assert await counted == {}  # of what was so when it was asked

    asyncio.run(story())


TABLED = """
topic Temperature (value float)
table Limits "limits.csv" (source text, high float, low float)
state Warm on Temperature [value > Limits.high; value < Limits.low] per source roster "sensors.csv"
"""


def test_a_changed_table_is_carried_over_row_by_row_even_after_a_crash(tmp_path):
    """The output depends on the table at the time it was taken over, not on the current file."""
    base = tmp_path / "a"
    base.mkdir()
    (base / "sensors.csv").write_text("source\ns1\n")

    def limits(*rows):
        text = "".join(f"{source},{high},{low}\n" for source, high, low in rows)
        (base / "limits.csv").write_text(f"source,high,low\n{text}")

    async def story():
        limits(("s1", 25, 22), ("s2", 25, 22), ("s3", 25, 22))
        async with serve(base, TABLED) as service:
            assert not service.files_have_changed()
            await service.submit(Submission([reading(1, 26.0, f"s{i}") for i in (1, 2, 3)]))
            await service.wait_until_evaluated()
            limits(("s1", 25, 22), ("s2", 27, 22), ("s3", 24, 22))
            assert service.files_have_changed()
            await service.submit(Submission([reading(2, 26.0, "s2")]))
            await service.wait_until_evaluated()
            assert len(await service.holding()) == 3  # without a request to reload it
            change = await service.define(TABLED)
            assert (change.changed, change.incompatible) == (["Warm"], [])
            emitted = [(one.id, one.scope, one.status) for one in service.store.notifications()]
            assert [one[1:] for one in emitted[3:]] == [("s2", "revised")]
            assert [(h.scope, h.since) for h in await service.holding()] == [("s1", 1), ("s3", 1)]
            limits(("s1", 99, 22), ("s2", 99, 22), ("s3", 99, 22))
            shutil.copytree(base, tmp_path / "b", ignore=_lock)
        async with serve(tmp_path / "b", TABLED) as service:
            assert [(one.id, one.scope, one.status) for one in service.store.notifications()] == emitted
            assert [(h.scope, h.since) for h in await service.holding()] == [("s1", 1), ("s3", 1)]
            assert service.files_have_changed()
            await service.define(TABLED)
            assert await service.holding() == []
        async with serve(tmp_path / "b", TABLED) as service:
            assert await service.holding() == []
            assert not service.files_have_changed()
            assert len(list((tmp_path / "b" / "files").glob("*"))) == 2  # what ran before is gone

    asyncio.run(story())


@asynccontextmanager
async def of_file(folder, *restart):
    """A service whose definition and table stand in files."""
    plan = ServicePlan(folder / "app.hf", folder / "data", Address("127.0.0.1", 0), restart=restart)
    async with serving(plan) as (site, _):
        yield plan, site.service


def _limits(folder, *rows):
    (folder / "limits.csv").write_text("".join(f"{row}\n" for row in ("source,high,low", *rows)))


@pytest.fixture
def by_row(tmp_path):
    (tmp_path / "app.hf").write_text(TABLED.replace(' roster "sensors.csv"', ""))
    _limits(tmp_path, "s1,25,22", "s2,25,22")
    return tmp_path


async def _warm(service):
    given = [reading(1, 26.0), reading(2, 24.0), reading(2, 26.0, "s2")]
    await service.submit(Submission(given))
    await service.wait_until_evaluated()


def test_conditions_restart_once_and_only_where_they_must(by_row):
    async def story():
        async with of_file(by_row, "Warm") as (_, service):
            await _warm(service)
            _limits(by_row, "s1,25,22", "s2,25,22", "s3,1,0")
            assert (await service.take((by_row / "app.hf").read_text)).changed == ["Warm"]
            assert len(await service.holding()) == 2
            _limits(by_row, "s1,25,22", "s2,27,22")
        async with of_file(by_row, "Warm") as (_, service):
            assert [h.scope for h in await service.holding()] == ["s1"]
            _cut(service.folder)
            (by_row / "app.hf").write_text((by_row / "app.hf").read_text().replace("per source", "per place"))
        async with of_file(by_row, "Warm") as (_, service):
            assert await service.holding() == []

    asyncio.run(story())


def test_copies_of_files_are_durable_before_the_log_names_them_and_may_be_lost(by_row, monkeypatch):
    synced = []
    monkeypatch.setattr(named, "sync_folder", synced.append)

    async def story():
        async with of_file(by_row) as (_, service):
            (stored,) = (by_row / "data" / "files").glob("*")
            assert synced == [stored, stored.parent, stored.parent.parent]
            await _warm(service)
        shutil.rmtree(by_row / "data" / "files")
        async with of_file(by_row) as (_, service):
            assert len(await service.holding()) == 2

    asyncio.run(story())


def test_a_table_in_several_files_is_refused(by_row):
    (by_row / "limits.parquet").mkdir()
    rows = pa.table({"source": ["s1"], "high": [25.0], "low": [22.0]})
    pq.write_table(rows, by_row / "limits.parquet" / "a.parquet")
    (by_row / "app.hf").write_text((by_row / "app.hf").read_text().replace(".csv", ".parquet"))

    async def story():
        with pytest.raises(UsageError, match="is a folder"):
            async with of_file(by_row):
                pass

    asyncio.run(story())


@pytest.mark.parametrize("wrong", ["missing", "source,high\ns1,much\n"])
def test_a_wrong_named_file_does_not_keep_a_service_from_starting(by_row, wrong, caplog):
    async def story():
        async with of_file(by_row) as (_, service):
            await _warm(service)
        (by_row / "limits.csv").unlink() if wrong == "missing" else (by_row / "limits.csv").write_text(wrong)
        async with of_file(by_row) as (_, service):
            assert len(await service.holding()) == 2
        assert "go on as they were" in caplog.text
        (by_row / "app.hf").write_text((by_row / "app.hf").read_text() + "topic Badge ()\n")
        with pytest.raises(UsageError):
            async with of_file(by_row):
                pass

    asyncio.run(story())


def test_a_reload_waits_for_a_definition_that_is_being_saved(by_row):
    saving, go_on = Event_(), Event_()
    file = by_row / "app.hf"
    more = file.read_text() + "filter Cold on Temperature where value < 0\n"

    def save(text):
        saving.set()
        assert go_on.wait(PATIENCE)
        file.write_text(text)

    async def story():
        async with of_file(by_row) as (_, service):
            edit = asyncio.create_task(service.define(more, save=save))
            await asyncio.to_thread(saving.wait, PATIENCE)
            again = asyncio.create_task(service.take(file.read_text))
            await asyncio.sleep(0)
            go_on.set()
            assert (await edit).added == ["Cold"]
            assert await again is None
            assert service.core.definition == more

    asyncio.run(story())


def test_no_error_prevents_a_service_from_reloading_its_files(by_row, caplog):
    file = by_row / "app.hf"
    right = file.read_text()

    async def story():
        async with of_file(by_row) as (plan, service):
            asked = asyncio.Event()
            again = asyncio.create_task(_reload(plan, service, asked))
            file.write_text(right.replace("limits.csv", "a\\u0000b"))
            asked.set()
            while "goes on as it was" not in caplog.text:
                assert not again.done()
                await asyncio.sleep(0.01)
            file.write_text(right + "topic Badge ()\n")
            asked.set()
            while "Badge" not in service.topics:
                assert not again.done()
                await asyncio.sleep(0.01)
            again.cancel()

    asyncio.run(story())


def test_a_folder_of_another_version_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "a").mkdir()
    with closing(sqlite3.connect(tmp_path / "a" / "service.db")) as database:
        database.execute("CREATE TABLE snapshots (one INTEGER PRIMARY KEY)")

    async def story():
        with pytest.raises(UsageError, match=r"service\.db is of another version of Holdfast"):
            async with serve(tmp_path / "a"):
                pass

    asyncio.run(story())


def test_a_revision_carries_over_state_and_notifies_changes(tmp_path):
    """Where the log was cut, active scopes continue if that follows; otherwise they are unknown until a
    reading decides. Each change is notified once, also after a restart and when the same edit is repeated."""
    for name in "ab":
        _cut(tmp_path / name)

    def with_(high):
        return APP.replace("value > 25", f"value > {high}")

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(1, 26.0)]))
            await service.wait_until_evaluated()
            change = await service.define(with_(24))
            assert (change.changed, change.incompatible, change.holding) == (["Warm"], [], [])
            assert [(h.subscription, h.since) for h in await service.holding()] == [("Warm", 1)]
            assert await service.forecast(DefinitionEntry(with_(27))) == {"Warm": {"unknown": 1}}
            for high in (27, 24, 27):
                await service.define(with_(high))
            before = [(one.id, one.status) for one in service.store.notifications()]
            assert [status for _, status in before].count("unknown") >= 1
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock, dirs_exist_ok=True)
        async with serve(tmp_path / "b", with_(27)) as service:
            assert [(one.id, one.status) for one in service.store.notifications()] == before
            await service.submit(Submission([reading(2, 20.0)]))
            await service.wait_until_evaluated()
            assert await service.holding() == []
            assert service.store.notifications()[-1].status in ("egress", "known")

    asyncio.run(story())


def test_a_log_is_complete_when_the_service_first_ran_without_readings(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            assert is_whole(service.folder)
        async with serve(tmp_path / "a") as service:
            assert is_whole(service.folder)
            await service.submit(Submission([reading(1, 26.0)]))
        assert is_whole(tmp_path / "a")
        retain(tmp_path / "a", seconds=None, size=0)
        assert not is_whole(tmp_path / "a")

    asyncio.run(story())


def test_a_revision_reads_the_log_only_while_it_is_not_sealed(tmp_path, monkeypatch):
    looks = []

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(1, 26.0)]))
            await service.wait_until_evaluated()
            monkeypatch.setattr(
                core, "is_whole", lambda _: bool(looks.append(service.snapshot_written.done()))
            )
            edit = APP.replace("value > 25", "value > 25.7")
            for ask in (
                lambda: service.forecast(DefinitionEntry(edit)),
                lambda: service.define(edit),
            ):
                service.snapshot_written = Future()
                asked = asyncio.create_task(ask())
                await asyncio.sleep(0.05)
                service.snapshot_written.set_result(None)
                await asked
            assert looks == [True, True]

    asyncio.run(story())


def test_a_revision_reads_topics_of_a_sealed_segment_in_their_order(tmp_path):
    """The room became warm while John was there, who then left."""
    new = """state New
  A = latest Temperature
  B = latest Badge
  enter A.value > 25 && B.name == "John"
  exit  A.value < 22
"""
    came = [
        IncomingEvent(Event("Badge", 5, "door", {"name": "John"}, 5)),
        reading(10, 26.0),
        IncomingEvent(Event("Badge", 20, "door", {"name": "nobody"}, 20)),
    ]

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission(came))
        async with serve(tmp_path / "a") as service:
            await service.define(APP + new)
            assert ("New", 10) in [(h.subscription, h.since) for h in await service.holding()]

    asyncio.run(story())


def test_a_restarted_count_that_is_active_is_notified(tmp_path):
    many = "state Many = at least {} of Warm\n"

    async def story():
        async with serve(tmp_path / "a", APP + many.format(2)) as service:
            await service.submit(Submission([reading(1, 26.0), reading(2, 27.0, "s2")]))
            await service.wait_until_evaluated()
            await service.define(APP + many.format(1), restart=["Many"])
            emitted = [(one.subscription, one.status, one.since) for one in service.store.notifications()]
            assert emitted[-2:] == [("Many", "withdrawn", 2), ("Many", "revised", 1)]
            assert ("Many", 1) in [(h.subscription, h.since) for h in await service.holding()]

    asyncio.run(story())


def test_an_invalid_definition_is_not_logged(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            before = service.log.next
            with pytest.raises(UsageError, match="Temprature"):
                await service.define(APP.replace("Hot  on Temperature", "Hot on Temprature"))
            assert service.log.next == before

    asyncio.run(story())


def test_a_state_moves_to_a_topic_without_readings(tmp_path):
    moved = APP.replace("Warm on Temperature", "Warm on Humidity") + "topic Humidity (value float)\n"

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(7, 26.0)]))
            await service.wait_until_evaluated()
            await service.define(moved)
            assert await service.holding() == []
            emitted = service.store.notifications()[-1]
            assert (emitted.subscription, emitted.status, emitted.time, emitted.since) == (
                "Warm",
                "revised",
                7,
                7,
            )
        async with serve(tmp_path / "a", moved) as service:
            assert await service.holding() == []

    asyncio.run(story())


def test_a_definition_that_cannot_run_does_not_stop_the_service(tmp_path, monkeypatch):
    """The definition is in the log then; the service continues, also after a crash and a restart."""
    saved = []

    def break_off(*_):
        raise OverflowError("too late")

    async def story():
        async with serve(tmp_path / "a") as service:
            await service.submit(Submission([reading(7, 26.0)]))
            await service.wait_until_evaluated()
            monkeypatch.setattr(core, "_revision_row", break_off)
            with pytest.raises(UsageError, match="too late"):
                await service.define(APP.replace("> 25", "> 27"), save=saved.append)
            assert saved == [APP.replace("> 25", "> 27"), APP]
            assert service.core.definition == APP
            assert len(await service.holding()) == 1
            shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=_lock)
        async with serve(tmp_path / "b") as service:
            assert len(await service.holding()) == 1
            monkeypatch.undo()
            await service.define(APP.replace("> 25", "> 27"))
            assert await service.holding() == []

    asyncio.run(story())


def test_readings_are_sealed_as_parquet_when_the_service_stops(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            await feed(service, list(day(20)))
        assert [path.name.partition("-")[2] for path in reading_files(tmp_path / "a")] == [
            "Badge.parquet",
            "Temperature.parquet",
        ]

    asyncio.run(story())


def test_invalid_messages_are_stored_and_counted(tmp_path):
    async def story():
        async with serve(tmp_path / "a") as service:
            await service.reject([Rejected("mqtt", "a/b", "not a number", b"\xffx", 7)])
            assert service.counts.rejected == {"mqtt: not a number": 1}
        async with serve(tmp_path / "a") as service:
            assert service.store.counts() == {"mqtt: not a number": 1}
            assert service.store.rejects() == [
                {"at": 7, "feed": "mqtt", "channel": "a/b", "reason": "not a number", "payload": "\ufffdx"}
            ]

    asyncio.run(story())


def test_a_listener_receives_past_events_and_then_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.service.hub.RECENT", 5)

    async def story():
        async with serve(tmp_path / "a") as service:
            given = list(day())
            await feed(service, given[:60])
            await service.wait_until_evaluated()
            received = []

            async def listen():
                async for some in service.hub.stream(0, most=7):
                    received.extend(some)

            task = asyncio.create_task(listen())
            await feed(service, given[60:])
            await service.wait_until_evaluated()
            while len(received) < len(expected_ids(given)):
                await asyncio.sleep(0.01)
            task.cancel()
            assert [one.position for one in received] == sorted({one.position for one in received})
            assert sorted(one.id for one in received) == expected_ids(given)

    asyncio.run(story())
