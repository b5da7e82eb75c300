"""What an engine remembers, as bytes that can be told from others and from damaged ones."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from ...compilers.operator import Kept
from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import Instant

_SNAPSHOT = b"holdfast snapshot "
_FORM, _EARLIER = b"3\n", (b"1\n", b"2\n")


class Snapshot(msgspec.Struct):
    kept: list[Kept]
    states: list[bytes]
    reached: dict[str, Instant]
    sequence: int
    late_counts: dict[str, int]
    late: list[Notification]
    latest: dict[str, dict[str, Event]]
    begun: list[Notification] = []
    remembers: bool = False
    """Whether the latest readings are kept whoever runs; once that was not said."""
    quotes: bool = False
    """Whether scopes of several values have names that no two share."""
    paused: list[str] = []
    """The topics over which timers wait."""


def seal(raw: bytes) -> bytes:
    """What a snapshot begins with: its form, and a digest that tells whether it is whole."""
    return _SNAPSHOT + _FORM + blake2b(raw, digest_size=16).digest()


_SEALED = len(seal(b""))


def opened(snapshot: bytes) -> Snapshot:
    if not isinstance(snapshot, bytes):
        raise UsageError(f"a snapshot is the bytes that Engine.snapshot gave, not {snapshot!r:.60}")
    if any(snapshot.startswith(_SNAPSHOT + form) for form in _EARLIER):
        raise UsageError(
            "this snapshot was taken by an earlier version of Holdfast: restore it with that version, or "
            "start without it and push the history again"
        )
    head, raw = snapshot[:_SEALED], snapshot[_SEALED:]
    if head != seal(raw):
        raise UsageError("this is not a snapshot of an engine, or it is damaged")
    return msgspec.msgpack.decode(raw, type=Snapshot)
