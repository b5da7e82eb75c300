"""The service: readings go to the log, from there to the engine, and from there to sinks and pages.

Each stage has its own thread for waiting on the disk or for computing. Sinks and pages never delay the stages
before them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import DatabaseError
from typing import Any, TypeVar

from msgspec.structs import replace

from ..errors import UsageError
from ..model.instant import SECOND, Duration, Instant
from ..model.topic import Topic
from ..runtimes.local.engine import Holding
from .clock import WallTime, read_until
from .core import Core, DefinitionChange
from .evaluation import Evaluation, parts, printable
from .feeds.feed import Feed
from .feeds.submission import Rejected
from .hub import Hub
from .intake import EngineState, Intake, Submission
from .integrity import Integrity
from .log.frame import DefinitionEntry, Pause, Readings
from .log.log import Appended, Log, NoRoom, join_readings
from .log.seal import FOLDER as READINGS
from .log.seal import retain, seal
from .named import FOLDER, digests, read_named_files, remove_unused_copies, store_copies
from .origins import REMEMBERED_FOR, Origins, RepeatedRequest, Requests
from .store import NotificationRow, ServiceSnapshot, ServiceStore, StoreFull, ends_condition
from .timeline import Timeline

T = TypeVar("T")
log = logging.getLogger("holdfast.service")

_GROUP = 64
"""How many submissions one group has at most."""
_AHEAD = 8
"""How many groups may be in the log and not yet evaluated."""
_NOTE_EVERY = 0.5
"""Seconds after which the evaluated position is stored, also without notifications."""
_TRY_AGAIN = 5.0
"""Seconds after which a failed snapshot is repeated."""


def wall_clock() -> Instant:
    return time.time_ns() // 1_000


@dataclass(frozen=True)
class Settings:
    """The intervals and limits of a service.

    ``Duration`` fields are in microseconds, ``float`` fields in seconds.
    """

    idle: Duration = 5 * SECOND
    """How long after an instant the wall clock alone advances event time beyond it."""
    snapshot_every: float = 30.0
    seal_every: float = 600.0
    segment_bytes: int = 64 << 20
    keep_seconds: float | None = None
    keep_bytes: int | None = None
    waiting: int = 50_000
    """How many readings may wait for the log."""


@dataclass
class ServiceCounts:
    """Counters since the start of the service, for the status page and the metrics."""

    logged: int = 0
    repeated: int = 0
    """Readings that were recognized as repetitions."""
    corrected: int = 0
    """Readings with a time in the future, which was replaced by their arrival."""
    rejected: Counter[str] = field(default_factory=Counter)
    notifications: Counter[str] = field(default_factory=Counter)
    groups: int = 0


class Service:
    """A definition that runs over a log. Feeds submit readings; sinks and pages read from the hub.

    Its coroutines run in one event loop. The constructor blocks until the log is replayed from the last
    snapshot. Then use the service inside ``running``.
    """

    def __init__(
        self,
        folder: Path,
        base: Path,
        settings: Settings | None = None,
        clock: Callable[[], Instant] = wall_clock,
        *,
        accept_loss: bool = False,
    ) -> None:
        """Open the data in ``folder`` and replay the log. ``base`` is the folder of the definition's files.

        With ``accept_loss`` the service continues without the missing parts of its log.
        """
        self.folder, self.settings, self.clock = folder, settings or Settings(), clock
        for inner in (folder, folder / "wal", folder / READINGS, folder / FOLDER):
            inner.mkdir(mode=0o750, parents=True, exist_ok=True)
        try:
            self.store = ServiceStore(folder / "service.db")
        except DatabaseError as error:
            raise _damage_error(folder, error) from error
        try:
            self.log = Log(folder, segment_bytes=self.settings.segment_bytes, number=self.store.log()[0])
        except BaseException:
            self.store.close()
            raise
        self.base = base
        self.core = Core(base, clock, folder, lambda: wait([self.snapshot_written]))
        self.evaluation = Evaluation(self.core, self._rewind, self._skip)
        self.counts = ServiceCounts()
        self.started = clock()
        self.troubles: dict[str, str] = {}
        """What prevents a part of the service from working, by part."""
        self.integrity = Integrity(folder)
        self.failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        """Done when the service cannot continue."""
        self._origins, self._requests = Origins(), Requests(self.store.request_body)
        self._waiting: asyncio.Queue[tuple[Submission, asyncio.Future[int]]] = asyncio.Queue()
        self.waiting = 0
        """How many readings wait for the log."""
        self._room = asyncio.Event()
        self._room.set()
        self._logged: asyncio.Queue[list[Appended]] = asyncio.Queue(_AHEAD)
        self._logging, self._evaluating, self._keeping = (
            ThreadPoolExecutor(1, name) for name in ("log", "engine", "keep")
        )
        self.snapshot_written: Future[None] = Future()
        """Done when no snapshot is being written. Only the engine's thread starts one."""
        self.snapshot_written.set_result(None)
        self.forecast_done: Future[None] = self.snapshot_written
        """Done when no forecast reads the log. Until then no snapshot is started, so that nothing is
        sealed or removed."""
        self._defining, self._forecasting = asyncio.Lock(), asyncio.Lock()
        self._snapshot_at = time.monotonic()
        self._stored_position, self._is_stopping = 0, False
        self._lags: Mapping[str, Duration] = {}
        """The lags as stored in the database."""
        self.feeds: Sequence[Feed] = ()
        self._wall_time = WallTime(self.settings.idle, lags_known=self.store.lags())
        self._intake = Intake(
            self._origins, self._requests, self._wall_time, lambda: self.clock(), lambda: self._state
        )
        try:
            self.integrity.require_whole(self.log, self.store, accept_loss=accept_loss)
            self._recover()
        except BaseException as error:
            self.store.close()
            self.log.close()
            if isinstance(error, DatabaseError):
                raise _damage_error(folder, error) from error
            raise
        self._paused = tuple(sorted(self.core.engine.paused))
        self.hub = Hub(self.store)
        self.timeline = Timeline(folder / "timeline.db")

    def _recover(self) -> None:
        """Restore the last snapshot and evaluate the log entries after it."""
        snapshot = self.store.snapshot()
        if snapshot is not None:
            self.core.restore(snapshot)
            self._origins.restore(snapshot.origins)
        self.evaluation.skips = dict(self.store.positions_to_skip(self.core.position))
        needed = [*self.core.files.values()]
        for appended in self.log.after(self.core.position):
            self._intake.add([appended.entry])
            self.store.add(self.evaluation.take(appended), self.core.position)
            needed += self.core.files.values()
        remove_unused_copies(self.folder / FOLDER, needed)
        self._publish_state()
        self.evaluated = self.core.position
        """The position up to which the log has been evaluated and the notifications published."""

    def _rewind(self, position: int) -> None:
        """Restore the core's state before a position, from the last snapshot and the entries after it."""
        wait([self.snapshot_written])
        core = self.core.copy(self.store.snapshot())
        for appended in self.log.after(core.position, position):
            for part in parts(appended, self.evaluation.skips, position):
                core.take(part)
        self.core.rewind(core)

    def _skip(self, part: Appended, reason: str) -> None:
        """Count and store an entry that cannot be evaluated, and record that it is skipped from now on."""
        topic = part.entry.topic if isinstance(part.entry, Readings) else type(part.entry).__name__
        rejected = Rejected("log", f"{topic} at {part.position}", reason, printable(part.entry), self.clock())
        found = Counter({f"log: {reason}": part.after - part.position})
        self.counts.rejected.update(found)
        with suppress(StoreFull):  # after a restart it fails again, and is skipped again
            self.store.reject([rejected], found)
            self.store.skip(part.position, part.after - part.position)

    def _publish_state(self) -> None:
        """Publish a new ``EngineState`` for other threads. Runs in the engine's thread."""
        core = self.core
        self._state = EngineState(
            core.topics, core.engine.due, dict(core.engine.watermarks), core.together, core.spread
        )

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The declared topics by name. Can be read from any thread."""
        return self._state.topics

    # --- taking readings ---

    async def submit(self, submission: Submission) -> int:
        """Submit readings. Return how many of them were new, after the log has them.

        Raises ``RepeatedRequest`` for a request that was accepted before.
        """
        await self._room.wait()
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._count_waiting(submission.size)
        self._waiting.put_nowait((submission, done))
        return await done

    def _count_waiting(self, rows: int) -> None:
        self.waiting += rows
        if self.waiting < self.settings.waiting:
            self._room.set()
        else:
            self._room.clear()

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        """Store and count input that cannot be used, with the reasons."""
        if not rejected:
            return
        found = Counter(f"{one.feed}: {one.reason}" for one in rejected)
        self.counts.rejected.update(found)
        with suppress(StoreFull):  # it is counted in memory
            await asyncio.to_thread(self.store.reject, rejected, found)

    async def _run_log(self) -> None:
        """Run the first stage: append groups of submissions to the log, and resolve their futures."""
        while True:
            group = [await self._waiting.get()]
            while len(group) < _GROUP and not self._waiting.empty():
                group.append(self._waiting.get_nowait())
            appended, taken = await self._append_group([one for one, _ in group])
            for (submission, done), count in zip(group, taken, strict=True):
                self._count_waiting(-submission.size)
                if done.done():
                    continue
                if isinstance(count, RepeatedRequest):
                    done.set_exception(count)
                else:
                    done.set_result(count)
            if appended:
                await self._logged.put(appended)

    async def _append_group(
        self, group: list[Submission]
    ) -> tuple[list[Appended], list[int | RepeatedRequest]]:
        """Append a group to the log. Retries while there is no room."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                done = await loop.run_in_executor(self._logging, self._append, group)
            except NoRoom as full:
                self._set_trouble("log", str(full))
                await asyncio.sleep(1)
                continue
            self._set_trouble("log")
            return done

    def _append(self, group: list[Submission]) -> tuple[list[Appended], list[int | RepeatedRequest]]:
        """Append the new readings of a group. Runs in the log's thread."""
        try:
            entries, counts = self._intake.to_entries(group)
        except Exception:
            log.exception("readings cannot become entries of the log: they are looked at one by one")
            group[:] = map(self._reject_unusable, group)
            entries, counts = self._intake.to_entries(group)
        appended = self.log.append(entries) if entries else []
        requests = [one.request for one, count in zip(group, counts, strict=True) if type(count) is int]
        self._intake.add(entries, [request for request in requests if request is not None])
        number = sum(count for count in counts if type(count) is int)
        self.counts.logged += number
        self.counts.repeated += sum(submission.size for submission in group) - number
        if appended:
            self.counts.groups += 1
            with suppress(NoRoom):  # the group is in the log; the next one reports the error
                self.log.rotate(self.settings.seal_every)
        return appended, counts

    def _reject_unusable(self, submission: Submission) -> Submission:
        usable, bad = self._intake.split(submission)
        found = Counter(f"{rejected.feed}: {rejected.reason}" for rejected in bad)
        self.counts.rejected.update(found)
        with suppress(StoreFull):
            self.store.reject(bad, found)
        return usable

    def _set_trouble(self, part: str, what: str | None = None) -> None:
        if what != self.troubles.get(part):
            log.warning("%s", what or f"{part}: goes on")
            remaining = {name: text for name, text in self.troubles.items() if name != part}
            self.troubles = remaining | ({part: what} if what else {})

    # --- evaluation ---

    async def _run_engine(self) -> None:
        """Run the second stage: evaluate log entries and publish the notifications."""
        while True:
            group = await self._logged.get()
            while not self._logged.empty():
                group = group + self._logged.get_nowait()
            self.hub.publish(await self.on_engine(self._evaluate, group))
            self.evaluated = group[-1].after

    async def on_engine(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a function in the engine's thread, between two groups, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._evaluating, work, *arguments)

    def _evaluate(self, group: list[Appended]) -> list[NotificationRow]:
        notifications = [one for appended in join_readings(group) for one in self.evaluation.take(appended)]
        self._publish_state()
        fresh = self._store_notifications(notifications) if notifications else []
        self.counts.notifications.update(one.subscription for one in fresh)
        is_time = time.monotonic() - self._snapshot_at > self.settings.snapshot_every
        if is_time and self.snapshot_written.done() and self.forecast_done.done():
            self.take_snapshot()
        return fresh

    def _store_notifications(self, notifications: list[NotificationRow]) -> list[NotificationRow]:
        """Store notifications and return the new ones. Retries while the database cannot be written."""
        while True:
            try:
                fresh = self.store.add(notifications, self.core.position)
                self._stored_position = self.core.position
            except StoreFull as full:
                self._set_trouble("notifications", str(full))
                if self._is_stopping:  # the log has all: the next start continues from the last snapshot
                    raise
                time.sleep(1)
                continue
            self._set_trouble("notifications")
            return fresh

    def take_snapshot(self) -> None:
        """Take a snapshot.

        Runs in the engine's thread; another thread writes it, so that readings are not delayed.
        """
        self._snapshot_at = time.monotonic()
        self.snapshot_written = self._keeping.submit(
            self._write_snapshot, self.core.snapshot(self._origins.to_bytes())
        )

    def _write_snapshot(self, snapshot: ServiceSnapshot) -> None:
        """Store a snapshot, seal the log segments before it, and remove data that is too old."""
        try:
            requests, before = self._requests.unsaved(), self.clock() - REMEMBERED_FOR
            self.store.save_snapshot(snapshot, requests, before)
            self._requests.forget(requests)
            seal(self.folder, snapshot.position)
            retain(self.folder, seconds=self.settings.keep_seconds, size=self.settings.keep_bytes)
            if self.settings.keep_seconds is not None:
                before = self.clock() - int(self.settings.keep_seconds * SECOND)
                self.store.forget(before)
                self.timeline.forget(before)
            self._set_trouble("snapshot")
        except Exception as error:  # nothing is lost: the log has all, and the next snapshot repeats it
            if not isinstance(error, StoreFull | OSError):
                log.exception("no snapshot can be taken")
            self._set_trouble("snapshot", f"no snapshot can be taken: {error}")

    async def _run_notes(self) -> None:
        """Store the evaluated position and retry a failed snapshot at intervals, also without input."""
        while True:
            await asyncio.sleep(min(_NOTE_EVERY, _TRY_AGAIN))
            if self.evaluated > self._stored_position:
                await self.on_engine(self._store_position)
            is_time = time.monotonic() - self._snapshot_at > _TRY_AGAIN
            if (
                "snapshot" in self.troubles
                and is_time
                and self.snapshot_written.done()
                and self.forecast_done.done()
            ):
                await self.on_engine(self.take_snapshot)

    def _store_position(self) -> None:
        with suppress(StoreFull):  # the next snapshot or notification stores it
            self.store.add([], self.core.position)
            self._stored_position = self.core.position
            if (lags := self._wall_time.lags_known) != self._lags:
                self.store.note_lags(lags)
                self._lags = lags

    async def _run_timeline(self) -> None:
        await self.timeline.follow(self.hub)

    async def attach_feeds(self, feeds: Sequence[Feed]) -> None:
        """Set the feeds before they deliver anything.

        Timers over their topics wait until the feeds have no backlog.
        """
        self.feeds = feeds
        await self._pause({})  # feeds could not deliver anything until now
        await self._pause(read_until(feeds, self.topics, self.clock()))

    async def _pause(self, read: Mapping[str, Instant]) -> None:
        """Pause the timers of topics that are not in ``read``.

        Some readings of these topics may not have arrived.
        """
        paused = tuple(sorted(self.topics.keys() - read.keys()))
        if paused != self._paused:
            self._paused = paused
            await self.submit(Submission(entries=[Pause(paused)], read=read))

    async def _run_clock(self) -> None:
        """Advance event time five times per second. A timer that is due becomes an entry of the log."""
        while True:
            await asyncio.sleep(0.2)
            await self.advance_clock()

    async def advance_clock(self) -> None:
        """Advance the event time of topics without a backlog up to the limits of the wall clock."""
        read = read_until(self.feeds, self.topics, self.clock())
        await self._pause(read)
        if read and self._state.due is not None:
            await self.submit(Submission(read=read))

    # --- what runs, and what holds ---

    async def define(
        self, text: str, restart: Iterable[str] = (), save: Callable[[str], None] | None = None
    ) -> DefinitionChange:
        """Run another definition from the next entry on, and return its changes.

        The text can be the running one; then the current content of the files that it names is used.
        ``restart`` names the conditions that start without state. ``save`` is called with the text before it
        runs. Raises an error if the definition cannot replace the running one.
        """
        async with self._defining:
            definition = await self._with_files(text)
            return await self._define(replace(definition, restart=tuple(restart)), save)

    async def take(self, read: Callable[[], str], restart: Sequence[str] = ()) -> DefinitionChange | None:
        """Reload the definition and the files that it names. Returns ``None`` if nothing has changed.

        Of the conditions in ``restart`` only those restart that cannot carry over their state.
        """
        async with self._defining:
            text = await asyncio.to_thread(read)
            if text == self.core.definition and not await asyncio.to_thread(self.files_have_changed):
                return None
            definition = await self._with_files(text)
            incompatible = (
                (await self.on_engine(self.core.change, definition)).incompatible if restart else []
            )
            restart = tuple(name for name in restart if name in incompatible)
            return await self._define(replace(definition, restart=restart))

    async def _with_files(self, text: str) -> DefinitionEntry:
        """Return a definition entry, after storing copies of the files that the definition names."""
        files = await asyncio.to_thread(
            lambda: store_copies(read_named_files(text, self.base), self.folder / FOLDER)
        )
        return DefinitionEntry(text, (), self.clock(), files)

    async def _define(
        self, definition: DefinitionEntry, save: Callable[[str], None] | None = None
    ) -> DefinitionChange:
        change, before = await self.on_engine(self.core.require_change, definition), self.core.definition
        if save is not None:
            await asyncio.to_thread(save, definition.text)
        await self.submit(Submission(entries=[definition]))
        await self.wait_until_evaluated()
        if self.core.definition_error is not None:
            if save is not None:
                await asyncio.to_thread(save, before)
            raise UsageError(f"the definition cannot be taken: {self.core.definition_error}")
        return change

    def files_have_changed(self) -> bool:
        """Whether a file that the definition names has changed since it was accepted."""
        return digests(read_named_files(self.core.definition, self.base)) != self.core.files

    async def forecast(self, definition: DefinitionEntry) -> dict[str, dict[str, int]]:
        """Count how many scopes of each subscription another definition would change.

        The log is read in another thread, beside the running engine.
        """
        return await asyncio.shield(
            self._forecast(definition)
        )  # it must release the log, even if the client disconnects

    async def _forecast(self, definition: DefinitionEntry) -> dict[str, dict[str, int]]:
        async with self._forecasting:
            snapshot = await self.on_engine(self._snapshot_for_forecast)
            try:
                return await asyncio.to_thread(lambda: self.core.copy(snapshot).forecast(definition))
            finally:
                self.forecast_done.set_result(None)

    def _snapshot_for_forecast(self) -> ServiceSnapshot:
        snapshot = self.core.snapshot()
        self.forecast_done = Future()
        return snapshot

    async def holding(self) -> list[Holding]:
        """Return the active scopes, as the engine has them after its current group."""
        return await self.on_engine(lambda: self.core.engine.holding())

    async def active_for_sinks(self) -> list[Holding]:
        """Return the active scopes whose start was notified, with the level of the last notification.

        A scope that a ``mute`` of the definition suppresses is left out, or has its level from before the
        mute.
        """
        active = await self.holding()
        targets = {one.mutes for one in self.core.checked.conditions}
        muted = [one for one in active if one.subscription in targets]
        last = await asyncio.to_thread(lambda: {one[:2]: self.store.last_of(*one[:2]) for one in muted})
        rest = [one for one in active if one.subscription not in targets]
        return rest + [
            one._replace(level=row.level)
            for one in muted
            if (row := last[one[:2]]) is not None and not ends_condition(row)
        ]

    async def wait_until_evaluated(self) -> None:
        """Wait until the engine has evaluated everything that is in the log now.

        Raises an error if the service fails.
        """
        position = self.log.next
        while self.evaluated < position:
            if self.failed.done():
                raise self.failed.result()
            await asyncio.sleep(0.002)

    # --- running ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all stages until the context ends.

        Then process the input that waits, and take a last snapshot.
        """
        stages = [self._run_log, self._run_engine, self._run_clock, self._run_timeline]
        stages += [self._run_notes, self.integrity.look]
        tasks = [asyncio.create_task(self._fail_on_error(stage)) for stage in stages]
        try:
            yield
        finally:
            while (self.waiting or self.evaluated < self.log.next) and not self._is_stuck:
                await asyncio.sleep(0.01)
            self._is_stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.on_engine(self._stop)
            self.close()

    @property
    def takes_readings(self) -> bool:
        """Whether the log accepts readings. It does not while its disk is full or faulty."""
        return "log" not in self.troubles

    @property
    def _is_stuck(self) -> bool:
        return not {"log", "notifications"}.isdisjoint(self.troubles) or self.failed.done()

    async def _fail_on_error(self, stage: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await stage()
        except Exception as error:
            log.exception("the service cannot go on")
            if not self.failed.done():
                self.failed.set_result(error)

    def _stop(self) -> None:
        wait([self.snapshot_written, self.forecast_done])
        if not self._is_stuck:
            self._store_position()
            with suppress(NoRoom):
                self.log.rotate(0)
            self.take_snapshot()
            self.snapshot_written.result()

    def close(self) -> None:
        """Close the log and the databases, after their threads have finished."""
        self._logging.shutdown()
        self._evaluating.shutdown()
        self._keeping.shutdown()
        self.store.close()
        self.timeline.close()
        self.log.close()


def _damage_error(folder: Path, error: DatabaseError) -> UsageError:
    return UsageError(
        f"{folder / 'service.db'}: {error}. Restore the whole folder from one backup; or move service.db "
        "away and start with --accept-loss: what the log still has is then computed again"
    )
