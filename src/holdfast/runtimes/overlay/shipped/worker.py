"""The process in which shipped code runs: Starlark, with limits that the kernel keeps.

It is started as a file, alone, with nothing in its environment; it says a line when it has begun, then reads
a call a line and answers a line, all JSON.  Starlark has neither files nor sockets; should its runtime have a
hole, this process cannot open anything either.  A limit that is passed ends the process, not the call: the
runtime aborts when memory runs out, and one long operation cannot be cancelled.
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
    """How far two points are apart, to the last bit as everywhere."""
    x, y, z = (p - q for p, q in zip((*a, 0.0, 0.0)[:3], (*b, 0.0, 0.0)[:3], strict=True))
    return math.sqrt(x * x + y * y + z * z)


class Program:
    """A text, loaded once, and the states of its agents."""

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
        """Let an agent take something; what it wants."""
        if function == "start":
            self._states[agent] = self._module.call("start", *arguments)
            return []
        answer = self._module.call(function, self._states[agent], *arguments)
        if (
            not isinstance(answer, list | tuple)
            or len(answer) != 2
            or not isinstance(answer[1], list | tuple)
        ):
            raise TypeError(f"{function} returns no (state, wants)")
        self._states[agent], wants = answer
        return list(wants)


def limit(memory: int) -> None:
    """From now on: no more memory, nothing opened, nothing written but answers, no process begun."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for what in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NPROC"):
        resource.setrlimit(getattr(resource, what), (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def allow(seconds: int) -> None:
    """So much computing from here on; then the kernel ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def reason(error: BaseException) -> str:
    """What went wrong, in a line; Starlark says it among the calls that led there."""
    lines = str(error).splitlines()
    said = next((line for line in lines if line.startswith("error: ")), " ".join(lines))
    return f"it failed: {said.removeprefix('error: ')}"[:300]


def main() -> None:
    """Answer calls until nobody asks any more."""
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
            asked = json.loads(line)
            if program is None:
                program = Program(asked["code"])
                answer: dict[str, Any] = {"wants": []}
            else:
                answer = {"wants": program.call(asked["agent"], asked["call"], asked["arguments"])}
            said = json.dumps(answer)
        except BaseException as error:
            said = json.dumps({"fault": reason(error)})
        say(writes, said)


def say(to: BinaryIO, line: str) -> None:
    to.write(line.encode() + b"\n")
    to.flush()


if __name__ == "__main__":
    main()
