"""How a live query stands: read from its checkpoint, while it runs and after it.  Needs no Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ....errors import InputError, UsageError
from ....model.instant import show_instant
from .checkpoint import Checkpoint
from .ledger import Record, standing
from .log import FileLog


def status(folder: str | Path, most: int | None = None) -> dict[str, Any]:
    """What a checkpoint tells, as JSON has it; ``most`` bounds how many holding conditions are listed."""
    checkpoint = Checkpoint(Path(folder))
    query = checkpoint.load()
    if query is None:
        raise UsageError(f"{folder}: not the checkpoint of a query; 'holdfast run --checkpoint' makes one")
    found = standing(checkpoint.ledger, most)
    record, lost = found.record, set(found.unknown)
    return {
        "running": checkpoint.is_locked(),
        "batch": found.batch,
        "seconds_ago": round(time.time() - record.written, 1) if record.written else None,
        "restarts": {"count": len(found.restarts), **_last(found.restarts)},
        "files": {"read": record.files, "quarantined": record.quarantined, **waiting(checkpoint, record)},
        "bytes": record.bytes,
        "rows": record.rows,
        "rejected": record.rejected,
        "other_topics": record.other_topics,
        "subscriptions": {
            name: {
                **msgspec.to_builtins(record.subscriptions[name]),
                "outside": record.outside.get(name, 0),
            }
            for name in query.meanings
            if name in record.subscriptions
        },
        "holding": record.holding,
        "conditions": [
            {
                "subscription": name,
                "scope": scope,
                "since": show_instant(since),
                "known": (name, scope) not in lost,
            }
            for name, scope, since in found.holding
        ],
        "unknown": [{"subscription": name, "scope": scope} for name, scope in found.unknown],
    }


def _last(restarts: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """When a query was last started again by itself, and why."""
    if not restarts:
        return {}
    at, reason = restarts[-1]
    return {"seconds_ago": round(time.time() - at, 1), "reason": reason}


def waiting(checkpoint: Checkpoint, record: Record) -> dict[str, int]:
    """How many files have arrived and are not read yet, are half-written, or of no known format."""
    log = FileLog(checkpoint.log)
    log.refresh()
    left: dict[str, list[str]] = {"incomplete": [], "unknown": []}
    if checkpoint.waiting.exists():
        try:
            left = msgspec.json.decode(checkpoint.waiting.read_bytes(), type=dict[str, list[str]])
        except msgspec.DecodeError:
            raise InputError(
                f"{checkpoint.waiting}: damaged; remove it: the query writes it anew when it looks for files"
            ) from None
    return {
        "waiting": len(log.entries) - record.files - record.quarantined,
        **{kind: len(paths) for kind, paths in left.items()},
    }
