"""The process in which shipped code runs: Starlark, with limits enforced by the kernel.

The pool starts this file without environment. The process writes a line when it is ready, then reads one call
per line and writes one answer per line, all JSON. Starlark has neither files nor sockets. If its runtime has
a vulnerability, this process still cannot open any. Exceeding a limit ends the process, not the call: the
runtime aborts when memory is exhausted, and a long operation cannot be cancelled.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from typing import Any, BinaryIO

WANTS = """
def say(to, message):
    return {"say": to, "message": message}

def report(status, by, reading, value):
    return {"report": status, "by": by, "reading": reading, "value": value}
"""


def apart(a: list[float], b: list[float]) -> float:
    """Return the distance of two points. The rounding is the same as in all other code."""
    x, y, z = (p - q for p, q in zip((*a, 0.0, 0.0)[:3], (*b, 0.0, 0.0)[:3], strict=True))
    return math.sqrt(x * x + y * y + z * z)


class Program:
    """The loaded code of one active subscription, with the states of its agents."""

    def __init__(self, text: str) -> None:
        import starlark

        module = starlark.Module()
        module.add_callable("apart", apart)
        module.add_callable("sqrt", math.sqrt)
        everything = starlark.Globals.standard()
        for name, source in (("holdfast", WANTS), ("strategy", text)):
            starlark.eval(module, starlark.parse(f"{name}.star", source), everything)
        self._module = module.freeze()
        self._states: dict[str, Any] = {}

    def call(self, agent: str, function: str, arguments: list[Any]) -> list[Any]:
        """Call a function of the code for an agent, store the new state, and return the outputs."""
        if function == "start":
            self._states[agent] = self._module.call("start", *arguments)
            return []
        answer = self._module.call(function, self._states[agent], *arguments)
        match answer:
            case [state, [*wants]]:
                self._states[agent] = state
                return wants
        raise TypeError(f"{function} returns no (state, wants)")


def limit(memory: int) -> None:
    """Limit memory to a number of bytes, and forbid opening files, writing to files and starting
    processes.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for what in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NPROC"):
        resource.setrlimit(getattr(resource, what), (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def allow(seconds: int) -> None:
    """Limit the CPU time from this call on, in seconds. After that the kernel ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def reason(error: BaseException) -> str:
    """Return an error as one line. Starlark's message is among the lines of its traceback."""
    lines = str(error).splitlines()
    message = next((line for line in lines if line.startswith("error: ")), " ".join(lines))
    return f"it failed: {message.removeprefix('error: ')}"[:300]


def main() -> None:
    """Read calls from standard input and answer them until the input ends."""
    import starlark

    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    reads, writes = sys.stdin.buffer, sys.stdout.buffer
    starlark.eval(starlark.Module(), starlark.parse("warm.star", "x = 1"), starlark.Globals.standard())
    limit(memory)
    program: Program | None = None
    say(writes, "{}")
    while line := reads.readline():
        allow(seconds)
        try:
            request = json.loads(line)
            wants: list[Any] = []
            if program is None:
                program = Program(request["code"])
            else:
                wants = program.call(request["agent"], request["call"], request["arguments"])
            answer_line = json.dumps({"wants": wants})
        except BaseException as error:
            answer_line = json.dumps({"fault": reason(error)})
        say(writes, answer_line)


def say(to: BinaryIO, line: str) -> None:
    """Write a line and flush it."""
    to.write(line.encode() + b"\n")
    to.flush()


if __name__ == "__main__":
    main()
