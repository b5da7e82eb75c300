"""The workers of a broker: a process for the shipped code of each active subscription, which answers in time
and within its limits, or is ended."""

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
from ....protocols.agents.shipped import Done, Work, Worked

FILE = Path(__file__).with_name("worker.py")
ANSWER = 256 << 10
"""The longest answer, in bytes."""


@dataclass(frozen=True)
class Bounds:
    """What a worker may use: bytes of memory, seconds of computing and time for one call, calls that wait;
    how many workers there may be, and how long one may take to begin, before it has seen any code."""

    memory: int = 256 << 20
    cpu: int = 1
    wall: Duration = 5 * SECOND
    begin: Duration = 300 * SECOND
    waiting: int = 1_000
    workers: int = 16


BOUNDS = Bounds()


def require_starlark() -> None:
    """An error unless shipped code can be run here."""
    if find_spec("starlark") is None:
        raise UsageError("shipped code needs Starlark, which is not here: pip install 'holdfast[agents]'")


class Pool:
    """Workers by name.  ``answer`` is told what comes of each call."""

    def __init__(self, answer: Callable[[Worked], None], bounds: Bounds = BOUNDS) -> None:
        self._tell, self._bounds = answer, bounds
        self._queues: dict[str, asyncio.Queue[Work]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, what: Any) -> None:
        """Do what a machine wants done."""
        if isinstance(what, Done):
            self._end(what.worker)
        elif isinstance(what, Work):
            self._put(what)

    def _put(self, work: Work) -> None:
        queue = self._queues.get(work.worker)
        if queue is None:
            if len(self._queues) >= self._bounds.workers:
                self._later(Worked(work.agent, fault=f"{self._bounds.workers} workers run here already"))
                return
            queue = self._queues[work.worker] = asyncio.Queue(self._bounds.waiting)
            self._tasks[work.worker] = asyncio.create_task(self._run(work.worker, work.code, queue))
        try:
            queue.put_nowait(work)
        except asyncio.QueueFull:
            self._later(Worked(work.agent, fault=f"it cannot keep up: {self._bounds.waiting} calls wait"))

    def _later(self, worked: Worked) -> None:
        """Answer once the machine has done with what it is doing."""
        asyncio.get_running_loop().call_soon(self._tell, worked)

    def _end(self, worker: str) -> None:
        if self._queues.pop(worker, None) is not None:
            task = self._tasks.pop(worker)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def stop(self) -> None:
        """End all."""
        for worker in list(self._tasks):
            self._end(worker)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _run(self, worker: str, code: str, queue: asyncio.Queue[Work]) -> None:
        """A worker's life: calls in line, one at a time; its first fault ends it, and all its agents hear."""
        starting = asyncio.ensure_future(self._start())
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _killed(await starting)
            raise
        agents: dict[str, None] = {}
        try:
            fault = (await self._answer(process, "its start", self._bounds.begin)).get("fault")
            if fault is None:
                fault = (await self._ask(process, {"code": code})).get("fault")
            while fault is None:
                work = await queue.get()
                agents[work.agent] = None
                asked = {"agent": work.agent, "call": work.call, "arguments": work.arguments}
                answer = await self._ask(process, asked)
                fault = answer.get("fault")
                if fault is None:
                    self._tell(Worked(work.agent, tuple(answer["wants"])))
        finally:
            await _killed(process)
        if self._queues.get(worker) is queue:
            del self._queues[worker], self._tasks[worker]
        while not queue.empty():
            agents[queue.get_nowait().agent] = None
        for agent in agents:
            self._tell(Worked(agent, fault=fault))

    async def _start(self) -> asyncio.subprocess.Process:
        """A process that has nothing of ours."""
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        bounds = str(self._bounds.memory), str(self._bounds.cpu)
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(FILE), *bounds,
            stdin=pipe, stdout=pipe, stderr=none, env={}, cwd="/", limit=ANSWER,
        )  # fmt: skip

    async def _ask(self, process: asyncio.subprocess.Process, asked: dict[str, Any]) -> dict[str, Any]:
        """What it says to a call, or why it says nothing."""
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        return await self._answer(process, "a call", self._bounds.wall)

    async def _answer(
        self, process: asyncio.subprocess.Process, what: str, within: Duration
    ) -> dict[str, Any]:
        """Its next line, once it has all that is for it."""
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
        return {"fault": self._death(await process.wait())}

    def _death(self, status: int) -> str:
        """Why a process came to its end."""
        if status == -signal.SIGXCPU:
            return f"a call computed for more than {self._bounds.cpu} s"
        if status in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            return f"it needed more than {self._bounds.memory >> 20} MiB of memory"
        return f"its process ended with status {status}"


async def _killed(process: asyncio.subprocess.Process) -> None:
    """End a process, and wait until it is gone."""
    assert process.stdin is not None
    with suppress(ProcessLookupError):
        process.kill()
    process.stdin.close()
    await process.wait()
