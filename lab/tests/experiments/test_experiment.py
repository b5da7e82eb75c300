"""The common parts of all experiments: claims and their verdicts."""

from __future__ import annotations

import pytest

from holdfast_lab.experiments.experiment import Claim


@pytest.mark.parametrize(
    ("holds", "note"),
    [(True, "It took 3 s."), (False, "It took 3 s. The disk is slow."), (None, "It took 3 s.")],
)
def test_a_reason_is_given_only_for_the_verdict_that_it_explains(holds, note):
    claim = Claim("fast", "Rule: at most 2 s.", 2, 3, holds, "It took 3 s.", {False: "The disk is slow."})
    assert claim.note == claim.to_json()["note"] == note
