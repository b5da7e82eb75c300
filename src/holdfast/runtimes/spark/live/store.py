"""What Spark's state store has of a shard, and what this process still has of it from the batch before.

The store has the shard whole, as it once was, what each batch has changed since, numbered, and a head: whose
that is and a token of the last that was written.  Tokens are drawn anew for whatever is written.  So a shard
that this process has left with a token is used again if the store has that token in its head, or is brought
up to date if what follows it is there; after all else (a task that was tried again, a shard that another
process has written whole, a batch that was never committed) everything is read.
"""

from __future__ import annotations

import os
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import reduce
from time import monotonic
from typing import Any

import msgspec

from ....errors import UsageError
from ..fingerprint import Fingerprint
from ..plan import Work
from .checkpoint import LOST
from .memory import Change, Shard
from .patch import EARLIER, patched

AT_LEAST = 1 << 12
"""So many bytes a change counts at least: whoever reads a shard reads all changes since it was written, and
each is some work.  A shard is written anew when its changes count as much as it does, so that this costs a
batch what it has changed, and not what is kept."""
MOST_PATCHES = 64
"""After so many changes of bytes a shard is written anew: each makes whoever reads it copy all of a state."""
LITTLE = 1 << 18
"""So many bytes of changes are kept whatever the size of the shard."""
ROOM = 256 << 20
"""So many bytes of shards that were used last stay in a process, as they lie there."""
IDLE = 600.0
"""After so many seconds a process lets go a shard that nobody has asked for: its query has ended, or is
another's now."""
TOKEN = 12


@dataclass(slots=True)
class Known:
    """A shard as the store has it, and how much that is: written whole, and changed since."""

    work: str
    """The mark of the work that it was left by."""
    lineage: bytes
    token: bytes
    shard: Shard
    whole: int = 0
    changes: int = 0
    """What its changes count."""
    number: int = 0
    """That of the next of them."""
    held: int = 0
    """How many bytes it takes in this process, about."""
    used: float = 0.0

    def take(self, raw: bytes) -> Known:
        """It goes on with what a batch has changed."""
        change = _change(raw)
        self.shard.take(change)
        self.token = change.token
        return self.more(change, raw)

    def more(self, change: Change, raw: bytes) -> Known:
        self.changes, self.number = self.changes + self._counts(change, raw), self.number + 1
        return self

    def has_room(self, change: Change, raw: bytes) -> bool:
        """Whether a change is rather noted than everything written anew."""
        return self.changes + self._counts(change, raw) <= max(self.whole, LITTLE)

    def _counts(self, change: Change, raw: bytes) -> int:
        return max(len(raw), AT_LEAST, self.whole // MOST_PATCHES if change.rewritten else 0)


class Cache:
    """The shards that this process has used last, by what tells them from all others."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Known] = OrderedDict()

    def take(self, lineage: bytes, work: Work) -> Known | None:
        """What is known of a shard, which is forgotten until it is put back: whoever fails on the way has
        changed it."""
        found = self._kept.pop(lineage, None)
        return found if found is not None and found.work == work.mark else None

    def put(self, known: Known) -> None:
        """Note a shard as it was left, and let go those that were not used for long, or for which there is
        no room."""
        known.held, known.used = known.shard.held, monotonic()
        self._kept[known.lineage] = known
        room = ROOM - self.held
        while self._kept and (room < 0 or self._first.used < known.used - IDLE):
            room += self._kept.popitem(last=False)[1].held

    @property
    def held(self) -> int:
        """How many bytes its shards take, about."""
        return sum(one.held for one in self._kept.values())

    @property
    def _first(self) -> Known:
        """The one that was used before all others."""
        return next(iter(self._kept.values()))

    def clear(self) -> None:
        """Forget everything, as a process that starts."""
        self._kept.clear()


CACHE = Cache()


class Kept(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What the store has of a shard, for another store to take."""

    whole: bytes = b""
    head: bytes = b""
    changes: dict[int, bytes] = {}
    earlier: list[bytes] = []


@dataclass(frozen=True)
class Store:
    """What Spark gives a processor for the shard at hand."""

    whole: Any
    changes: Any
    head: Any
    earlier: Any
    """Where earlier versions kept changes, as a list."""
    fingerprint: Fingerprint | None = None
    """That of the query, where it must be that of the state."""

    def take(self, raw: bytes) -> None:
        """Have what another store had of the shard; of this one nothing is there yet."""
        kept = msgspec.msgpack.decode(raw, type=Kept)
        for value, found in ((self.whole, kept.whole), (self.head, kept.head)):
            if found:
                value.update((found,))
        for number in sorted(kept.changes):
            self.changes.updateValue((number,), (kept.changes[number],))
        for patch in kept.earlier:
            self.earlier.appendValue((patch,))

    def known(self, work: Work) -> Known:
        """The shard as it is in the store, whoever remembers it."""
        head = self._head()
        lineage, token = head[:TOKEN], head[TOKEN : 2 * TOKEN]
        if head and self.fingerprint is not None:
            self.fingerprint.require_same(head[2 * TOKEN :])
        found = CACHE.take(lineage, work) if head else None
        if found is not None and found.token != token:
            found = self._caught_up(found, token)
        return self._read(work, lineage, token) if found is None else found

    def _head(self) -> bytes:
        kept = self.head.get()
        return b"" if kept is None else bytes(kept[0])

    def _caught_up(self, known: Known, token: bytes) -> Known | None:
        """What this process knew, with what others have changed since; nothing if that does not follow."""
        while known.token != token:
            found = self.changes.getValue((known.number,))
            if found is None or _change(raw := bytes(found[0])).follows != known.token:
                return None
            known.take(raw)
        return known

    def _read(self, work: Work, lineage: bytes, token: bytes) -> Known:
        found = self.whole.get()
        whole = b"" if found is None else bytes(found[0])
        earlier = [bytes(raw) for (raw,) in self.earlier.get()]
        if not lineage:  # nobody's yet, or kept by an earlier version, as patches of bytes
            whole = reduce(patched, earlier, whole)
            return Known(work.mark, b"", b"", Shard.from_bytes(whole) if whole else Shard())
        kept = Known(work.mark, lineage, token, Shard.from_bytes(whole), len(whole))
        kept = reduce(Known.take, earlier, kept)
        kept.number = 0
        since = {number: bytes(raw) for (number,), (raw,) in self.changes.iterator()}
        kept = reduce(Known.take, (since[number] for number in sorted(since)), kept)
        if kept.token != token or any(number not in since for number in range(kept.number)):
            raise UsageError(f"Spark has not given all that it keeps of a shard; {LOST}")
        return kept

    def keep(self, work: Work, known: Known, shard: Shard) -> None:
        """Write what a batch has changed, or all of it where that is no more, or much has changed since."""
        change, known.shard = shard.change, shard
        is_unsigned = self.fingerprint is not None and not known.lineage
        if change is None or change.is_something or is_unsigned:
            token = os.urandom(TOKEN)
            self._write(work, known, change, token)
            known.token = token
            mark = b"" if self.fingerprint is None else self.fingerprint.encode()
            self.head.update((known.lineage + token + mark,))
        if known.lineage:
            CACHE.put(known)

    def _write(self, work: Work, known: Known, change: Change | None, token: bytes) -> None:
        if change is not None and known.lineage:
            change.follows, change.token = known.token, token
            raw = zlib.compress(msgspec.msgpack.encode(change), 1)
            if known.has_room(change, raw):
                self.changes.updateValue((known.number,), (raw,))
                known.more(change, raw)
                return
        raw = known.shard.whole(work.operators)
        self.whole.update((raw,))
        for changes in (self.changes, self.earlier):
            changes.clear()
        known.lineage = known.lineage or os.urandom(TOKEN)
        known.whole, known.changes, known.number = len(raw), 0, 0


def _change(raw: bytes) -> Change:
    try:
        return msgspec.msgpack.decode(zlib.decompress(raw), type=Change)
    except (zlib.error, msgspec.DecodeError):
        raise UsageError(EARLIER) from None
