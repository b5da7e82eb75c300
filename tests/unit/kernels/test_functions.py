"""The table of aggregate functions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from holdfast.kernels.functions import AGGREGATES
from holdfast.lang.grammar import keywords
from support.patience import PATIENCE

MEDIAN = """
import statistics
import numpy as np
from holdfast.kernels import functions

def of_windows(values, low, high):
    return np.array([statistics.median(values[a:b]) for a, b in zip(low, high)])

functions.AGGREGATES["median"] = functions.AggregateFunction(statistics.median, of_windows, None)

from holdfast import Engine, Event
from holdfast.definition.check import check
from holdfast.model.batch import from_events
from holdfast.model.instant import SECOND

for over in ("ever", "over 1 h"):
    app = f"topic T (value float)\\nstate M on median T each source {over} enter value > 4 exit value < 4"
    values = enumerate([3.0, 9.0, 5.0, 1.0, 1.5, 2.0])
    events = [Event("T", i * SECOND, "s", {"value": value}, i) for i, value in values]
    single, batches = Engine(app), Engine(app)
    found = [*batches.push_batch("T", from_events(check(batches.app).topics[0], events)), *batches.finish()]
    print(*([n.event.time // SECOND for n in notifications] for notifications in (single.run(events), found)))
"""


def test_functions_are_keywords_of_the_language():
    assert set(AGGREGATES) <= set(keywords())


def test_the_reference_of_the_language_has_every_function():
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "language.md"
    table = page.read_text(encoding="utf-8").split("| function | value |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == set(AGGREGATES)


def test_a_new_row_of_the_table_is_all_that_a_function_needs():
    """The medians of 3, 9, 5, 1, 1.5, 2 as they come are 3, 6, 5, 4, 3, 2.5."""
    code = subprocess.run(
        [sys.executable, "-c", MEDIAN], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert code.returncode == 0, code.stderr
    assert code.stdout.splitlines() == ["[1, 4] [1, 4]"] * 2
