"""The measurements for ``holdfast advise`` in this process.

One pass over a history serves all variants of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ...definition.tune import Tunable
from ...files.find import InputFile
from ...files.read import inspect, read
from ...files.reading import Reading
from ...files.tally import Rejects, Tally
from ...plan.advise.question import MeasuredInMemory, too_short
from ...plan.advise.rows import Measure, collect_rows


def history(
    found: Tunable,
    files: Sequence[InputFile],
    reading: Reading,
    tally: Tally,
    *,
    progress: Callable[[Tally], None] = lambda _tally: None,
) -> MeasuredInMemory:
    """Read the readings that a state depends on into memory.

    `tally` counts rows; `progress` is called with it.
    """
    measure, topic = Measure(found), found.condition.topic.name
    for file in files:
        inspect(file, reading)

    def measured_batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            for of, batch in read(file, reading, tally, Rejects(), decisive=measure.looks_at):
                if len(batch) and of.name == topic:
                    yield measure(batch)
                progress(tally)

    rows = collect_rows(measured_batches())
    if not len(rows):
        raise too_short(found, tally.rows)
    return MeasuredInMemory(rows, found)
