"""The status of a query, read from its checkpoint while the query runs or afterwards. Spark is not needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ....errors import InputError, UsageError
from ....model.instant import show_instant
from .checkpoint import Checkpoint
from .ledger import Record, read_ledger
from .log import FileLog


def status(folder: str | Path, most: int | None = None) -> dict[str, Any]:
    """Return the status of a checkpoint as JSON values. Lists at most `most` active conditions."""
    checkpoint = Checkpoint(Path(folder))
    query = checkpoint.load()
    if query is None:
        raise UsageError(f"{folder}: not the checkpoint of a query; 'holdfast run --checkpoint' makes one")
    ledger = read_ledger(checkpoint.ledger, most)
    record, unknown = ledger.record, set(ledger.unknown)
    return {
        "running": checkpoint.is_locked(),
        "batch": ledger.batch,
        "seconds_ago": round(time.time() - record.written, 1) if record.written else None,
        "restarts": {"count": len(ledger.restarts), **_last_restart(ledger.restarts)},
        "files": {
            "read": record.files,
            "quarantined": record.quarantined,
            **count_waiting(checkpoint, record),
        },
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
                "known": (name, scope) not in unknown,
            }
            for name, scope, since in ledger.holding
        ],
        "unknown": [{"subscription": name, "scope": scope} for name, scope in ledger.unknown],
    }


def _last_restart(restarts: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """Return when and why the query last restarted by itself; empty if it never did."""
    if not restarts:
        return {}
    at, reason = restarts[-1]
    return {"seconds_ago": round(time.time() - at, 1), "reason": reason}


def count_waiting(checkpoint: Checkpoint, record: Record) -> dict[str, int]:
    """Count the files that wait to be read, are incomplete, or have an unknown format."""
    log = FileLog(checkpoint.log)
    log.refresh()
    waiting: dict[str, list[str]] = {"incomplete": [], "unknown": []}
    if checkpoint.waiting.exists():
        try:
            waiting = msgspec.json.decode(checkpoint.waiting.read_bytes(), type=dict[str, list[str]])
        except msgspec.DecodeError:
            raise InputError(
                f"{checkpoint.waiting}: damaged; remove it: the query writes it anew when it looks for files"
            ) from None
    return {
        "waiting": len(log.entries) - record.files - record.quarantined,
        **{kind: len(paths) for kind, paths in waiting.items()},
    }
