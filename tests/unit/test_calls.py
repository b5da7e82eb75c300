"""Callers of machines: the graph of the engine, wrappers, and machines that contain others. No other code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src" / "holdfast"

RUNNING = {"react", "step", "advance"}
MAY_RUN_MACHINES = {
    "engine/graph.py",  # the router
    "engine/ordered.py",  # wrappers
    "engine/corrected.py",
    "engine/carry_over.py",
    "kinds/levels/machine.py",  # contains a state for each level
    "kinds/state/lossy.py",  # contains the machine of which it marks scopes as unknown
}
OTHERS = {
    "graph", "watermarks", "_watermarks", "engine",  # run machines, or say how far event time has come
    "component", "columns", "manager",  # the meaning of components, below their machine
    "watch", "expected", "placed_conditions",  # what publishers and motes run: a gate, or one machine
    "_wall_time", "geographic", "broker",  # a clock, a way of routing, a protocol
}  # fmt: skip
"""What has methods with these names and is no machine."""


def receiver(node: ast.expr) -> str:
    """The last name of the expression before the dot, or its text."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", ast.unparse(node))


def runs(path: str, code: str) -> Iterator[str]:
    """The places in a module that run a machine, or take one of the methods that do, and must not."""
    if path in MAY_RUN_MACHINES:
        return
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(attr=name, value=value) if name in RUNNING:
                if receiver(value) not in {"self", "super()", *OTHERS}:
                    yield f"{path}:{node.lineno}: {ast.unparse(node)}"
            case ast.Call(func=ast.Name("getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if name in RUNNING:
                    yield f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_only_the_graph_and_machines_around_others_run_machines():
    found = [
        place
        for file in sorted(SOURCES.rglob("*.py"))
        for place in runs(file.relative_to(SOURCES).as_posix(), file.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("path", sorted(MAY_RUN_MACHINES))
def test_every_file_that_may_run_machines_does(path):
    code = (SOURCES / path).read_text("utf-8")
    assert list(runs("elsewhere.py", code)), f"{path} needs no exception"


@pytest.mark.parametrize(
    ("path", "code", "count"),
    [
        ("runtimes/local/engine.py", "machine.react(state, event)", 1),
        ("network/overlay/node.py", "state, out = self.operator.machine.step(state, {}, now)", 1),
        ("service/core.py", "def f(inner): return inner.advance(1, 2)", 1),
        ("kinds/count/revise.py", "old.react(state, event)", 1),
        ("runtimes/local/engine.py", "run = operators[0].machine.react", 1),
        ("network/motes/mote.py", "known[key].react(state, event)", 1),
        ("service/core.py", "getattr(machine, 'step')(state, {}, now)", 1),
        ("engine/graph.py", "machine.react(state, event)", 0),
        ("kinds/levels/machine.py", "machine.advance(state, now)", 0),
        ("kinds/fold/machine.py", "super().step(state, batches, watermark)", 0),
        ("runtimes/local/engine.py", "graph.advance(states, watermarks)", 0),
    ],
)
def test_the_check_finds_what_runs_machines(path, code, count):
    assert len(list(runs(path, code))) == count
