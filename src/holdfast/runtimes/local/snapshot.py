"""Snapshots of an engine as bytes, with a header that identifies them and detects damage."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from ...engine.operator import OperatorRecord
from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import Instant

_SNAPSHOT = b"holdfast snapshot "
_FORM = b"4"
_HEAD = re.compile(re.escape(_SNAPSHOT) + rb"([1-9])\n")


class Snapshot(msgspec.Struct):
    """The content of a snapshot: records of operators, their states, watermarks, counters and late events."""

    kept: list[OperatorRecord]
    states: list[bytes]
    watermarks: dict[str, Instant]
    sequence: int
    late_counts: dict[str, int]
    late: list[Notification]
    latest: dict[str, dict[str, Event]]
    startup_notifications: list[Notification] = []
    remembers: bool = False
    """Whether the latest readings are stored even if no operator requires them."""
    paused: list[str] = []
    """The topics whose timers are stopped."""


def seal(raw: bytes) -> bytes:
    """Return the header of a snapshot: its format version and a digest of its content."""
    return _SNAPSHOT + _FORM + b"\n" + blake2b(raw, digest_size=16).digest()


_SEALED = len(seal(b""))


def unseal(snapshot: bytes) -> Snapshot:
    """Decode a snapshot. Raises ``UsageError`` if it is damaged or has the format of another version."""
    if not isinstance(snapshot, bytes):
        raise UsageError(f"a snapshot is the bytes that Engine.snapshot gave, not {snapshot!r:.60}")
    if (found := _HEAD.match(snapshot)) and found[1] != _FORM:
        raise UsageError(
            "this snapshot was taken by another version of Holdfast: restore it with that version, or "
            "start without it and push the history again"
        )
    head, raw = snapshot[:_SEALED], snapshot[_SEALED:]
    if head != seal(raw):
        raise UsageError("this is not a snapshot of an engine, or it is damaged")
    return msgspec.msgpack.decode(raw, type=Snapshot)
