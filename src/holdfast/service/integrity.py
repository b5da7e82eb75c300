"""Whether the log and the database fit together, and what of the log is damaged or missing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from ..errors import UsageError
from .log.damage import Damage, changed_files, damage_of
from .log.log import Log, hide, segments_of
from .log.seal import Seal, seals
from .store import Store

log = logging.getLogger("holdfast.service")

ACCEPTED = "accepted-losses.json"
"""What is damaged or missing in the log and was accepted: it is not reported any more."""
_LOOK_EVERY, _LOOKS_A_DAY = 3600.0, 24
"""Seconds between two looks for missing files; in one look of so many their bytes are read, too."""
_READ_PAUSE = 0.05
"""Seconds between two files whose bytes are read, so that this delays nobody."""


class Integrity:
    """Looks for damage in the log of a service, and reports each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.damage: list[str] = []
        """What of the log is damaged or missing, and was not accepted."""

    def require_whole(self, log_: Log, store: Store, *, accept_loss: bool) -> None:
        """Refuse a log that lacks what the database has evaluated, or has still to evaluate; with
        ``accept_loss`` say what is lost, and go on without it."""
        damage = damage_of(self._folder)
        losses, end = self._losses(log_, store, [one for one in damage if one.is_missing])
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
        store.belong_to(log_.number)
        self.report(map(str, damage))

    def _losses(self, log_: Log, store: Store, missing: Iterable[Damage]) -> tuple[list[str], int]:
        """What the log lacks, in words, and where it should end at least."""
        snapshot, (number, evaluated) = store.snapshot(), store.log()
        needed = 0 if snapshot is None else snapshot.position
        sealed = max((one.after for one in seals(self._folder) if isinstance(one, Seal)), default=0)
        end, begin = max(evaluated, needed, sealed), segments_of(self._folder)[0].first
        losses = [str(one) for one in missing if one.after > needed]
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
        """Say what is damaged, once for each start."""
        accepted = self._accepted()
        found = [one for one in dict.fromkeys(damage) if one not in accepted]
        for one in found:
            if one not in self.damage:
                log.error("%s: %s", self._folder, one)
        self.damage = found

    async def look(self) -> None:
        """Look for damage from time to time, until cancelled."""
        changed: list[str] = []
        for turn in count():
            try:
                if turn % _LOOKS_A_DAY == 0:
                    changed = await self._changed()
                found = await asyncio.to_thread(damage_of, self._folder)
                self.report([*map(str, found), *changed])
            except Exception:  # no file handle is free, or a file has just gone: the next look may see more
                log.exception("the log cannot be looked through for damage")
            await asyncio.sleep(_LOOK_EVERY)

    async def _changed(self) -> list[str]:
        """The files of readings that are not as they were written."""
        found, looks = [], changed_files(self._folder)
        while (seen := await asyncio.to_thread(next, looks, False)) is not False:
            found += [str(seen)] if seen else []
            await asyncio.sleep(_READ_PAUSE)
        return found
