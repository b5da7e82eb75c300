"""Output of states with minimum durations: transitions that carry new readings or stored readings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....engine import machine
from ....engine.machine import with_columns
from ....kernels.guard import BEGUN, CODE, LAST, NOBODY, NONE, ROW, SINCE, STATE, STATUS, TIME
from ....model import batch as batches_of
from ....model.batch import concatenate
from ....model.event import STATUSES, Event, Transition
from ....model.topic import Topic
from .state import DurationState

Shown = Callable[[str], str | None]
"""A function that converts the key of a scope to its label."""

NOTHING = np.empty((0, 6), np.int64)
"""The output of a kernel call without transitions."""


Cells = dict[tuple[int, int], int]
"""The output of the kernel for one scope: values by row and column."""


def transition(
    topic: Topic, shown: Shown, state: DurationState, code: int, out: Cells, n: int, event: Any
) -> Transition:
    """Return the transition of row ``n`` of the kernel's output for one scope.

    ``event`` is the reading that has just been processed, or ``None``.
    """
    condition, row, at = out[n, STATE], out[n, ROW], out[n, TIME]
    scope = shown(state.keys.key(code))
    if row >= 0:
        result = event if at == event.time else replace(event, time=at)
    elif row == NOBODY:
        result = Event(topic.name, at, scope or "", {attribute.name: None for attribute in topic.attributes})
    elif row == BEGUN:
        result = state.starts.event(code * state.width + condition, at)
    else:
        result = state.last.event(code, at)
    since = out[n, SINCE]
    return Transition(result, STATUSES[out[n, STATUS]], scope, None if since == NONE else since, condition)


def rows(
    topic: Topic, shown: Shown, state: DurationState, out: NDArray[np.int64], batch: pa.RecordBatch | None
) -> pa.RecordBatch:
    """Return the kernel's output as rows of an emission."""
    whole = _events(topic, shown, state, out, batch)
    when = pa.array(out[:, TIME]).cast(batches_of.TIME)
    whole = whole.set_column(whole.schema.get_field_index("time"), "time", when)
    named, scopes = np.unique(out[:, CODE], return_inverse=True)
    names = [shown(key) for key in state.keys.take(named).to_pylist()]
    since = out[:, SINCE]
    added = {
        machine.CONDITIONS: pa.array(np.uint64(1) << out[:, STATE].astype(np.uint64)),
        machine.STATUS: pa.DictionaryArray.from_arrays(out[:, STATUS].astype(np.int8), list(STATUSES)),
        machine.SCOPE: pa.array(names, pa.string()).take(pa.array(scopes)),
        machine.SINCE: pa.array(since, pa.int64(), mask=since == NONE).cast(batches_of.TIME),
    }
    return with_columns(whole.replace_schema_metadata(None), added)


def _events(
    topic: Topic, shown: Shown, state: DurationState, out: NDArray[np.int64], batch: pa.RecordBatch | None
) -> pa.RecordBatch:
    """Return the readings of the kernel's output, new or stored. The caller sets their times."""
    codes, row = out[:, CODE], out[:, ROW]
    parts = [batches_of.from_events(topic, []) if batch is None else batch.slice(0, 0)]
    places = []
    for where in (row >= 0, row == BEGUN, row == LAST, row == NOBODY):
        at = np.flatnonzero(where)
        if not len(at):
            continue
        places.append(at)
        kind = int(row[at[0]])
        if kind >= 0:
            assert batch is not None
            parts.append(batch.take(pa.array(row[at])))
        elif kind == NOBODY:
            names = [shown(key) or "" for key in state.keys.take(codes[at]).to_pylist()]
            parts.append(batches_of.from_events(topic, [Event(topic.name, 0, name) for name in names]))
        elif kind == BEGUN:
            parts.append(state.starts.take(codes[at] * state.width + out[at, STATE]))
        else:
            parts.append(state.last.take(codes[at]))
    whole = concatenate(parts) if len(parts) > 1 else parts[0]
    if not places:
        return whole
    back = np.empty(len(out), np.int64)
    back[np.concatenate(places)] = np.arange(len(out))
    return whole.take(pa.array(back))
