"""Which tests share a worker where there are several.

Tests of a file do, for what the file sets up is set up once; pages of the documentation share nothing.  A
Spark takes long to start and to get up to speed: there are two of them, and whatever needs one shares it:
what runs live and the lab the first, the rest, which takes about as long, the second.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_PAGE = re.compile(r"test_a_page_shows_the_real_output_of_its_commands\[(.+)\]")
_NEEDS_SPARK = re.compile(r"on[-_]spark|\[spark\]")
_TAKES_SESSION = re.compile(r"(?m)^from support\.runtimes import .*\bsession\b")
_FIRST = re.compile(r"tests/system/test_(live\w*|kills|flow|real_data)\.py|lab/.*")
_RUN = re.compile(r"(?ms)^```(?:console|sh|python)\b.*?^```$")
_ON_SPARK = re.compile(r"hf\.spark|holdfast run|script/demo|holdfast demo(?! --engine local)")


def together(nodeid: str) -> str:
    """The group of tests that share a worker with this one."""
    path, _, name = nodeid.partition("::")
    page = _PAGE.match(name)
    if _NEEDS_SPARK.search(name) or _starts_spark(page[1] if page else path):
        return "Spark, the first" if _FIRST.fullmatch(path) else "Spark, the second"
    return nodeid if page else path


def is_on_spark(page: str) -> bool:
    """Whether something that a page runs starts Spark."""
    return any(_ON_SPARK.search(block) for block in _RUN.findall(page))


@cache
def _starts_spark(path: str) -> bool:
    text = (ROOT / path).read_text("utf-8")
    return is_on_spark(text) if path.endswith(".md") else _TAKES_SESSION.search(text) is not None
