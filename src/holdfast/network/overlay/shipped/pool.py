"""The workers of a broker: one process for the shipped code of each active subscription.

The pool ends a worker that does not answer in time or exceeds its limits.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....errors import UsageError
from ....model.instant import SECOND, Duration
from ...protocols.agents.shipped import WorkerCall, WorkerDone, WorkerResult

FILE = Path(__file__).with_name("worker.py")
ANSWER = 256 << 10
"""The greatest length of an answer in bytes."""


@dataclass(frozen=True)
class WorkerBounds:
    """Limits of a worker: memory in bytes, CPU seconds and wall time (µs) of one call, and queued calls.

    ``workers`` is the number of workers. ``begin`` is the time in µs in which a worker must start, before it
    receives code.
    """

    memory: int = 256 << 20
    cpu: int = 1
    wall: Duration = 5 * SECOND
    begin: Duration = 300 * SECOND
    waiting: int = 1_000
    workers: int = 16


BOUNDS = WorkerBounds()


def require_starlark() -> None:
    """Raise a `UsageError` if shipped code cannot run because Starlark is not installed."""
    if find_spec("starlark") is None:
        raise UsageError("shipped code needs Starlark, which is not here: pip install 'holdfast[agents]'")


class WorkerPool:
    """Workers by name. ``answer`` is called with the result of each call, in the event loop."""

    def __init__(self, answer: Callable[[WorkerResult], None], bounds: WorkerBounds = BOUNDS) -> None:
        self._tell, self._bounds = answer, bounds
        self._queues: dict[str, asyncio.Queue[WorkerCall]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def carry_out(self, delivery: Any) -> None:
        """Carry out a delivery of a machine: a call, or the end of a worker."""
        if isinstance(delivery, WorkerDone):
            self._end(delivery.worker)
        elif isinstance(delivery, WorkerCall):
            self._put(delivery)

    def _put(self, work: WorkerCall) -> None:
        """Queue a call for its worker; start the worker if it does not run."""
        queue = self._queues.get(work.worker)
        if queue is None:
            if len(self._queues) >= self._bounds.workers:
                self._later(work.agent, f"{self._bounds.workers} workers run here already")
                return
            queue = self._queues[work.worker] = asyncio.Queue(self._bounds.waiting)
            self._tasks[work.worker] = asyncio.create_task(self._run(work.worker, work.code, queue))
        try:
            queue.put_nowait(work)
        except asyncio.QueueFull:
            self._later(work.agent, f"it cannot keep up: {self._bounds.waiting} calls wait")

    def _later(self, agent: str, fault: str) -> None:
        """Deliver a fault after the machine has finished its current input."""
        asyncio.get_running_loop().call_soon(self._tell, WorkerResult(agent, fault=fault))

    def _end(self, worker: str) -> None:
        if self._queues.pop(worker, None) is not None:
            task = self._tasks.pop(worker)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def stop(self) -> None:
        """End all workers."""
        for worker in list(self._tasks):
            self._end(worker)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _run(self, worker: str, code: str, queue: asyncio.Queue[WorkerCall]) -> None:
        """Run a worker and process its calls in order. The first fault ends it and is reported to all its
        agents.
        """
        starting = asyncio.ensure_future(self._start())
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _kill(await starting)
            raise
        agents: dict[str, None] = {}
        try:
            fault = (await self._answer(process, "its start", self._bounds.begin)).get("fault")
            if fault is None:
                fault = (await self._ask(process, {"code": code})).get("fault")
            while fault is None:
                call = await queue.get()
                agents[call.agent] = None
                request = {"agent": call.agent, "call": call.call, "arguments": call.arguments}
                answer = await self._ask(process, request)
                fault = answer.get("fault")
                if fault is None:
                    self._tell(WorkerResult(call.agent, tuple(answer["wants"])))
        finally:
            await _kill(process)
        if self._queues.get(worker) is queue:
            del self._queues[worker], self._tasks[worker]
        while not queue.empty():
            agents[queue.get_nowait().agent] = None
        for agent in agents:
            self._tell(WorkerResult(agent, fault=fault))

    async def _start(self) -> asyncio.subprocess.Process:
        """Start a worker process without environment variables."""
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        bounds = str(self._bounds.memory), str(self._bounds.cpu)
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(FILE), *bounds,
            stdin=pipe, stdout=pipe, stderr=none, env={}, cwd="/", limit=ANSWER,
        )  # fmt: skip

    async def _ask(self, process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request to a worker; return its answer or a fault."""
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        return await self._answer(process, "a call", self._bounds.wall)

    async def _answer(
        self, process: asyncio.subprocess.Process, what: str, within: Duration
    ) -> dict[str, Any]:
        """Return the next line of a worker; a fault if it does not arrive within ``within`` µs."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(within / SECOND):
                await process.stdin.drain()
                line = await process.stdout.readline()
        except TimeoutError:
            return {"fault": f"{what} took longer than {within / SECOND:g} s"}
        except ValueError:
            return {"fault": f"an answer has more than {ANSWER:,} bytes"}
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        if line:
            return dict(json.loads(line))
        return {"fault": self._exit_reason(await process.wait())}

    def _exit_reason(self, status: int) -> str:
        """Return the reason why a process ended, from its exit status."""
        if status == -signal.SIGXCPU:
            return f"a call computed for more than {self._bounds.cpu} s"
        if status in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            return f"it needed more than {self._bounds.memory >> 20} MiB of memory"
        return f"its process ended with status {status}"


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process and wait for its end."""
    assert process.stdin is not None
    with suppress(ProcessLookupError):
        process.kill()
    process.stdin.close()
    await process.wait()
