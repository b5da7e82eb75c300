"""The stored form of a shard in Spark's state store, and the cache of decoded shards in this process.

The store has the whole shard at some batch, the numbered changes of later batches, and a head with two
tokens. The first token, the lineage, identifies the shard; the second identifies the last write. Every write
draws a new token.

A shard that is cached under the token in the head is used directly. If the store has the changes since its
token, they are applied to it. In all other cases the shard is read from the store: after a repeated task, a
batch that was not committed, or a whole shard that another process has written.
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
from ..job import Job
from .checkpoint import LOST
from .shard_state import ShardChange, ShardState

AT_LEAST = 1 << 12
"""The least size of a change, in bytes, when changes are weighed against the whole shard. A shard is written
whole when its changes weigh as much as it does. A batch then costs what it changes, not what is stored."""
MOST_PATCHES = 64
"""After this many patches a shard is written whole: to read a patch copies a whole state."""
LITTLE = 1 << 18
"""The size of changes, in bytes, up to which a shard of any size is not written whole."""
ROOM = 256 << 20
"""The size of the cache of a process, in bytes."""
IDLE = 600.0
"""How many seconds a process caches a shard that is not used; its query may run elsewhere by then."""
TOKEN = 12
"""The length of a token in bytes."""


@dataclass(slots=True)
class CachedShard:
    """A decoded shard in the cache, with the sizes of its stored form."""

    job: str
    """The digest of the job that used it last."""
    lineage: bytes
    token: bytes
    shard: ShardState
    whole_size: int = 0
    """The size of the shard in bytes when it was last written whole."""
    changes_size: int = 0
    """The weight of the changes since then, in bytes."""
    next_change: int = 0
    """The number of the next change."""
    size: int = 0
    """The approximate memory in bytes."""
    used: float = 0.0
    """The monotonic time of its last use."""

    def apply(self, raw: bytes) -> CachedShard:
        """Apply a change from the store, and return this shard."""
        change = _decode(raw)
        self.shard.apply(change)
        self.token = change.token
        self.count_change(change, raw)
        return self

    def count_change(self, change: ShardChange, raw: bytes) -> None:
        """Record that a change is in the store, with its size."""
        self.changes_size += self._weight(change, raw)
        self.next_change += 1

    def has_room(self, change: ShardChange, raw: bytes) -> bool:
        """Whether a change is small enough to be stored. Otherwise the whole shard is written."""
        return self.changes_size + self._weight(change, raw) <= max(self.whole_size, LITTLE)

    def _weight(self, change: ShardChange, raw: bytes) -> int:
        return max(len(raw), AT_LEAST, self.whole_size // MOST_PATCHES if change.patches else 0)


class ShardCache:
    """The shards that this process has used last, by lineage.

    The cache saves decoding a shard in every batch.
    """

    def __init__(self) -> None:
        self._shards: OrderedDict[bytes, CachedShard] = OrderedDict()

    def take(self, lineage: bytes, job: Job) -> CachedShard | None:
        """Remove a shard from the cache and return it; `None` if there is none of the same job.

        A task that fails may have changed the shard, so only `put` adds it again.
        """
        found = self._shards.pop(lineage, None)
        return found if found is not None and found.job == job.digest else None

    def put(self, cached: CachedShard) -> None:
        """Add a shard to the cache.

        Shards that were not used for long are removed. If memory is short, the least recently used ones are
        removed, too.
        """
        cached.size, cached.used = cached.shard.size, monotonic()
        self._shards[cached.lineage] = cached
        room = ROOM - self.size
        while self._shards and (room < 0 or self._oldest.used < cached.used - IDLE):
            room += self._shards.popitem(last=False)[1].size

    @property
    def size(self) -> int:
        """The approximate memory of all shards in bytes."""
        return sum(cached.size for cached in self._shards.values())

    @property
    def _oldest(self) -> CachedShard:
        return next(iter(self._shards.values()))

    def clear(self) -> None:
        """Remove all shards. The cache is then as in a new process."""
        self._shards.clear()


CACHE = ShardCache()


class StoredShard(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The stored form of a shard on its way to the state store of a new generation."""

    whole: bytes = b""
    head: bytes = b""
    changes: dict[int, bytes] = {}


@dataclass(frozen=True)
class ShardStore:
    """The state variables of Spark in which a processor stores one shard."""

    whole: Any
    changes: Any
    head: Any
    fingerprint: Fingerprint | None = None
    """The fingerprint of the query; a state with another one is refused."""

    def restore(self, raw: bytes) -> None:
        """Fill the store, which must be empty, with the stored form of a shard of an earlier generation."""
        stored = msgspec.msgpack.decode(raw, type=StoredShard)
        for value, found in ((self.whole, stored.whole), (self.head, stored.head)):
            if found:
                value.update((found,))
        for number in sorted(stored.changes):
            self.changes.updateValue((number,), (stored.changes[number],))

    def load(self, job: Job) -> CachedShard:
        """Return the shard as it is in the store. The cached one is used if it is current."""
        head = self._head()
        lineage, token = head[:TOKEN], head[TOKEN : 2 * TOKEN]
        if head and self.fingerprint is not None:
            self.fingerprint.require_same(head[2 * TOKEN :])
        cached = CACHE.take(lineage, job) if head else None
        if cached is not None and cached.token != token:
            cached = self._catch_up(cached, token)
        return self._read(job, lineage, token) if cached is None else cached

    def _head(self) -> bytes:
        found = self.head.get()
        return b"" if found is None else bytes(found[0])

    def _catch_up(self, cached: CachedShard, token: bytes) -> CachedShard | None:
        """Apply changes that other processes have written.

        Returns `None` if they do not lead from the cached shard.
        """
        while cached.token != token:
            found = self.changes.getValue((cached.next_change,))
            if found is None or _decode(raw := bytes(found[0])).follows != cached.token:
                return None
            cached.apply(raw)
        return cached

    def _read(self, job: Job, lineage: bytes, token: bytes) -> CachedShard:
        found = self.whole.get()
        whole = b"" if found is None else bytes(found[0])
        if not lineage:
            return CachedShard(job.digest, b"", b"", ShardState())
        cached = CachedShard(job.digest, lineage, token, ShardState.from_bytes(whole), len(whole))
        changes = {number: bytes(raw) for (number,), (raw,) in self.changes.iterator()}
        cached = reduce(CachedShard.apply, (changes[number] for number in sorted(changes)), cached)
        if cached.token != token or any(number not in changes for number in range(cached.next_change)):
            raise UsageError(f"Spark's state store has not returned all of a shard; {LOST}")
        return cached

    def save(self, job: Job, cached: CachedShard, shard: ShardState) -> None:
        """Write the changes of a batch, or the whole shard if that is cheaper. Then cache the shard."""
        change, cached.shard = shard.change, shard
        lacks_fingerprint = self.fingerprint is not None and not cached.lineage
        if change is None or change.has_content or lacks_fingerprint:
            token = os.urandom(TOKEN)
            self._write(job, cached, change, token)
            cached.token = token
            mark = b"" if self.fingerprint is None else self.fingerprint.encode()
            self.head.update((cached.lineage + token + mark,))
        if cached.lineage:
            CACHE.put(cached)

    def _write(self, job: Job, cached: CachedShard, change: ShardChange | None, token: bytes) -> None:
        if change is not None and cached.lineage:
            change.follows, change.token = cached.token, token
            raw = zlib.compress(msgspec.msgpack.encode(change), 1)
            if cached.has_room(change, raw):
                self.changes.updateValue((cached.next_change,), (raw,))
                cached.count_change(change, raw)
                return
        raw = cached.shard.encode_all(job.operators)
        self.whole.update((raw,))
        self.changes.clear()
        cached.lineage = cached.lineage or os.urandom(TOKEN)
        cached.whole_size, cached.changes_size, cached.next_change = len(raw), 0, 0


def _decode(raw: bytes) -> ShardChange:
    return msgspec.msgpack.decode(zlib.decompress(raw), type=ShardChange)
