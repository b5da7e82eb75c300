"""Every promise on the pages about live queries has a test or two, which promises.toml names.

A sentence that was changed, a bullet or a row that is new, and a test that went away are all found here.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISES = tomllib.loads(Path(__file__).with_name("promises.toml").read_text())


@pytest.mark.parametrize("page", PROMISES)
def test_every_promise_of_a_page_is_on_the_page_and_has_tests(page):
    text = (ROOT / page).read_text()
    for promise, where in PROMISES[page].items():
        assert promise in text, f"{page} no longer says: {promise}"
        for test in [where] if isinstance(where, str) else where:
            path, name = test.split("::")
            found = ast.parse((ROOT / path).read_text()).body
            assert name in {one.name for one in found if isinstance(one, ast.FunctionDef)}, test


@pytest.mark.parametrize("page", PROMISES)
def test_every_bullet_and_row_of_a_page_is_among_its_promises(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    bullets = re.findall(r"^- (.*)$", text, re.MULTILINE)
    rows = re.findall(r"^\|(?!---)(.*)\|\n(?!\|---)", text, re.MULTILINE)
    unkept = [one for one in bullets + rows if not any(promise in one for promise in PROMISES[page])]
    assert unkept == []
