"""A routing protocol of your own: a class in a Python file beside the scenario.

The text of the file is part of the case, so that a run needs nothing else, here or on a cluster.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import did_you_mean
from ...sim.routing.datagram import RoutingMachine
from .document import text_of
from .fault import Fault

WANTED = ("initial", "handle", "held", "refuses")
"""What a routing machine can do."""


def code_of(machine: str, folder: Path) -> str:
    """The text of the file in ``file.py:Name``."""
    file, colon, name = machine.rpartition(":")
    if not (colon and name.isidentifier() and file.endswith(".py")):
        raise Fault(f"expected a file and a class in it, such as 'gossip.py:Gossip'; got '{machine}'")
    return text_of(folder / file)


def made(machine: str, code: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> RoutingMachine:
    """The machine of ``file.py:Name``: called with what was ``given`` and with what it wants of the
    ``known``, by the names of its parameters."""
    file, _, name = machine.rpartition(":")
    names = vars(_module(file, code))
    if not callable(kind := names.get(name)):
        there = [each for each, value in names.items() if inspect.isclass(value)]
        raise Fault(f"{file} has no class '{name}'", ("machine",), hint=did_you_mean(name, there))
    parameters = _parameters(kind)
    for each in given:
        if each not in parameters:
            hint = did_you_mean(each, parameters) or f"There is {', '.join(parameters) or 'none'}."
            raise Fault(f"{name} takes no '{each}'", ("with", each), hint=hint, key=True)
    wanted = {each: value for each, value in known.items() if each in parameters}
    try:
        found: RoutingMachine = kind(**{**wanted, **given})
    except Exception as error:
        raise Fault(f"{name} cannot be made: {worded(error, file)}", ("machine",)) from error
    if missing := [each for each in WANTED if not callable(getattr(found, each, None))]:
        raise Fault(f"{name} is no routing machine: it has no {' and no '.join(missing)}", ("machine",))
    return found


def _parameters(kind: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        return []


@lru_cache(maxsize=64)
def _module(file: str, code: str) -> ModuleType:
    """The file as a module; dataclasses look for their own."""
    module = ModuleType(f"holdfast_routing_{hashlib.sha256(code.encode()).hexdigest()[:16]}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    try:
        exec(compile(code, file, "exec"), vars(module))  # whoever runs a scenario runs what it names
    except Exception as error:
        raise Fault(worded(error, file), ("machine",)) from error
    return module


def raised(error: Exception, machine: str) -> str | None:
    """What a machine did wrong while it ran, if it was the machine."""
    file = machine.rpartition(":")[0]
    return worded(error, file) if _lines(error, file) else None


def worded(error: Exception, file: str) -> str:
    """What went wrong in the file, and in which line."""
    if isinstance(error, SyntaxError):
        return f"{file}:{error.lineno}: {error.msg}"
    lines = _lines(error, file)
    where = f"{file}:{lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"


def _lines(error: Exception, file: str) -> list[int | None]:
    return [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
