"""A routing protocol of the user: a class in a Python file beside the scenario.

The text of the file is part of the case. So a run needs no other file, on this machine or on a cluster.
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
from ..sim.routing.datagram import RoutingMachine
from .document import text_of
from .fault import ScenarioError

REQUIRED = ("initial", "handle", "held", "refuses")
"""The methods that a routing machine must have."""


def code_of(machine: str, folder: Path) -> str:
    """Return the text of the file named in ``file.py:Name``; raise a `ScenarioError` if the form is wrong."""
    file, colon, name = machine.rpartition(":")
    if not (colon and name.isidentifier() and file.endswith(".py")):
        raise ScenarioError(f"expected a file and a class in it, such as 'gossip.py:Gossip'; got '{machine}'")
    return text_of(folder / file)


def make_machine(
    machine: str, code: str, given: Mapping[str, Any], known: Mapping[str, Any]
) -> RoutingMachine:
    """Create the machine of ``file.py:Name``.

    Its arguments are those in ``given``, and the values in ``known`` for which it has parameters.
    """
    file, _, name = machine.rpartition(":")
    names = vars(_module(file, code))
    if not callable(kind := names.get(name)):
        there = [each for each, value in names.items() if inspect.isclass(value)]
        raise ScenarioError(f"{file} has no class '{name}'", ("machine",), hint=did_you_mean(name, there))
    parameters = _parameters(kind)
    for each in given:
        if each not in parameters:
            hint = did_you_mean(each, parameters) or f"There is {', '.join(parameters) or 'none'}."
            raise ScenarioError(f"{name} takes no '{each}'", ("with", each), hint=hint, key=True)
    wanted = {each: value for each, value in known.items() if each in parameters}
    try:
        found: RoutingMachine = kind(**{**wanted, **given})
    except Exception as error:
        raise ScenarioError(f"{name} cannot be made: {describe_error(error, file)}", ("machine",)) from error
    if missing := [each for each in REQUIRED if not callable(getattr(found, each, None))]:
        why = f"{name} is no routing machine: it has no {' and no '.join(missing)}"
        raise ScenarioError(why, ("machine",))
    return found


def _parameters(kind: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        return []


@lru_cache(maxsize=64)
def _module(file: str, code: str) -> ModuleType:
    """Execute the file as a module. The module is registered, because dataclasses look up their module."""
    module = ModuleType(f"holdfast_routing_{hashlib.sha256(code.encode()).hexdigest()[:16]}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    try:
        exec(compile(code, file, "exec"), vars(module))  # a scenario may run the code that it names
    except Exception as error:
        raise ScenarioError(describe_error(error, file), ("machine",)) from error
    return module


def describe_if_own(error: Exception, machine: str) -> str | None:
    """Describe an exception if the machine's file is in its traceback; otherwise return ``None``."""
    file = machine.rpartition(":")[0]
    return describe_error(error, file) if _lines(error, file) else None


def describe_error(error: Exception, file: str) -> str:
    """Describe an exception with the line of the file that caused it."""
    if isinstance(error, SyntaxError):
        return f"{file}:{error.lineno}: {error.msg}"
    lines = _lines(error, file)
    where = f"{file}:{lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"


def _lines(error: Exception, file: str) -> list[int | None]:
    return [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
