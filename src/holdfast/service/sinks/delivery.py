"""How a sink is fed: from its position on, again and again until it has taken what it is given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ...errors import HoldfastError
from ..service import Service
from ..store import Mark, StoreFull, Told, begins

log = logging.getLogger("holdfast.service")

BATCH = 200
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0


class Unavailable(HoldfastError):
    """The other side cannot take anything now; it may later."""


class Refusal(HoldfastError):
    """The other side will never take this."""


class Sink(Protocol):
    """Something that takes notifications; it may be given some of them again after a crash."""

    name: str
    kind: str
    heeds_mutes: bool

    async def deliver(self, told: Sequence[Told]) -> None: ...
    async def idle(self) -> None:
        """Nothing new for a while."""

    async def close(self) -> None: ...


def unmuted(told: Iterable[Told], marks: Iterable[Mark], corrected: Collection[str] = ()) -> list[Told]:
    """What a sink is told: no starts of what is muted, but every end.  A mute without a scope is of all."""
    muted = {(mark.subscription, mark.scope) for mark in marks if mark.kind == "mute"}

    def is_muted(one: Told) -> bool:
        return (one.subscription, one.scope) in muted or (one.subscription, None) in muted

    return [one for one in told if not (_starts(one, corrected) and is_muted(one))]


def _starts(one: Told, corrected: Collection[str]) -> bool:
    """Whether something holds by it, be it for a moment, that did not hold by what was told before: so does
    the last word of a condition that corrects what it has told."""
    is_last_word = one.status == "known" and one.since is not None and one.subscription in corrected
    return begins(one) or one.status in ("atomic", "reopened") or is_last_word


class Delivery:
    """A sink at work."""

    def __init__(self, service: Service, sink: Sink) -> None:
        self._service, self.sink = service, sink
        known = service.store.reached(sink.name)
        self.position = service.hub.last if known is None else known
        service.store.reach(sink.name, self.position)
        self.trouble: str | None = None
        self.delivered = 0
        self.buried = 0

    async def run(self) -> None:
        """Deliver what comes, until cancelled; ``close`` comes after that."""
        async for some in self._service.hub.stream(self.position, BATCH):
            if some:
                await self._delivered(some)
                self.position = some[-1].position
                with suppress(StoreFull):  # told again after a crash, which is allowed
                    await asyncio.to_thread(self._service.store.reach, self.sink.name, self.position)
            else:
                await self._quiet()

    async def close(self) -> None:
        """Let go of the other side."""
        await self.sink.close()

    async def _quiet(self) -> None:
        with suppress(Unavailable, Refusal):
            await self.sink.idle()

    async def _delivered(self, some: Sequence[Told]) -> None:
        wait = FIRST_WAIT
        while True:
            wanted = await self._wanted(some)
            try:
                if wanted:
                    await self.sink.deliver(wanted)
            except Unavailable as down:
                self._say(str(down))
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
                continue
            except Refusal as refusal:
                await self._bury(wanted, str(refusal))
            else:
                self.delivered += len(wanted)
                self._say(None)
            return

    async def _wanted(self, some: Sequence[Told]) -> Sequence[Told]:
        if not self.sink.heeds_mutes:
            return some
        marks = await asyncio.to_thread(self._service.store.marks, self._service.clock())
        return unmuted(some, marks, self._service.core.corrected)

    async def _bury(self, some: Sequence[Told], reason: str) -> None:
        self._say(f"refused: {reason}")
        self.buried += len(some)
        for one in some:
            await asyncio.to_thread(
                self._service.store.bury, self.sink.name, one.position, reason, self._service.clock()
            )

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
            "dead_letters": self.buried,
            "trouble": self.trouble,
        }
