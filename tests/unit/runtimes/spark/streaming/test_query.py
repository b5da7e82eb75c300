"""A live query that Spark itself ends is restarted, within limits; any other error ends it."""

from __future__ import annotations

import re
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import DefinitionError, InputError, UsageError

queries = pytest.importorskip("holdfast.runtimes.spark.streaming.query")
ledgers = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")
errors = pytest.importorskip("pyspark.errors")

SLOW = "Job aborted: Timed out while waiting for the Python worker to connect back"


class RunningQuery:
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
    batches, left = SimpleNamespace(ledger=ledger, fault=fault, written=0), iter(ends)

    def start():
        batches.written += progress
        return RunningQuery(next(left))

    return queries.Query(start, batches, SimpleNamespace(stop=stop or Path("/nowhere")))


def ends(live):
    """Wait until it has ended; how often one had to."""
    for looked in count(1):
        if live.wait(1):
            return looked


def test_a_query_survives_a_time_out_of_spark_and_reports_it(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW), True])
    assert not live.wait(1)
    assert ends(live)
    ((at, reason),) = ledgers.read_ledger(tmp_path / "ledger.sqlite").restarts
    assert at > 0
    assert "Timed out while waiting for the Python worker" in reason


def test_restarts_without_a_batch_between_are_limited(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 99)
    with pytest.raises(InputError, match="Timed out"):
        ends(live)
    assert len(ledgers.read_ledger(tmp_path / "ledger.sqlite").restarts) == queries.RESTARTS
    assert queries.time.monotonic() == 2**queries.RESTARTS - 1


def test_a_batch_between_restarts_resets_the_limit(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW)] * 20 + [True], progress=True)
    ends(live)
    assert len(ledgers.read_ledger(tmp_path / "ledger.sqlite").restarts) == 20


def test_a_query_that_is_to_stop_is_not_restarted(ledger, tmp_path):
    live = query(ledger, [errors.StreamingQueryException(SLOW), True], stop=tmp_path)
    with pytest.raises(InputError, match="Timed out"):
        live.wait(1)


FAILED = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
  at org.apache.spark.scheduler.DAGScheduler
Caused by: java.lang.ArithmeticException: too much"""


@pytest.mark.parametrize(
    ("error", "fault", "message"),
    [
        (errors.StreamingQueryException("cannot resolve column"), None, "Spark ended the query"),
        (errors.StreamingQueryException(SLOW), InputError("disk full"), "disk full"),
        (errors.StreamingQueryException(FAILED), None, "failed 4 times\n  Caused by: java.lang.Arithmetic"),
        (OSError("gone"), None, "Spark has gone away (its Java process ended); run the same command again"),
    ],
    ids=["another error of Spark", "a fault of ours", "a task that fails", "no Spark any more"],
)
def test_other_errors_do_not_restart_a_query(ledger, tmp_path, error, fault, message):
    live = query(ledger, [error], fault)
    with pytest.raises(InputError, match=re.escape(message)):
        live.wait(1)
    assert ledgers.read_ledger(tmp_path / "ledger.sqlite").restarts == []


def test_batch_options_are_no_part_of_the_identity_of_a_stream(tmp_path):
    """`_reading_options` lists what must stay as it is as long as the checkpoint is used."""
    app = "topic T (v float)\nstate Warm on T [v > 25; v < 22] per source\n"
    how = {"every": 9, "batch_bytes": 1, "settle": 9, "idle": 9, "strict": True, "quarantine": True}
    one, other, wide = (
        queries.live(app, tmp_path, checkpoint=tmp_path / "checkpoint", **how)
        for how in ({}, how, {"wide": True})
    )
    assert queries._reading_options(one) == queries._reading_options(other) != queries._reading_options(wide)


def test_a_correcting_definition_is_refused_for_a_live_query(tmp_path):
    text = "topic T (v float)\nstate Warm on T [v > 25; v < 22] ordered 1 s late correct 1 min"
    with pytest.raises(DefinitionError, match="a live query on Spark cannot take anything back") as refused:
        queries.live(text, tmp_path, checkpoint=tmp_path / "checkpoint")
    assert "^^^^" in str(refused.value)
    with pytest.raises(UsageError, match="a live query on Spark cannot take anything back"):
        queries.Live(check(parse(text)), None, (), tmp_path / "checkpoint")
