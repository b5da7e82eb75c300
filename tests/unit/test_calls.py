"""Callers of machines: the graph of the engine, wrappers, and machines that contain others. No other code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src" / "holdfast"
RUNNING = {"react", "step", "advance"}
MAY_RUN_MACHINES = ("engine/", "kinds/")


def runs_a_machine(node: ast.AST) -> bool:
    """Whether a node calls a machine: `machine.react(…)`, `operator.machine.step(…)`."""
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNNING
    ):
        return False
    receiver = node.func.value
    name = receiver.id if isinstance(receiver, ast.Name) else getattr(receiver, "attr", "")
    return name == "machine" or name.endswith("_machine")


def calls(path: str, code: str) -> Iterator[str]:
    """The places in a module that run a machine and must not."""
    if not path.startswith(MAY_RUN_MACHINES):
        yield from (f"{path}:{node.lineno}" for node in ast.walk(ast.parse(code)) if runs_a_machine(node))


def test_only_the_engine_and_machines_themselves_run_machines():
    found = [
        place
        for file in sorted(SOURCES.rglob("*.py"))
        for place in calls(file.relative_to(SOURCES).as_posix(), file.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("path", "code", "count"),
    [
        ("runtimes/local/engine.py", "machine.react(state, event)", 1),
        ("network/overlay/node.py", "state, out = self.operator.machine.step(state, {}, now)", 1),
        ("service/core.py", "def f(inner_machine): return inner_machine.advance(1, 2)", 1),
        ("engine/graph.py", "machine.react(state, event)", 0),
        ("kinds/levels/machine.py", "machine.advance(state, now)", 0),
        ("runtimes/local/engine.py", "graph.advance(states, watermarks)", 0),
    ],
)
def test_the_check_finds_calls_of_machines(path, code, count):
    assert len(list(calls(path, code))) == count
