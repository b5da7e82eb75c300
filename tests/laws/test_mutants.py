"""Any definition is refused with a message or printed with the same meaning; any file is refused or read."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from holdfast import HoldfastError, parse, replay
from support.mutants import mutant, outcome, rows

LONG = 50 * int(os.environ.get("HOLDFAST_EXAMPLES") or 2_000)
"""How many are tried in the long form; ``HOLDFAST_EXAMPLES=20000`` makes it a million."""

SOAK = [pytest.param(seed, LONG // 10, marks=pytest.mark.soak) for seed in range(10, 20)]


@pytest.mark.parametrize(("seed", "count"), [(1, 300), (2, 300), *SOAK])
@pytest.mark.filterwarnings("ignore:.* in microseconds")  # its clocks start from zero
def test_a_mutated_definition_raises_a_usage_error_or_is_printed_and_runs(seed: int, count: int) -> None:
    random = Random(seed)
    for _ in range(count):
        text = mutant(random)
        try:
            assert outcome(text, random) in ("refused", "wrong", "right")
        except BaseException as error:
            error.add_note(f"of seed {seed}, the definition\n{text}")
            raise


APP = """topic T (value float, n int, name text, ok bool)
topic U (value float)
state Warm on T [value > 25; value < 22] per source
state Mean on avg U over 3 s enter value > 1
correlate Both within 3 s  T.value > 1  n > 0
"""


@pytest.mark.parametrize(("seed", "count"), [(1, 200), pytest.param(2, LONG // 10, marks=pytest.mark.soak)])
def test_a_mutated_file_raises_an_input_error_or_is_read(tmp_path: Path, seed: int, count: int) -> None:
    random, app, path = Random(seed), parse(APP), tmp_path / "rows.jsonl"
    for _ in range(count):
        path.write_text(rows(random))
        topic = random.choice((None, "T"))
        try:
            assert all(note.subscription for note in replay(app, path, topic=topic))
        except HoldfastError as error:
            assert str(error)  # noqa: PT017
        except BaseException as error:
            error.add_note(f"of seed {seed}, the rows\n{path.read_text()}")
            raise
