"""``reproduce`` and ``bench`` with the lab beside them, and where there is none."""

from __future__ import annotations

import re

import pytest


def test_the_lab_of_the_checkout_is_found(holdfast):
    listed = holdfast("reproduce", "--list")
    assert (listed.status, listed.err) == (0, "")
    assert "state-filter-table" in listed.out
    titles = {re.match(r"\S+ +", line).end() for line in listed.out.splitlines()}
    assert len(titles) == 1  # one under the other
    wrong = holdfast("bench", "kernels")
    assert wrong.status == 2
    assert "no benchmark named 'kernels'" in wrong.err


@pytest.mark.parametrize(("command", "part"), [("reproduce", "experiments"), ("bench", "benchmarks")])
def test_without_the_lab_a_message_names_the_package_to_install(holdfast, monkeypatch, command, part):
    monkeypatch.setattr("holdfast.cli.lab.entry_points", lambda **_: ())
    ran = holdfast(command)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"error: the {part} are in the distribution holdfast-lab, which is not installed; "
        "in a checkout of Holdfast: pip install ./lab\n"
    )
