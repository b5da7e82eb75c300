"""A live query that Spark itself ends goes on, so often; what is somebody else's fault ends it."""

from __future__ import annotations

import re
import time
from itertools import count
from pathlib import Path
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
    now = [0.0]
    clock = SimpleNamespace(
        sleep=lambda seconds: now.append(now[-1] + seconds), monotonic=lambda: now[-1], time=time.time
    )
    monkeypatch.setattr(queries, "time", clock)  # its own: other threads of this process sleep as well
    return ledgers.Ledger(tmp_path / "ledger.sqlite")


def query(ledger, ends, fault=None, progress=False, stop=None):
    """A query whose runs end in these ways, one after the other; with progress each has done a batch."""
    batches, left = SimpleNamespace(ledger=ledger, fault=fault, done=0), iter(ends)

    def start():
        batches.done += progress
        return Running(next(left))

    return queries.Query(start, batches, SimpleNamespace(stop=stop or Path("/nowhere")))


def ends(live):
    """Wait until it has ended; how often one had to."""
    for looked in count(1):
        if live.wait(1):
            return looked


def test_a_query_survives_a_time_out_of_spark_and_says_so(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW), True])
    assert not live.wait(1)
    assert ends(live)
    ((at, reason),) = ledgers.standing(tmp_path / "ledger.sqlite").restarts
    assert at > 0
    assert "Timed out while waiting for the Python worker" in reason


def test_so_often_and_no_more_without_a_batch_between(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 99)
    with pytest.raises(InputError, match="Timed out"):
        ends(live)
    assert len(ledgers.standing(tmp_path / "ledger.sqlite").restarts) == queries.RESTARTS
    assert queries.time.monotonic() == 2**queries.RESTARTS - 1


def test_what_goes_on_between_begins_anew(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 20 + [True], progress=True)
    ends(live)
    assert len(ledgers.standing(tmp_path / "ledger.sqlite").restarts) == 20


def test_what_is_to_stop_is_not_started_again(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW), True], stop=tmp_path)
    with pytest.raises(InputError, match="Timed out"):
        live.wait(1)


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
