"""Functions in processes of their own: what they give, and how long they take, cold and warm.

Arguments and results travel as JSON.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

Job = Callable[..., Any]
"""``job(name, spark, folder, output, *more)``: do what has that name, from one folder to another."""


class Failed(RuntimeError):
    """A function ended with an error in its process; ``reason`` is the error in one line."""

    def __init__(self, called: str, message: str) -> None:
        super().__init__(f"{called}: {message[-2000:]}")
        errors = re.findall(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception)\b.*)", message, re.MULTILINE)
        self.reason: str = errors[-1] if errors else message.strip().rpartition("\n")[2]


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module gives in a process of its own."""
    called = f"{function.__module__}:{function.__name__}"
    code = f"from {__name__} import _answer; _answer({called!r}, {json.dumps(arguments)!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if ran.returncode:
        raise Failed(f"{called}{arguments}", ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def _answer(called: str, arguments: str) -> None:
    print(json.dumps(_function_named(called)(*json.loads(arguments))))


def _function_named(called: str) -> Callable[..., Any]:
    module, _, name = called.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def resident() -> int:
    """How many bytes of memory this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class JobTimes:
    """A job that was done once from the start of its process, and then again."""

    cold: float
    """Seconds from the start of the process until it was done once."""
    seconds: Sequence[float]
    """Of each time."""
    found: Any
    """What the first time gave."""
    output: Path
    """Where the first time wrote to."""
    memory: Mapping[str, int]
    """The most bytes that the process had, and those of its children together, by what they run."""

    @property
    def again(self) -> Sequence[float]:
        return self.seconds[1:] or self.seconds

    @property
    def warm(self) -> float:
        return min(self.again)

    @property
    def best(self) -> float:
        return min(self.seconds)

    def detail(self, events: int, **more: Any) -> dict[str, Any]:
        """What a row says besides."""
        details = {
            "with_start_up_s": self.cold,
            "worst_s": max(self.again),
            "events_per_s": events / self.warm,
        }
        return details | {"megabytes": {what: size >> 20 for what, size in self.memory.items()}} | more

    def remove(self) -> None:
        """Free the disk."""
        _remove(self.output)


def measure_job(
    job: Job, name: str, folder: Path, *more: Any, times: int = 2, on_spark: bool = True
) -> JobTimes:
    """Do a job so many times in one process; what all but the first wrote is removed."""
    output = folder.parent / f"{folder.name}.{name}"
    called = f"{job.__module__}:{job.__name__}"
    start = time.time()
    how = [name, str(folder), str(output), *more]
    done, seconds, found, memory = apart(_repeat, called, how, times, on_spark)
    return JobTimes(done - start, seconds, found, output, memory)


def _repeat(
    called: str, how: list[Any], times: int, on_spark: bool
) -> tuple[float, list[float], Any, dict[str, int]]:
    job, (name, folder, output, *more) = _function_named(called), how
    spark = None
    if on_spark:
        from holdfast.runtimes.spark.session import session

        spark = session()
    seconds, done, found = [], 0.0, None
    for i in range(times):
        target = Path(f"{output}.{i}" if i else output)
        start = time.perf_counter()
        given = job(name, spark, Path(folder), target, *more)
        seconds.append(time.perf_counter() - start)
        if i:
            _remove(target)
        else:
            done, found = time.time(), given
    return done, seconds, found, _memory()


def _memory() -> dict[str, int]:
    """The most bytes of memory that this process has had, and those that its children have had together."""
    found = {"process": int(_status(os.getpid())["VmHWM"].split()[0]) << 10}
    for child, name in children().items():
        with suppress(OSError):  # it may have ended
            what = "java" if name == "java" else "workers"
            found[what] = found.get(what, 0) + (int(_status(child).get("VmHWM", "0 kB").split()[0]) << 10)
    return found


def children() -> dict[int, str]:
    """The processes below this one, with what they run."""
    parents, runs = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended
            message, child = _status(int(folder.name)), int(folder.name)
            parents[child], runs[child] = int(message["PPid"]), message["Name"]
    own, found = os.getpid(), {}
    for child in parents:
        above = child
        while above not in (0, 1, own):
            above = parents.get(above, 0)
        if above == own and child != own:
            found[child] = runs[child]
    return found


def _status(child: int) -> dict[str, str]:
    lines = (line.partition(":") for line in Path(f"/proc/{child}/status").read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def _remove(output: Path) -> None:
    output.unlink() if output.is_file() else shutil.rmtree(output, ignore_errors=True)
    shutil.rmtree(f"{output}.checkpoint", ignore_errors=True)
