"""Stored runs, so that a long experiment continues where it stopped."""

from __future__ import annotations

import pytest

from holdfast.errors import InputError
from holdfast_lab.experiments.dds import report as dds
from holdfast_lab.experiments.fsf import run as fsf
from holdfast_lab.experiments.journal import done, keep, place
from holdfast_lab.experiments.journey_planner import run as journey_planner


def test_stored_runs_are_read_back(tmp_path):
    path = tmp_path / "not" / "yet" / "runs.json"
    assert done(path, dict) == {}
    keep(path, {"a": [1, 2]})
    assert done(path, dict) == {"a": [1, 2]}


@pytest.mark.parametrize("text", ["[3]", "{", "3"])
def test_a_file_without_runs_is_refused(text, tmp_path):
    (tmp_path / "runs.json").write_text(text)
    with pytest.raises(InputError, match=r"does not hold runs of an experiment .*; remove it"):
        done(tmp_path / "runs.json", dict)


def test_other_subjects_and_other_code_use_new_files():
    here = place("one", ("subject", 3), ["holdfast/kernels/gap.py"])
    assert here == place("one", ("subject", 3), ["holdfast/kernels/gap.py"])
    others = [
        place("two", ("subject", 3), ["holdfast/kernels/gap.py"]),
        place("one", ("subject", 4), ["holdfast/kernels/gap.py"]),
        place("one", ("subject", 3), ["holdfast/kernels/gap.py", "holdfast/network/protocols/fsf"]),
    ]
    assert len({here, *others}) == 4


@pytest.mark.parametrize("code", [dds.CODE, fsf.CODE, journey_planner.CODE], ids=["dds", "fsf", "journey"])
def test_the_sources_on_which_runs_depend_exist(code):
    for part in code:
        assert place("one", None, [part]) != place("one", None, [])
