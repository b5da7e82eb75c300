"""A function of batches is asked once of each, by every thread that asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa

from holdfast.lang.expressions.once import once

FIRST, SECOND = (pa.RecordBatch.from_pydict({"n": [n]}) for n in (1, 2))


def test_the_result_for_the_last_batch_is_cached():
    asked = []
    find = once(lambda batch: asked.append(batch) or len(asked))
    assert [find(FIRST), find(FIRST), find(SECOND), find(SECOND), find(FIRST)] == [1, 1, 2, 2, 3]


def test_threads_do_not_share_cached_results():
    together = Barrier(2)

    def find(batch):
        together.wait()  # both are asked before either answers
        return batch

    remembered = once(find)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda batch: remembered(batch) is batch, [FIRST, SECOND])) == [True, True]
