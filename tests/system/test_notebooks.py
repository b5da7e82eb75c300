"""The notebooks in ``examples``: their cells run, one after another, and show what they are printed with."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def output_of(code: str, names: dict) -> object:
    """The output of a cell: the value of its last line, if that is an expression."""
    *before, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(code, names)
        return None
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_match_the_committed_ones(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    pictures = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        found = output_of("".join(cell["source"]), names)
        printed = [output.get("data", {}) for output in cell["outputs"]]
        if any("image/png" in data for data in printed):
            assert found._repr_png_().startswith(b"\x89PNG")
            pictures += 1
        elif any("text/plain" in data for data in printed):
            assert found is not None
            (text,) = ("".join(data["text/plain"]) for data in printed if "text/plain" in data)
            assert repr(found) == text
    assert pictures


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3
