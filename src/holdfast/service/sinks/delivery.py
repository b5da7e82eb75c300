"""How a sink is fed: from its position on, again and again until it has taken what it is given."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from ...errors import HoldfastError
from ...model.instant import NEVER, SECOND, Instant
from ...runtimes.local.engine import Holding
from ..service import Service
from ..store import Key, Mark, StoreFull, Told, Withheld, begins, ends

T = TypeVar("T")
log = logging.getLogger("holdfast.service")

BATCH = 200
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0


class Unavailable(HoldfastError):
    """The other side cannot take anything now; it may later."""


class Refusal(HoldfastError):
    """The other side will not take this."""


class Sink(Protocol):
    """Something that takes notifications; it may be given some of them again after a crash."""

    name: str
    kind: str
    heeds_mutes: bool

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which it is to be sent all that is active, if it is."""

    async def deliver(self, told: Sequence[Told]) -> None: ...
    async def refresh(self, active: Sequence[Holding]) -> None: ...
    async def close(self) -> None: ...


# --- mutes --------------------------------------------------------------------------------------------------


def is_muted(key: Key, muted: Collection[Key]) -> bool:
    """Whether a condition is muted in a scope; a mute without a scope is of all scopes."""
    return key in muted or (key[0], None) in muted


class Choice(NamedTuple):
    """What a sink is sent of some notifications, and what is withheld from it afterwards."""

    sent: list[Told]
    withheld: dict[Key, Withheld]


def choose(
    told: Iterable[Told],
    muted: Collection[Key],
    withheld: Mapping[Key, Withheld],
    corrected: Collection[str] = (),
) -> Choice:
    """Withhold what is muted.  The sink still receives the end of what it knows to be active; a condition
    that starts and ends while it is muted reaches it in no form.  What follows something withheld is
    withheld, too.

    ``corrected`` are the conditions that correct what they emitted: of these, the status ``known`` starts or
    ends the condition, and what ends may be another episode than the one that is withheld.
    """
    sent, left = list[Told](), dict(withheld)
    for one in told:
        before = left.get(one.key)
        is_known = one.status == "known" and one.subscription in corrected
        if ends(one) or one.status == "retracted" or (is_known and one.since is None):
            left.pop(one.key, None)
            began = one.time if one.status == "retracted" else one.since
            is_other = one.subscription in corrected and before is not None and before.began != began
            if before is None or not before.starts or is_other:
                sent.append(as_known(one, before))
        elif before is None and not is_muted(one.key, muted):
            sent.append(one)
        elif one.status not in ("atomic", "summary"):
            starts = one.was is None and (begins(one) or one.status == "reopened" or is_known)
            if before is None or (starts and not (is_known and before.began == one.since)):
                began = one.time if starts and begins(one) else None
                level = one.level if starts else one.was
                left[one.key] = Withheld(one.position, one.position, starts, level, began)
            else:
                level = one.was if before.level is None else before.level
                left[one.key] = before._replace(latest=one.position, level=level)
    return Choice(sent, left)


def as_known(one: Told, withheld: Withheld | None) -> Told:
    """A notification as it follows the level that the sink knows."""
    is_change = withheld is not None and withheld.level is not None and one.was is not None
    return one._replace(was=withheld.level) if withheld is not None and is_change else one


def _changes(before: Mapping[Key, T], after: Mapping[Key, T]) -> dict[Key, T | None]:
    keys = before.keys() | after.keys()
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


# --- refusals -----------------------------------------------------------------------------------------------


async def isolate(
    items: Sequence[T],
    post: Callable[[Sequence[T]], Awaitable[None]],
    refused: Callable[[T, Refusal], Awaitable[None]],
) -> None:
    """Post items together; where they are refused, by halves, until each that is refused is alone."""
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


class Delivery:
    """A sink at work."""

    def __init__(self, service: Service, sink: Sink) -> None:
        self._service, self.sink = service, sink
        store = service.store
        known = store.reached(sink.name)
        self.position = service.hub.last if known is None else known
        store.reach(sink.name, self.position)
        self._withheld: Mapping[Key, Withheld] = store.withheld(sink.name)
        self._expires: Instant = NEVER
        """When the next mute of something that is withheld ends."""
        self._accepted = 0
        """The position up to which the sink has taken or refused what it was sent of a batch."""
        self._refreshed: float | None = None
        self.trouble: str | None = None
        self.delivered = 0
        self.buried = store.buried(sink.name)

    async def run(self) -> None:
        """Deliver what comes, until cancelled; ``close`` comes after that."""
        async for batch in self._service.hub.stream(self.position, BATCH, self._longest_wait):
            await self._take(batch)
            await self._release()
            await self._resend()
            await self._refresh()

    async def close(self) -> None:
        """Let go of the other side."""
        await self.sink.close()

    def _longest_wait(self) -> float:
        """Seconds until there is something to do without a notification."""
        waits = [15.0]
        if self._expires != NEVER:
            waits.append((self._expires - self._service.clock()) / SECOND)
        if self.sink.refresh_every is not None and self._refreshed is not None:
            waits.append(self._refreshed + self.sink.refresh_every - time.monotonic())
        return max(0.05, min(waits))

    async def _take(self, batch: Sequence[Told]) -> None:
        """Deliver a batch, however long that takes.  What the sink has taken of it is not sent again, also
        where a mute comes in between."""
        wait = FIRST_WAIT
        while batch:
            muted, corrected = await self._muted(), self._service.core.corrected
            chosen = choose(batch, muted, self._withheld, corrected)
            self._accepted, taken = 0, batch
            try:
                await self._send(chosen.sent)
            except Unavailable as down:
                self._say(str(down))
                taken = [one for one in batch if one.position <= self._accepted]
                if not taken:
                    await asyncio.sleep(wait)
                    wait = min(2 * wait, LONGEST_WAIT)
                    continue
                wait = FIRST_WAIT
            await self._reach(taken[-1].position, choose(taken, muted, self._withheld, corrected).withheld)
            batch = batch[len(taken) :]

    async def _send(self, told: Sequence[Told]) -> None:
        """Send notifications in their order; those that the sink refuses are put aside."""
        if told:
            await isolate(told, self._post, self._bury)

    async def _post(self, told: Sequence[Told]) -> None:
        await self.sink.deliver(told)
        self._accepted = told[-1].position
        self.delivered += len(told)
        self._say(None)

    async def _bury(self, one: Told, refusal: Refusal) -> None:
        service, name = self._service, self.sink.name
        await self._written(lambda: service.store.bury(name, one.position, str(refusal), service.clock()))
        self._accepted = one.position
        self._say(f"refused: {refusal}")
        self.buried = await asyncio.to_thread(service.store.buried, name)

    async def _reach(self, position: int, withheld: Mapping[Key, Withheld]) -> None:
        changes = _changes(self._withheld, withheld)
        name, self.position, self._withheld = self.sink.name, position, withheld
        await self._written(lambda: self._service.store.reach(name, position, changes))

    async def _written(self, write: Callable[[], None]) -> None:
        """Write to the database, however long that takes."""
        while True:
            try:
                return await asyncio.to_thread(write)
            except StoreFull as full:
                self._say(str(full))
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
        """Send what was withheld of conditions that are active and no longer muted."""
        self._expires = NEVER
        if not self._withheld:
            return
        marks = await self._marks()
        muted = {(mark.subscription, mark.scope) for mark in marks}
        free = {key: one for key, one in self._withheld.items() if not is_muted(key, muted)}
        if len(free) < len(self._withheld):
            self._expires = min(mark.until for mark in marks)
        if not free:
            return
        for first in range(0, len(free), BATCH):
            some = dict(islice(free.items(), first, first + BATCH))
            positions = {at for one in some.values() for at in one.positions}
            try:
                rows = await asyncio.to_thread(self._service.store.at, positions)
                await self._send([as_known(one, some[one.key]) for one in rows])
            except Unavailable as down:
                self._say(str(down))
                self._expires = self._service.clock() + SECOND  # again soon
                return
            kept = {key: one for key, one in self._withheld.items() if key not in some}
            await self._reach(self.position, kept)

    async def _resend(self) -> None:
        """Send again what was refused, where somebody has asked for that."""
        if not self.buried:
            return
        store, name = self._service.store, self.sink.name
        for one in await asyncio.to_thread(store.to_resend, name, BATCH):
            position = one.position
            last = await asyncio.to_thread(store.last_of, *one.key)
            later = [last] if last is not None and position < last.position <= self.position else []
            try:
                await self.sink.deliver([one, *later])  # so that it is left with what is so now
            except Unavailable as down:
                return self._say(str(down))
            except Refusal as refusal:
                await self._bury(one, refusal)
            else:
                self.delivered += 1
                await self._written(lambda position=position: store.unbury(name, position))  # type: ignore[misc]
        self.buried = await asyncio.to_thread(store.buried, name)

    async def _refresh(self) -> None:
        every, now = self.sink.refresh_every, time.monotonic()
        if every is None or (self._refreshed is not None and now < self._refreshed + every):
            return
        self._refreshed = now
        try:
            await self.sink.refresh(await self.announced())
        except (Unavailable, Refusal) as error:
            self._say(str(error))

    async def announced(self) -> list[Holding]:
        """What is active, as far as the sink may know: without what is withheld from it, and at the level
        that it was sent last."""
        active = await self._service.announced()
        known = {key: one.level for key, one in self._withheld.items() if one.level is not None}
        unknown = {key for key, one in self._withheld.items() if one.starts}
        return [one._replace(level=known.get(one[:2], one.level)) for one in active if one[:2] not in unknown]

    def _say(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("sink %s: %s", self.sink.name, trouble or "takes notifications again")
            self.trouble = trouble

    def status(self, last: int) -> dict[str, Any]:
        """How far it is."""
        return {
            "name": self.sink.name,
            "kind": self.sink.kind,
            "position": self.position,
            "behind": last - self.position,
            "delivered": self.delivered,
            "withheld": len(self._withheld),
            "dead_letters": self.buried,
            "trouble": self.trouble,
        }
