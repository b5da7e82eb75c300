"""Shipped code at work: what it may use, and what becomes of it when it uses more."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from holdfast.model.instant import SECOND
from holdfast.network.overlay.shipped.pool import FILE, WorkerBounds, WorkerPool
from holdfast.network.protocols.agents.shipped import WorkerCall, WorkerDone, WorkerResult
from support.patience import PATIENCE

PATIENT = WorkerBounds(wall=PATIENCE * SECOND)
"""A loaded machine may be slow to start a worker."""
AGENT = """
def start(me, others, relation):
    return {{"heard": 0}}

def read(state, reading):
    {body}
"""
GOOD = AGENT.format(body='return {"heard": state["heard"] + 1}, [say("b", state["heard"])]')
HOSTILE = {
    "an endless loop": ("for i in range(1 << 30):\n        pass", "computed for more than 1 s"),
    "memory": ("return state, ['x' * reading['time']]", "more than 256 MiB"),
    "recursion": ("return read(state, reading)", "stack overflow"),
    "a long answer": ("return state, ['x' * 1000 for i in range(1000)]", "bytes"),
    "nonsense": ("return 17", "returns no (state, wants)"),
    "a file": ("return state, [open('/etc/passwd')]", "`open` not found"),
    "a module": ("load('os', 'system')", "`load`"),
}


def run_calls(code, calls, bounds=None):
    """The results of calls of one agent."""

    async def run():
        answers = asyncio.Queue()
        pool = WorkerPool(answers.put_nowait, bounds or PATIENT)
        pool.carry_out(WorkerCall("w", code, "a", "start", ("a", ("b",), {})))
        for i in range(calls):
            pool.carry_out(WorkerCall("w", code, "a", "read", ({"time": 1_000_000_000 + i},)))
        found = []
        while len(found) <= calls and not (found and found[-1].fault):
            found.append(await asyncio.wait_for(answers.get(), PATIENCE))
        await pool.stop()
        return found

    return asyncio.run(run())


def test_calls_are_answered_in_order_and_an_agent_remembers():
    answers = run_calls(GOOD, 3)
    assert answers[1:] == [WorkerResult("a", ({"say": "b", "message": i},)) for i in range(3)]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_worker_that_exceeds_its_memory_is_ended_with_the_reason(what):
    body, why = HOSTILE[what]
    last = run_calls(AGENT.format(body=body), 1, PATIENT)[-1]
    assert last.fault is not None
    assert why in last.fault


def test_a_worker_that_takes_too_long_is_ended():
    """The worker computes nothing, so no limit of CPU time stops it: the caller has a clock."""
    last = run_calls(
        AGENT.format(body=HOSTILE["an endless loop"][0]), 1, WorkerBounds(cpu=60, wall=SECOND // 2)
    )[-1]
    assert last.fault == "a call took longer than 0.5 s"


def test_the_start_of_a_worker_does_not_count_as_a_call():
    """The start has its own limit, and is not charged to the code."""
    (last,) = run_calls(GOOD, 0, WorkerBounds(begin=0))
    assert last.fault == "its start took longer than 0 s"


def test_one_worker_that_fails_harms_no_other():
    async def run():
        answers = asyncio.Queue()
        pool = WorkerPool(answers.put_nowait, PATIENT)
        bad = AGENT.format(body=HOSTILE["an endless loop"][0])
        for worker, code in (("bad", bad), ("good", GOOD)):
            pool.carry_out(WorkerCall(worker, code, worker, "start", ("a", ("b",), {})))
            pool.carry_out(WorkerCall(worker, code, worker, "read", ({"time": 1},)))
        found = [await asyncio.wait_for(answers.get(), PATIENCE) for _ in range(4)]
        pool.carry_out(WorkerDone("good"))
        await pool.stop()
        return found

    found = asyncio.run(run())
    assert [one.wants for one in found if one.agent == "good"] == [(), ({"say": "b", "message": 0},)]
    assert [bool(one.fault) for one in found if one.agent == "bad"] == [False, True]


def test_workers_and_waiting_calls_are_bounded():
    async def run():
        answers = asyncio.Queue()
        pool = WorkerPool(answers.put_nowait, WorkerBounds(wall=PATIENCE * SECOND, workers=1, waiting=2))
        for worker in ("first", "second"):
            for _ in range(4):
                pool.carry_out(WorkerCall(worker, GOOD, worker, "read", ({"time": 1},)))
        faults = [await asyncio.wait_for(answers.get(), PATIENCE) for _ in range(6)]
        await pool.stop()
        return {(one.agent, one.fault) for one in faults}

    assert asyncio.run(run()) >= {
        ("second", "1 workers run here already"),
        ("first", "it cannot keep up: 2 calls wait"),
    }


@pytest.mark.parametrize(
    "attempt", ["open('/etc/hostname')", "__import__('socket').socket()", "__import__('os').pipe()"]
)
def test_a_worker_can_open_nothing_whatever_it_executes(attempt):
    """Should there be a way out of Starlark, it leads nowhere."""
    code = f"import socket, sys; sys.path.insert(0, {str(FILE.parent)!r}); import worker"
    code += f"; worker.limit(1 << 30); {attempt}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Too many open files" in done.stderr
