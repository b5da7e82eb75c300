"""A replay that is read more than once."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import holdfast
from holdfast.errors import UsageError
from holdfast.model.batch import TIME

WAITING = """topic Temperature (value float)
state Warm on Temperature [value > 25 for 2 s; value < 22] per source"""
OPEN = "topic Temperature (value float)\nstate Warm on Temperature [value > 25; value < 0] per source"


def history():
    values = [20.0, 26.0, 21.0, 27.0, 28.0, 21.0, None, 26.0, 27.0, 29.0]
    return pa.table(
        {
            "time": pa.array([i * 1_000_000 for i in range(len(values))], pa.int64()).cast(TIME),
            "source": ["s1"] * len(values),
            "value": values,
        }
    )


def counts_of(replay):
    return replay.tally, replay.kept, replay.passed, replay.coverage, replay.holding()


@pytest.mark.parametrize("definition", [WAITING, OPEN], ids=["waiting", "open"])
def test_every_pass_over_a_replay_starts_at_the_beginning(definition):
    replay = holdfast.replay(definition, history())
    first = [json.dumps(one.to_json()) for one in replay]
    assert first
    count = counts_of(replay)
    assert [json.dumps(one.to_json()) for one in replay] == first
    assert counts_of(replay) == count
    rows = replay.to_arrow()
    assert counts_of(replay) == count
    assert replay.to_arrow().equals(rows)
    assert replay.intervals() == replay.intervals()
    assert [len(batch) for _, batch in replay.readings()] == [len(batch) for _, batch in replay.readings()]
    assert [json.dumps(one.to_json()) for one in replay] == first


def test_an_interrupted_pass_leaves_nothing_behind():
    replay = holdfast.replay(OPEN.replace("value < 0", "value < 22"), history())
    whole = [json.dumps(one.to_json()) for one in replay]
    next(iter(replay))
    assert [json.dumps(one.to_json()) for one in replay] == whole


def test_two_passes_at_once_are_refused():
    replay = holdfast.replay(OPEN.replace("value < 0", "value < 22"), history())
    one, other = iter(replay), iter(replay)
    next(one)
    next(other)
    with pytest.raises(UsageError, match="another pass"):
        list(one)
