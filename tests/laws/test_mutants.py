"""Whatever a definition says, it is refused in words or shown as a text that says the same."""

from __future__ import annotations

import os
from random import Random

import pytest

from support.mutants import mutant, outcome

LONG = 50 * int(os.environ.get("HOLDFAST_EXAMPLES") or 2_000)
"""How many are tried in the long form; ``HOLDFAST_EXAMPLES=20000`` makes it a million."""


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 300), (2, 300), *(pytest.param(s, LONG // 10, marks=pytest.mark.soak) for s in range(3, 13))],
)
def test_a_mutated_definition_is_refused_in_words_or_reads_back(seed: int, count: int) -> None:
    random = Random(seed)
    for _ in range(count):
        text = mutant(random)
        try:
            assert outcome(text) in ("refused", "wrong", "right")
        except BaseException as error:
            error.add_note(f"of seed {seed}, the definition\n{text}")
            raise
