"""Advice in this process: a history is read once, and every variant of a state goes over it together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ...compilers.advise.question import Held, too_short
from ...compilers.advise.rows import Measure, gathered
from ...files.find import InputFile
from ...files.read import inspect, read
from ...files.reading import Reading
from ...files.tally import Rejects, Tally
from ...lang.tune import Tunable


def history(
    found: Tunable,
    files: Sequence[InputFile],
    reading: Reading,
    tally: Tally,
    *,
    progress: Callable[[Tally], None] = lambda _tally: None,
) -> Held:
    """The readings that a state is about; what was read is counted."""
    measure, topic = Measure(found), found.condition.topic.name
    for file in files:
        inspect(file, reading)

    def measured() -> Iterator[pa.RecordBatch]:
        for file in files:
            for of, batch in read(file, reading, tally, Rejects(), decisive=measure.looks_at):
                if len(batch) and of.name == topic:
                    yield measure(batch)
                progress(tally)

    rows = gathered(measured())
    if not len(rows):
        raise too_short(found, tally.rows)
    return Held(rows, found)
