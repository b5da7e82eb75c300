"""The service: readings go to the log, from there to the engine, from there to whoever listens.

Each stage has a thread of its own where it waits for the disk or computes: what is slow behind the
engine (sinks, pages) delays nothing before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import DatabaseError
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from ..errors import UsageError
from ..model.instant import SECOND, Duration, Instant
from ..model.topic import Topic
from ..runtimes.local.engine import Holding
from .clock import Feed, WallTime, read_until
from .core import Change, Core
from .evaluation import Evaluation, parts, shown
from .feeds.submission import NOWHERE, Given, Rejected, runs
from .hub import Hub
from .integrity import Integrity
from .log.frame import ORIGIN, Advance, Definition, Entry, Pause, Readings, require_valid
from .log.log import Appended, Log, NoRoom, joined
from .log.seal import FOLDER as READINGS
from .log.seal import retain, seal
from .named import FOLDER, digests, forget, keep, named
from .origins import REMEMBERED_FOR, Origins, Repeated, Request, Requests
from .store import Snapshot, Store, StoreFull, Told, ends
from .timeline import Timeline

T = TypeVar("T")
log = logging.getLogger("holdfast.service")

_GROUP = 64
"""Submissions that one group takes together at most."""
_AHEAD = 8
"""Groups that are in the log and not yet evaluated, at most."""
_NOTE_EVERY = 0.5
"""Seconds after which the database notes how far the log is evaluated, also where nothing is told."""
_TRY_AGAIN = 5.0
"""Seconds after which a snapshot that failed is tried again."""


def wall_clock() -> Instant:
    return time.time_ns() // 1_000


@dataclass(frozen=True)
class Settings:
    """How a service keeps things, and when the clock speaks."""

    idle: Duration = 5 * SECOND
    """How long after an instant the clock alone says that it has passed."""
    snapshot_every: float = 30.0
    seal_every: float = 600.0
    segment_bytes: int = 64 << 20
    keep_seconds: float | None = None
    keep_bytes: int | None = None
    waiting: int = 50_000
    """Readings that may wait for the log."""


class Submission(NamedTuple):
    """What a feed brings at once; ``again`` says that its messages may have been brought before.  Of those of
    one ``request`` the first is taken.  ``read`` is up to when the feeds have brought all readings of a
    topic: the wall clock may let event time come so far."""

    given: Sequence[Given] = ()
    entries: Sequence[Entry] = ()
    again: bool = False
    request: Request | None = None
    read: Mapping[str, Instant] = MappingProxyType({})


@dataclass
class Counts:
    """What the service has done since it started."""

    logged: int = 0
    repeated: int = 0
    """Readings that were brought again and not taken again."""
    corrected: int = 0
    """Readings whose time lay in the future."""
    rejected: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    groups: int = 0


class Service:
    """A definition that runs over a log; feeds submit, sinks and pages look."""

    def __init__(
        self,
        folder: Path,
        base: Path,
        settings: Settings | None = None,
        clock: Callable[[], Instant] = wall_clock,
        *,
        accept_loss: bool = False,
    ) -> None:
        """With ``accept_loss`` a service goes on without what is missing in its log."""
        self.folder, self.settings, self.clock = folder, settings or Settings(), clock
        for inner in (folder, folder / "wal", folder / READINGS, folder / FOLDER):
            inner.mkdir(mode=0o750, parents=True, exist_ok=True)
        try:
            self.store = Store(folder / "service.db")
        except DatabaseError as error:
            raise _damaged(folder, error) from error
        try:
            self.log = Log(folder, segment_bytes=self.settings.segment_bytes, number=self.store.log()[0])
        except BaseException:
            self.store.close()
            raise
        self.base = base
        self.core = Core(base, clock, folder, lambda: wait([self.kept]))
        self.evaluation = Evaluation(self.core, self._rewind, self._set_aside)
        self.counts = Counts()
        self.started = clock()
        self.troubles: dict[str, str] = {}
        """What keeps a part of the service from its work, by part."""
        self.integrity = Integrity(folder)
        self.failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        """Done when the service cannot go on."""
        self._origins, self._requests = Origins(), Requests(self.store.body_of)
        self._waiting: asyncio.Queue[tuple[Submission, asyncio.Future[int]]] = asyncio.Queue()
        self.waiting = 0
        """Readings that wait for the log."""
        self._room = asyncio.Event()
        self._room.set()
        self._logged: asyncio.Queue[list[Appended]] = asyncio.Queue(_AHEAD)
        self._logging, self._evaluating, self._keeping = (
            ThreadPoolExecutor(1, name) for name in ("log", "engine", "keep")
        )
        self.kept: Future[None] = Future()
        """Done when no snapshot is being written; one is begun by the engine's thread alone."""
        self.kept.set_result(None)
        self._heard: Future[None] = self.kept
        """Done when nobody hears the log again beside the engine; until then no snapshot is begun, so that
        nothing is sealed or removed."""
        self._defining, self._forecasting = asyncio.Lock(), asyncio.Lock()
        self._snapshot_at = time.monotonic()
        self._noted, self._ends = 0, False
        self._lags: Mapping[str, Duration] = {}
        """As the database has them."""
        self.feeds: Sequence[Feed] = ()
        self._wall_time = WallTime(self.settings.idle, known=self.store.lags())
        try:
            self.integrity.require_whole(self.log, self.store, accept_loss=accept_loss)
            self._recover()
        except BaseException as error:
            self.store.close()
            self.log.close()
            if isinstance(error, DatabaseError):
                raise _damaged(folder, error) from error
            raise
        self._paused = tuple(sorted(self.core.engine.paused))
        self.hub = Hub(self.store)
        self.timeline = Timeline(folder / "timeline.db")

    def _recover(self) -> None:
        """Go on where the last snapshot was taken: the log says what came after it."""
        snapshot = self.store.snapshot()
        if snapshot is not None:
            self.core.restore(snapshot)
            self._origins.restore(snapshot.origins)
        self.evaluation.aside = dict(self.store.are_aside(self.core.position))
        needed = [*self.core.files.values()]
        for appended in self.log.after(self.core.position):
            self._origins.add(_origins(appended.entry))
            self._requests.add(_requests([appended.entry]), self.clock())
            self.store.add(self.evaluation.take(appended), self.core.position)
            needed += self.core.files.values()
        forget(self.folder / FOLDER, needed)
        self._look()
        self.evaluated = self.core.position
        """The position up to which the log has been evaluated, and what came of it told."""

    def _rewind(self, position: int) -> None:
        """Give the core the state that it had before a position: that of the last snapshot, and what came
        after it once more."""
        wait([self.kept])
        core = self.core.copy(self.store.snapshot())
        for appended in self.log.after(core.position, position):
            for part in parts(appended, self.evaluation.aside, position):
                core.take(part)
        self.core.rewind(core)

    def _set_aside(self, part: Appended, reason: str) -> None:
        """Count and keep what cannot be evaluated, and remember to pass over it."""
        topic = part.entry.topic if isinstance(part.entry, Readings) else type(part.entry).__name__
        rejected = Rejected("log", f"{topic} at {part.position}", reason, shown(part.entry), self.clock())
        found = Counter({f"log: {reason}": part.after - part.position})
        self.counts.rejected.update(found)
        with suppress(StoreFull):  # it fails again after a restart, and is set aside again
            self.store.reject([rejected], found)
            self.store.set_aside(part.position, part.after - part.position)

    def _look(self) -> None:
        """What other threads may know of the engine."""
        self.topics: Mapping[str, Topic] = self.core.topics
        self._due = self.core.engine.due
        self._reached = dict(self.core.engine.reached)
        self._together, self._spread = self.core.together, self.core.spread

    # --- taking readings ---

    async def submit(self, submission: Submission) -> int:
        """Bring readings; comes back when the log has them, with how many were new.  A request that was taken
        before is ``Repeated``."""
        await self._room.wait()
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._count_waiting(_rows(submission))
        self._waiting.put_nowait((submission, done))
        return await done

    def _count_waiting(self, rows: int) -> None:
        self.waiting += rows
        if self.waiting < self.settings.waiting:
            self._room.set()
        else:
            self._room.clear()

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        """Keep and count what was no reading."""
        if not rejected:
            return
        found = Counter(f"{one.feed}: {one.reason}" for one in rejected)
        self.counts.rejected.update(found)
        with suppress(StoreFull):  # it is counted; there is no room to keep it
            await asyncio.to_thread(self.store.reject, rejected, found)

    async def _to_log(self) -> None:
        """The first stage: groups of submissions become durable, and are acknowledged."""
        while True:
            group = [await self._waiting.get()]
            while len(group) < _GROUP and not self._waiting.empty():
                group.append(self._waiting.get_nowait())
            appended, taken = await self._durable([one for one, _ in group])
            for (submission, done), count in zip(group, taken, strict=True):
                self._count_waiting(-_rows(submission))
                if done.done():
                    continue
                if isinstance(count, Repeated):
                    done.set_exception(count)
                else:
                    done.set_result(count)
            if appended:
                await self._logged.put(appended)

    async def _durable(self, group: list[Submission]) -> tuple[list[Appended], list[int | Repeated]]:
        """A group in the log, however long that takes."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                done = await loop.run_in_executor(self._logging, self._append, group)
            except NoRoom as full:
                self._in_trouble("log", str(full))
                await asyncio.sleep(1)
                continue
            self._in_trouble("log")
            return done

    def _append(self, group: list[Submission]) -> tuple[list[Appended], list[int | Repeated]]:
        """Append what is new of a group, in the log's thread."""
        try:
            entries, taken = self._entries(group)
        except Exception:
            log.exception("readings cannot become entries of the log: they are looked at one by one")
            group[:] = map(self._usable, group)
            entries, taken = self._entries(group)
        appended = self.log.append(entries) if entries else []
        self._origins.add(origin for entry in entries for origin in _origins(entry))
        new = [one.request for one, count in zip(group, taken, strict=True) if type(count) is int]
        self._requests.add([one for one in new if one is not None], self.clock())
        number = sum(count for count in taken if type(count) is int)
        self.counts.logged += number
        self.counts.repeated += sum(map(_rows, group)) - number
        if appended:
            self.counts.groups += 1
            with suppress(NoRoom):  # the group is in the log; the next one will say it
                self.log.rotate(self.settings.seal_every)
        return appended, taken

    def _usable(self, submission: Submission) -> Submission:
        """A submission without what no entry can hold, which is rejected."""
        bad: list[Rejected] = []
        given = [one for one in submission.given if self._is_usable(one.event.topic, one, bad)]
        entries = [one for one in submission.entries if self._is_usable("", one, bad)]
        found = Counter(f"{one.feed}: {one.reason}" for one in bad)
        self.counts.rejected.update(found)
        with suppress(StoreFull):
            self.store.reject(bad, found)
        return submission._replace(given=given, entries=entries)

    def _is_usable(self, topic: str, what: Given | Entry, bad: list[Rejected]) -> bool:
        try:
            for one in self._runs([what]) if isinstance(what, Given) else [what]:
                require_valid(one)
        except Exception as error:
            said = repr(what).encode() if isinstance(what, Given) else shown(what)
            topic = what.topic if isinstance(what, Readings) else topic
            bad.append(Rejected("log", topic, f"the log cannot hold it: {error}", said, self.clock()))
            return False
        return True

    def _entries(self, group: list[Submission]) -> tuple[list[Entry], list[int | Repeated]]:
        """What is new of a group as entries, and how many readings of each submission that are."""
        entries: list[Entry] = []
        given: list[Given] = []
        taken: list[int | Repeated] = []
        fresh: set[int] = set()
        requests: dict[bytes, bytes] = {}
        for submission in group:
            request = submission.request
            if request is not None:
                if (repeated := self._requests.repeated(request, requests)) is not None:
                    taken.append(repeated)
                    continue
                requests[request.key] = request.body
            mine = [one for one in submission.given if self._is_new(one.origin, submission, fresh)]
            self._note_lags(mine, submission.entries)
            fresh.update(one.origin for one in mine)
            if request is not None or submission.entries:
                entries += self._runs(given)
                given = []
                known = (self._resumed(one, submission.read) for one in submission.entries)
                own = [*self._runs(mine if request else ()), *known]
                entries += own if request is None else [_of_request(one, request) for one in own]
            if request is None:
                given += mine
            taken.append(len(mine) + sum(map(_size, submission.entries)))
        entries += self._runs(given)
        if reads := [one.read for one in group if one.read]:
            entries += self._advance(reads[-1])
        for entry in entries:
            require_valid(entry)
        return entries, taken

    def _note_lags(self, given: Iterable[Given], entries: Iterable[Entry]) -> None:
        """Remember how long readings took to arrive."""
        now, lags = self.clock(), self._wall_time.lags
        for event, _ in given:
            lags.add(event.topic, event.source, now - event.time, now)
        for entry in entries:
            if isinstance(entry, Readings):
                lags.add_batch(entry.topic, entry.batch, now)

    def _until(self, read: Mapping[str, Instant]) -> dict[str, Instant]:
        """How far the wall clock lets event time come."""
        return self._wall_time.advance(read, self._reached, self._together, self._spread)

    def _resumed(self, entry: Entry, read: Mapping[str, Instant]) -> Entry:
        """A pause with how far time has come for those that go on: it counts for none of their scopes."""
        return entry._replace(until=self._until(read)) if isinstance(entry, Pause) else entry

    def _advance(self, read: Mapping[str, Instant]) -> list[Entry]:
        """Let event time come as far as the wall clock allows, where something is due."""
        until = self._until(read)
        is_due = self._due is not None and max(until.values(), default=self._due) > self._due
        return [Advance(until)] if is_due else []

    def _is_new(self, origin: int, submission: Submission, fresh: set[int]) -> bool:
        if origin == NOWHERE or not submission.again:
            return True
        return origin not in self._origins and origin not in fresh

    def _runs(self, given: Iterable[Given]) -> Iterator[Readings]:
        """The readings as entries; a topic that was taken away meanwhile takes its readings with it."""
        topics = self.topics
        return runs(topics, [one for one in given if one.event.topic in topics])

    def _in_trouble(self, part: str, what: str | None = None) -> None:
        if what != self.troubles.get(part):
            log.warning("%s", what or f"{part}: goes on")
            others = {name: text for name, text in self.troubles.items() if name != part}
            self.troubles = others | ({part: what} if what else {})

    # --- evaluation ---

    async def _to_engine(self) -> None:
        """The second stage: what is in the log is evaluated, and told."""
        while True:
            group = await self._logged.get()
            while not self._logged.empty():
                group = group + self._logged.get_nowait()
            self.hub.publish(await self.on_engine(self._evaluate, group))
            self.evaluated = group[-1].after

    async def on_engine(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something in the engine's thread, between two groups."""
        return await asyncio.get_running_loop().run_in_executor(self._evaluating, work, *arguments)

    def _evaluate(self, group: list[Appended]) -> list[Told]:
        told = [one for appended in joined(group) for one in self.evaluation.take(appended)]
        self._look()
        fresh = self._kept(told) if told else []
        self.counts.told.update(one.subscription for one in fresh)
        is_time = time.monotonic() - self._snapshot_at > self.settings.snapshot_every
        if is_time and self.kept.done() and self._heard.done():
            self.keep()
        return fresh

    def _kept(self, told: list[Told]) -> list[Told]:
        """Notifications in the database, however long that takes."""
        while True:
            try:
                fresh = self.store.add(told, self.core.position)
                self._noted = self.core.position
            except StoreFull as full:
                self._in_trouble("notifications", str(full))
                if self._ends:  # the log has all: the next start goes on from the last snapshot
                    raise
                time.sleep(1)
                continue
            self._in_trouble("notifications")
            return fresh

    def keep(self) -> None:
        """Take a snapshot, in the engine's thread; it is written in another, and delays no reading."""
        self._snapshot_at = time.monotonic()
        self.kept = self._keeping.submit(self._keep, self.core.snapshot(self._origins.to_bytes()))

    def _keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and seal the segments that it makes dispensable."""
        try:
            requests, before = self._requests.fresh(), self.clock() - REMEMBERED_FOR
            self.store.keep(snapshot, requests, before)
            self._requests.kept(requests)
            seal(self.folder, snapshot.position)
            retain(self.folder, seconds=self.settings.keep_seconds, size=self.settings.keep_bytes)
            if self.settings.keep_seconds is not None:
                before = self.clock() - int(self.settings.keep_seconds * SECOND)
                self.store.forget(before)
                self.timeline.forget(before)
            self._in_trouble("snapshot")
        except Exception as error:  # whatever it is, the log has all: it is tried again
            if not isinstance(error, StoreFull | OSError):
                log.exception("no snapshot can be taken")
            self._in_trouble("snapshot", f"no snapshot can be taken: {error}")

    async def _to_database(self) -> None:
        """Note how far the log is evaluated, and try again to take a snapshot that failed, also where nothing
        comes."""
        while True:
            await asyncio.sleep(min(_NOTE_EVERY, _TRY_AGAIN))
            if self.evaluated > self._noted:
                await self.on_engine(self._note)
            is_time = time.monotonic() - self._snapshot_at > _TRY_AGAIN
            if "snapshot" in self.troubles and is_time and self.kept.done() and self._heard.done():
                await self.on_engine(self.keep)

    def _note(self) -> None:
        with suppress(StoreFull):  # the next snapshot or notification says it
            self.store.add([], self.core.position)
            self._noted = self.core.position
            if (lags := self._wall_time.known) != self._lags:
                self.store.note_lags(lags)
                self._lags = lags

    async def _to_timeline(self) -> None:
        await self.timeline.follow(self.hub)

    async def attend(self, feeds: Sequence[Feed]) -> None:
        """Have feeds, before they bring anything: timers over their topics wait until they have caught up."""
        self.feeds = feeds
        await self._pause({})  # nobody could bring anything until now
        await self._pause(read_until(feeds, self.topics, self.clock()))

    async def _pause(self, read: Mapping[str, Instant]) -> None:
        """Let timers wait over topics of which not all is read."""
        paused = tuple(sorted(self.topics.keys() - read.keys()))
        if paused != self._paused:
            self._paused = paused
            await self.submit(Submission(entries=[Pause(paused)], read=read))

    async def _by_the_clock(self) -> None:
        """Let time go on where nothing comes: what is due without a reading becomes an entry of the log."""
        while True:
            await asyncio.sleep(0.2)
            await self.look_at_the_clock()

    async def look_at_the_clock(self) -> None:
        """Let the event time of topics of which all is read come as far as the wall clock allows."""
        read = read_until(self.feeds, self.topics, self.clock())
        await self._pause(read)
        if read and self._due is not None:
            await self.submit(Submission(read=read))

    # --- what runs, and what holds ---

    async def define(
        self, text: str, restart: Iterable[str] = (), save: Callable[[str], None] | None = None
    ) -> Change:
        """Run another definition from the next entry on, or the same with its files as they are now; what
        cannot be is refused."""
        async with self._defining:
            definition = await self._with_files(text)
            return await self._define(replace(definition, restart=tuple(restart)), save)

    async def take(self, read: Callable[[], str], restart: Sequence[str] = ()) -> Change | None:
        """Run the definition as it is read now, with the files that it names; ``None`` if all are as before.
        Of those to ``restart`` only they begin afresh that cannot keep what is known of them."""
        async with self._defining:
            text = await asyncio.to_thread(read)
            if text == self.core.definition and not await asyncio.to_thread(self.has_other_files):
                return None
            definition = await self._with_files(text)
            afresh = (await self.on_engine(self.core.change, definition)).afresh if restart else []
            restart = tuple(name for name in restart if name in afresh)
            return await self._define(replace(definition, restart=restart))

    async def _with_files(self, text: str) -> Definition:
        """A definition with the files that it names as they are now, which are kept."""
        files = await asyncio.to_thread(lambda: keep(named(text, self.base), self.folder / FOLDER))
        return Definition(text, (), self.clock(), files)

    async def _define(self, definition: Definition, save: Callable[[str], None] | None = None) -> Change:
        change, before = await self.on_engine(self.core.require_change, definition), self.core.definition
        if save is not None:
            await asyncio.to_thread(save, definition.text)
        await self.submit(Submission(entries=[definition]))
        await self.settled()
        if self.core.refused is not None:
            if save is not None:
                await asyncio.to_thread(save, before)
            raise UsageError(f"the definition cannot be taken: {self.core.refused}")
        return change

    def has_other_files(self) -> bool:
        """Whether a file that the definition names is not as it was when it was taken."""
        return digests(named(self.core.definition, self.base)) != self.core.files

    async def forecast(self, definition: Definition) -> dict[str, dict[str, int]]:
        """How many scopes of each subscription would change by another definition.  The log is heard again
        beside the engine, which goes on meanwhile."""
        return await asyncio.shield(self._forecast(definition))  # to its end, also when who asked is gone

    async def _forecast(self, definition: Definition) -> dict[str, dict[str, int]]:
        async with self._forecasting:
            snapshot = await self.on_engine(self._begin_hearing)
            try:
                return await asyncio.to_thread(lambda: self.core.copy(snapshot).forecast(definition))
            finally:
                self._heard.set_result(None)

    def _begin_hearing(self) -> Snapshot:
        snapshot = self.core.snapshot()
        self._heard = Future()
        return snapshot

    async def holding(self) -> list[Holding]:
        """What holds now."""
        return await self.on_engine(lambda: self.core.engine.holding())

    async def announced(self) -> list[Holding]:
        """What is active and was notified, at the level that was notified last: a mute of the definition
        withholds both."""
        active = await self.holding()
        targets = {one.target for one in self.core.checked.muted}
        muted = [one for one in active if one.subscription in targets]
        last = await asyncio.to_thread(lambda: {one[:2]: self.store.last_of(*one[:2]) for one in muted})
        rest = [one for one in active if one.subscription not in targets]
        return rest + [
            one._replace(level=row.level)
            for one in muted
            if (row := last[one[:2]]) is not None and not ends(row)
        ]

    async def settled(self) -> None:
        """Comes back when what is in the log now has been evaluated."""
        position = self.log.next
        while self.evaluated < position:
            if self.failed.done():
                raise self.failed.result()
            await asyncio.sleep(0.002)

    # --- running ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At work until the context ends; then everything is in the log, and a snapshot stands after it."""
        stages = [self._to_log, self._to_engine, self._by_the_clock, self._to_timeline]
        stages += [self._to_database, self.integrity.look]
        tasks = [asyncio.create_task(self._watched(stage)) for stage in stages]
        try:
            yield
        finally:
            while (self.waiting or self.evaluated < self.log.next) and not self._is_stuck:
                await asyncio.sleep(0.01)
            self._ends = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.on_engine(self._stop)
            self.close()

    @property
    def takes_readings(self) -> bool:
        """Whether the log can be written."""
        return "log" not in self.troubles

    @property
    def _is_stuck(self) -> bool:
        return not {"log", "notifications"}.isdisjoint(self.troubles) or self.failed.done()

    async def _watched(self, stage: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await stage()
        except Exception as error:
            log.exception("the service cannot go on")
            if not self.failed.done():
                self.failed.set_result(error)

    def _stop(self) -> None:
        wait([self.kept, self._heard])
        if not self._is_stuck:
            self._note()
            with suppress(NoRoom):
                self.log.rotate(0)
            self.keep()
            self.kept.result()

    def close(self) -> None:
        """Let go of the folder."""
        self._logging.shutdown()
        self._evaluating.shutdown()
        self._keeping.shutdown()
        self.store.close()
        self.timeline.close()
        self.log.close()


def _origins(entry: Entry) -> list[int]:
    return np.asarray(entry.batch.column(ORIGIN)).tolist() if isinstance(entry, Readings) else []


def _damaged(folder: Path, error: DatabaseError) -> UsageError:
    return UsageError(
        f"{folder / 'service.db'}: {error}. Restore the whole folder from one backup; or move service.db "
        "away and start with --accept-loss: what the log still has is then computed again"
    )


def _of_request(entry: Entry, request: Request) -> Entry:
    return entry._replace(request=request.to_bytes()) if isinstance(entry, Readings) else entry


def _requests(entries: Iterable[Entry]) -> list[Request]:
    """The requests that brought entries."""
    found = dict.fromkeys(one.request for one in entries if isinstance(one, Readings) and one.request)
    return list(map(Request.from_bytes, found))


def _size(entry: Entry) -> int:
    return len(entry.batch) if isinstance(entry, Readings) else 0


def _rows(submission: Submission) -> int:
    return len(submission.given) + sum(map(_size, submission.entries))
