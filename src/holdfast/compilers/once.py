"""What several ask of a batch in turn is found once."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

import pyarrow as pa

Found = TypeVar("Found")

_THREADS = 64
"""So many threads may ask at a time, and each be remembered."""


def once(find: Callable[[pa.RecordBatch], Found]) -> Callable[[pa.RecordBatch], Found]:
    """The function, which remembers for each thread the last batch that it was asked of."""
    last: dict[int, tuple[Any, Any]] = {}

    def remembered(batch: pa.RecordBatch) -> Found:
        thread = get_ident()
        of, found = last.get(thread, (None, None))
        if of is not batch:
            found = find(batch)
            if len(last) >= _THREADS:
                last.clear()  # threads come and go
            last[thread] = (batch, found)
        answer: Found = found
        return answer

    return remembered
