"""A live query that Spark itself ends goes on, so often; what is somebody else's fault ends it."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from holdfast.errors import InputError

queries = pytest.importorskip("holdfast.runtimes.spark.live.query")
ledgers = pytest.importorskip("holdfast.runtimes.spark.live.ledger")
errors = pytest.importorskip("pyspark.errors")

SLOW = "Job aborted: Timed out while waiting for the Python worker to connect back"


class Running:
    """A streaming query of Spark, as it ends."""

    def __init__(self, end):
        self._end = end

    def awaitTermination(self, seconds):  # noqa: N802
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(queries.time, "sleep", lambda seconds: None)
    return ledgers.Ledger(tmp_path / "ledger.sqlite")


def query(ledger, ends, fault=None, progress=False):
    """A query whose runs end in these ways, one after the other; with progress each has done a batch."""
    batches, left = SimpleNamespace(ledger=ledger, fault=fault, done=0), iter(ends)

    def start():
        batches.done += progress
        return Running(next(left))

    return queries.Query(start, batches, checkpoint=None)


def test_it_is_started_again_after_a_time_out_and_says_so(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW), True])
    assert not live.wait(1)
    assert live.wait(1)
    ((at, reason),) = ledgers.standing(tmp_path / "ledger.sqlite").restarts
    assert at > 0
    assert "Timed out while waiting for the Python worker" in reason


def test_so_often_and_no_more_without_a_batch_between(ledger):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 9)
    for _ in range(queries.RESTARTS):
        assert not live.wait(1)
    with pytest.raises(InputError, match="Timed out"):
        live.wait(1)


def test_what_goes_on_between_begins_anew(ledger):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 9 + [True], progress=True)
    assert [live.wait(1) for _ in range(10)] == [False] * 9 + [True]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (errors.StreamingQueryException("cannot resolve column"), None),
        (errors.StreamingQueryException(SLOW), InputError("disk full")),
        (OSError("gone"), None),
    ],
    ids=["another error of Spark", "a fault of ours", "no Spark any more"],
)
def test_nothing_else_starts_it_again(ledger, tmp_path, error, fault):
    live = query(ledger, [error], fault)
    with pytest.raises(InputError, match=re.escape(str(fault)) if fault else "Spark"):
        live.wait(1)
    assert ledgers.standing(tmp_path / "ledger.sqlite").restarts == []
