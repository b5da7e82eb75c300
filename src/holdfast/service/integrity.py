"""Checks that the log and the database belong together, and reports of damage in the log."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from ..errors import UsageError
from .log.damage import LogDamage, changed_files, damage_of
from .log.log import Log, hide, segments_of
from .log.seal import Seal, seals
from .store import ServiceStore

log = logging.getLogger("holdfast.service")

ACCEPTED = "accepted-losses.json"
"""Damage of the log that was accepted and is not reported any more."""
_LOOK_EVERY, _LOOKS_A_DAY = 3600.0, 24
"""Seconds between two searches for missing files; every 24th search also reads their bytes."""
_READ_PAUSE = 0.05
"""Seconds between reading two files, so that the service is not slowed down."""


class Integrity:
    """Finds damage in the log of a service and reports each case once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.damage: list[str] = []
        """Damaged and missing parts of the log that were not accepted."""

    def require_whole(self, log_: Log, store: ServiceStore, *, accept_loss: bool) -> None:
        """Refuse to start with a log that lacks entries which the database needs or has evaluated.

        With ``accept_loss``, report what is lost and continue without it.
        """
        damage = damage_of(self._folder)
        losses, end = self._losses(log_, store, [damaged for damaged in damage if damaged.is_missing])
        if losses and not accept_loss:
            raise UsageError(
                f"{self._folder}: {'; '.join(losses)}. Restore the whole folder from one backup, or "
                "start with --accept-loss, which goes on without what is missing"
            )
        if accept_loss:
            damage += filter(None, changed_files(self._folder))
            for loss in dict.fromkeys((*losses, *map(str, damage))):
                log.warning("lost, and accepted: %s", loss)
            if log_.next < end:
                log_.pass_over(end)
            accepted = sorted({*self._accepted(), *map(str, damage)})
            hide(self._folder / ACCEPTED)
            (self._folder / ACCEPTED).write_text(json.dumps(accepted, indent=1), encoding="utf-8")
        store.bind_to_log(log_.number)
        self.report(map(str, damage))

    def _losses(self, log_: Log, store: ServiceStore, missing: Iterable[LogDamage]) -> tuple[list[str], int]:
        """Describe the entries that the log lacks, and return the position at which it must end at least."""
        snapshot, (number, evaluated) = store.snapshot(), store.log()
        needed = 0 if snapshot is None else snapshot.position
        sealed_end = max(
            (damaged.after for damaged in seals(self._folder) if isinstance(damaged, Seal)), default=0
        )
        end, begin = max(evaluated, needed, sealed_end), segments_of(self._folder)[0].first
        losses = [str(damaged) for damaged in missing if damaged.after > needed]
        if number and number != log_.number:
            losses.append("service.db belongs to another log than the one in wal/")
        if log_.next < end:
            losses.append(
                f"the log is behind the database: it ends at {log_.next:,}, and service.db and readings/ "
                f"know it up to {end:,}: {end - log_.next:,} readings or definitions are missing"
            )
        elif begin > needed:
            losses.append(
                f"the database is too old: the log in wal/ begins at {begin:,}, and the snapshot in "
                f"service.db goes on at {needed:,}"
            )
        return losses, end

    def _accepted(self) -> set[str]:
        try:
            return set(json.loads((self._folder / ACCEPTED).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return set()

    def report(self, damage: Iterable[str]) -> None:
        """Write damage to the process log, once for each start of the service."""
        accepted = self._accepted()
        found = [damaged for damaged in dict.fromkeys(damage) if damaged not in accepted]
        for damaged in found:
            if damaged not in self.damage:
                log.error("%s: %s", self._folder, damaged)
        self.damage = found

    async def look(self) -> None:
        """Search for damage at intervals, until cancelled. Once a day the contents of all files are read."""
        changed: list[str] = []
        for turn in count():
            try:
                if turn % _LOOKS_A_DAY == 0:
                    changed = await self._changed()
                found = await asyncio.to_thread(damage_of, self._folder)
                self.report([*map(str, found), *changed])
            except Exception:  # no free file handle, or a file was just removed: try again later
                log.exception("the log cannot be looked through for damage")
            await asyncio.sleep(_LOOK_EVERY)

    async def _changed(self) -> list[str]:
        """Read all sealed files and describe those whose bytes have changed.

        Takes a while, with pauses between files.
        """
        found, looks = [], changed_files(self._folder)
        while (seen := await asyncio.to_thread(next, looks, False)) is not False:
            found += [str(seen)] if seen else []
            await asyncio.sleep(_READ_PAUSE)
        return found
