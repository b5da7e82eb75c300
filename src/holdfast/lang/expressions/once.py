"""A cache for the result of a function on a batch, so that several callers compute it once."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

import pyarrow as pa

Found = TypeVar("Found")

_THREADS = 64
"""The number of threads with a cached result."""


def once(find: Callable[[pa.RecordBatch], Found]) -> Callable[[pa.RecordBatch], Found]:
    """Return a function that caches its result for the last batch, separately for each thread."""
    last: dict[int, tuple[Any, Any]] = {}

    def compute_once(batch: pa.RecordBatch) -> Found:
        thread = get_ident()
        of, found = last.get(thread, (None, None))
        if of is not batch:
            found = find(batch)
            if len(last) >= _THREADS:
                last.clear()  # threads come and go
            last[thread] = (batch, found)
        answer: Found = found
        return answer

    return compute_once
