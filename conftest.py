"""What every test may use: how many examples hypothesis tries, and the shared data.

``HOLDFAST_EXAMPLES=5000 script/test tests/laws`` searches longer; ``script/soak`` sets it by itself.
"""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from support.together import together

ROOT = Path(__file__).resolve().parent

gc.set_threshold(100_000, 50, 50)  # as for the commands: much is made, and little of it in circles

settings.register_profile(
    "holdfast",
    deadline=None,
    max_examples=25,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is not a defect
)
settings.register_profile(
    "soak",
    settings.get_profile("holdfast"),
    derandomize=False,
    max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 2000),
)
settings.register_profile("fast", settings.get_profile("holdfast"), max_examples=5)
settings.load_profile(
    "soak"
    if os.environ.get("HOLDFAST_EXAMPLES")
    else "fast"
    if os.environ.get("HOLDFAST_FAST")
    else "holdfast"
)


FOLDERS = (
    "tests/system",
    "tests/equivalence",
    "lab/tests/benchmarks",
    "lab/tests/experiments",
    "tests/laws",
    "tests/unit",
    "lab/src",
    "src",
)
"""The order in which they are run: what waits for processes first, and many short files at the end, so that
no core is idle while another has a long one left.  Before all of them comes what Spark runs."""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Nobody looks for examples in files that have none; that all can be imported, `test_imports` tries."""
    found = yield
    if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    @cache
    def folder_of(path: Path) -> int:
        return next(i for i, folder in enumerate(FOLDERS) if path.is_relative_to(ROOT / folder))

    def place(item: pytest.Item) -> tuple[bool, int]:
        return not together(item.nodeid).startswith("Spark"), folder_of(item.path)

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Of several workers one goes first: what it compiles and keeps, the others need not compile."""
    with open(__file__, "rb") as shared:
        if hasattr(session.config, "workerinput"):
            try:
                fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(shared, fcntl.LOCK_SH)
        found = yield
    gc.collect()
    gc.freeze()  # modules and tests stay to the end: nobody need look through them again
    return found


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several workers: what shares something is run by one of them."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Together(config, log)


@pytest.fixture(scope="session")
def data() -> Path:
    """The real readings that the project shares: ``shared/data`` beside the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the shared data sets in {folder}, which is not there")
    return folder
