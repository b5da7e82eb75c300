"""Delivery of notifications to a sink from its stored position on, with retries, mutes and dead letters."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from ...model.instant import NEVER, SECOND, Instant
from ...runtimes.local.engine import Holding
from ..service import Service
from ..store import Key, Mark, NotificationRow, StoreFull, Withheld, ends_condition, starts_condition
from .sink import Refusal, Sink, Unavailable

T = TypeVar("T")
log = logging.getLogger("holdfast.service")

BATCH = 200
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0


# --- mutes --------------------------------------------------------------------------------------------------


def is_muted(key: Key, muted: Collection[Key]) -> bool:
    """Whether a condition is muted in a scope; a mute without a scope covers all scopes."""
    return key in muted or (key[0], None) in muted


class DeliveryChoice(NamedTuple):
    """The decision which notifications of a batch to send, and which are withheld afterwards."""

    sent: list[NotificationRow]
    withheld: dict[Key, Withheld]


def choose(
    rows: Iterable[NotificationRow],
    muted: Collection[Key],
    withheld: Mapping[Key, Withheld],
    corrected: Collection[str] = (),
) -> DeliveryChoice:
    """Divide notifications into those to send and those that a mute withholds.

    The sink still receives the end of a condition that it knows to be active. A condition that starts and
    ends while it is muted is not sent at all. Later notifications of a withheld scope are withheld too.

    ``corrected`` are the conditions that correct earlier output. For these, the status ``known`` starts or
    ends the condition, and an end may belong to another episode than the withheld one.
    """
    sent, withheld_after = list[NotificationRow](), dict(withheld)
    for row in rows:
        before = withheld_after.get(row.key)
        is_known = row.status == "known" and row.subscription in corrected
        if ends_condition(row) or row.status == "retracted" or (is_known and row.since is None):
            withheld_after.pop(row.key, None)
            began = row.time if row.status == "retracted" else row.since
            is_other = row.subscription in corrected and before is not None and before.began != began
            if before is None or not before.starts or is_other:
                sent.append(as_known(row, before))
        elif before is None and not is_muted(row.key, muted):
            sent.append(row)
        elif row.status not in ("atomic", "summary"):
            starts = row.was is None and (starts_condition(row) or row.status == "reopened" or is_known)
            if before is None or (starts and not (is_known and before.began == row.since)):
                began = row.time if starts and starts_condition(row) else None
                level = row.level if starts else row.was
                withheld_after[row.key] = Withheld(row.position, row.position, starts, level, began)
            else:
                level = row.was if before.level is None else before.level
                withheld_after[row.key] = before._replace(latest=row.position, level=level)
    return DeliveryChoice(sent, withheld_after)


def as_known(row: NotificationRow, withheld: Withheld | None) -> NotificationRow:
    """Return a notification of levels whose previous level is the one that the sink knows."""
    is_change = withheld is not None and withheld.level is not None and row.was is not None
    return row._replace(was=withheld.level) if withheld is not None and is_change else row


def _changes(before: Mapping[Key, T], after: Mapping[Key, T]) -> dict[Key, T | None]:
    keys = before.keys() | after.keys()
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


# --- refusals -----------------------------------------------------------------------------------------------


async def isolate(
    items: Sequence[T],
    post: Callable[[Sequence[T]], Awaitable[None]],
    refused: Callable[[T, Refusal], Awaitable[None]],
) -> None:
    """Post items together.

    If they are refused, post halves, until each refused item is alone and goes to ``refused``.
    """
    try:
        await post(items)
    except Refusal as refusal:
        if len(items) == 1:
            await refused(items[0], refusal)
            return
        middle = len(items) // 2
        await isolate(items[:middle], post, refused)
        await isolate(items[middle:], post, refused)


# --- delivery -----------------------------------------------------------------------------------------------


class SinkDelivery:
    """Sends notifications to one sink in order, and stores the position up to which it has them."""

    def __init__(self, service: Service, sink: Sink) -> None:
        self._service, self.sink = service, sink
        store = service.store
        known = store.sink_position(sink.name)
        self.position = service.hub.last if known is None else known
        store.set_sink_position(sink.name, self.position)
        self._withheld: Mapping[Key, Withheld] = store.withheld(sink.name)
        self._expires: Instant = NEVER
        """When the next mute of something withheld ends."""
        self._accepted = 0
        """The position up to which the sink has accepted or refused the current batch."""
        self._refreshed: float | None = None
        self.trouble: str | None = None
        self.delivered = 0
        self.dead_letter_count = store.dead_letter_count(sink.name)

    async def run(self) -> None:
        """Deliver notifications until cancelled. Call ``close`` afterwards."""
        async for batch in self._service.hub.stream(self.position, BATCH, self._longest_wait):
            await self._deliver(batch)
            await self._release()
            await self._resend()
            await self._refresh()

    async def close(self) -> None:
        """Close the connection to the target. Call this after ``run`` was cancelled."""
        await self.sink.close()

    def _longest_wait(self) -> float:
        """Return the seconds until there is work without a new notification.

        Such work is the end of a mute, or a refresh.
        """
        waits = [15.0]
        if self._expires != NEVER:
            waits.append((self._expires - self._service.clock()) / SECOND)
        if self.sink.refresh_every is not None and self._refreshed is not None:
            waits.append(self._refreshed + self.sink.refresh_every - time.monotonic())
        return max(0.05, min(waits))

    async def _deliver(self, batch: Sequence[NotificationRow]) -> None:
        """Deliver a batch, and retry until the sink has accepted all of it.

        Accepted notifications are not repeated, even if a mute changes meanwhile.
        """
        wait = FIRST_WAIT
        while batch:
            muted, corrected = await self._muted(), self._service.core.corrected
            chosen = choose(batch, muted, self._withheld, corrected)
            self._accepted, accepted = 0, batch
            try:
                await self._send(chosen.sent)
            except Unavailable as down:
                self._report(str(down))
                accepted = [row for row in batch if row.position <= self._accepted]
                if not accepted:
                    await asyncio.sleep(wait)
                    wait = min(2 * wait, LONGEST_WAIT)
                    continue
                wait = FIRST_WAIT
            await self._set_position(
                accepted[-1].position, choose(accepted, muted, self._withheld, corrected).withheld
            )
            batch = batch[len(accepted) :]

    async def _send(self, rows: Sequence[NotificationRow]) -> None:
        """Send notifications in order. A notification that the sink refuses becomes a dead letter."""
        if rows:
            await isolate(rows, self._post, self._add_dead_letter)

    async def _post(self, rows: Sequence[NotificationRow]) -> None:
        await self.sink.deliver(rows)
        self._accepted = rows[-1].position
        self.delivered += len(rows)
        self._report(None)

    async def _add_dead_letter(self, row: NotificationRow, refusal: Refusal) -> None:
        service, name = self._service, self.sink.name
        await self._write(
            lambda: service.store.add_dead_letter(name, row.position, str(refusal), service.clock())
        )
        self._accepted = row.position
        self._report(f"refused: {refusal}")
        self.dead_letter_count = await asyncio.to_thread(service.store.dead_letter_count, name)

    async def _set_position(self, position: int, withheld: Mapping[Key, Withheld]) -> None:
        changes = _changes(self._withheld, withheld)
        name, self.position, self._withheld = self.sink.name, position, withheld
        await self._write(lambda: self._service.store.set_sink_position(name, position, changes))

    async def _write(self, write: Callable[[], None]) -> None:
        """Call a function that writes to the database, in a thread. Retries while the database is full."""
        while True:
            try:
                return await asyncio.to_thread(write)
            except StoreFull as full:
                self._report(str(full))
                await asyncio.sleep(1)

    # --- what is due without a notification ---

    async def _marks(self) -> list[Mark]:
        if not self.sink.heeds_mutes:
            return []
        marks = await asyncio.to_thread(self._service.store.marks, self._service.clock())
        return [mark for mark in marks if mark.kind == "mute"]

    async def _muted(self) -> set[Key]:
        return {(mark.subscription, mark.scope) for mark in await self._marks()}

    async def _release(self) -> None:
        """Send the withheld notifications of conditions whose mute has ended."""
        self._expires = NEVER
        if not self._withheld:
            return
        marks = await self._marks()
        muted = {(mark.subscription, mark.scope) for mark in marks}
        free = {key: row for key, row in self._withheld.items() if not is_muted(key, muted)}
        if len(free) < len(self._withheld):
            self._expires = min(mark.until for mark in marks)
        if not free:
            return
        for first in range(0, len(free), BATCH):
            released = dict(islice(free.items(), first, first + BATCH))
            positions = {at for row in released.values() for at in row.positions}
            try:
                rows = await asyncio.to_thread(self._service.store.notifications_at, positions)
                await self._send([as_known(row, released[row.key]) for row in rows])
            except Unavailable as down:
                self._report(str(down))
                self._expires = self._service.clock() + SECOND  # try again soon
                return
            remaining = {key: row for key, row in self._withheld.items() if key not in released}
            await self._set_position(self.position, remaining)

    async def _resend(self) -> None:
        """Send the dead letters that a user has marked to be sent again."""
        if not self.dead_letter_count:
            return
        store, name = self._service.store, self.sink.name
        for row in await asyncio.to_thread(store.to_resend, name, BATCH):
            position = row.position
            last = await asyncio.to_thread(store.last_of, *row.key)
            later = [last] if last is not None and position < last.position <= self.position else []
            try:
                await self.sink.deliver([row, *later])  # so that the target ends with the current state
            except Unavailable as down:
                return self._report(str(down))
            except Refusal as refusal:
                await self._add_dead_letter(row, refusal)
            else:
                self.delivered += 1
                await self._write(lambda position=position: store.remove_dead_letter(name, position))  # type: ignore[misc]
        self.dead_letter_count = await asyncio.to_thread(store.dead_letter_count, name)

    async def _refresh(self) -> None:
        every, now = self.sink.refresh_every, time.monotonic()
        if every is None or (self._refreshed is not None and now < self._refreshed + every):
            return
        self._refreshed = now
        try:
            await self.sink.refresh(await self.active_for_sink())
        except (Unavailable, Refusal) as error:
            self._report(str(error))

    async def active_for_sink(self) -> list[Holding]:
        """Return the active conditions as the sink knows them.

        Conditions whose start is withheld are left out. Levels are those that the sink received last.
        """
        active = await self._service.active_for_sinks()
        known = {key: row.level for key, row in self._withheld.items() if row.level is not None}
        unknown = {key for key, row in self._withheld.items() if row.starts}
        return [row._replace(level=known.get(row[:2], row.level)) for row in active if row[:2] not in unknown]

    def _report(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("sink %s: %s", self.sink.name, trouble or "takes notifications again")
            self.trouble = trouble

    def status(self, last: int) -> dict[str, Any]:
        """Return the status of the sink, for the status page and the metrics.

        ``last`` is the newest position.
        """
        return {
            "name": self.sink.name,
            "kind": self.sink.kind,
            "position": self.position,
            "behind": last - self.position,
            "delivered": self.delivered,
            "withheld": len(self._withheld),
            "dead_letters": self.dead_letter_count,
            "trouble": self.trouble,
        }
