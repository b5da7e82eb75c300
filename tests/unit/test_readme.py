"""The README inside a distribution leads nowhere that is not there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SETUP = runpy.run_path(str(ROOT / "setup.py"))
outside, addresses = SETUP["outside"], SETUP["addresses"]


def links(text):
    return re.findall(r"\]\(([^)]*)\)", text)


@pytest.mark.parametrize("home", ["", "https://example.org/holdfast", "https://example.org/holdfast/"])
def test_every_link_of_the_readme_of_a_distribution_is_absolute(home):
    assert any(not link.startswith("http") for link in links(README))
    found = outside(README, home)
    assert all(link.startswith(("https://", "http://", "#")) for link in links(found))
    assert bool(home) is ("https://example.org/holdfast/docs/tutorial.md" in found)
    assert "Tutorial" in found


def test_a_picture_that_is_a_link_keeps_both_addresses():
    text = "[![a chart](docs/a.png)](docs/a.md) and [b](https://b.org) and [c](#c)"
    home = "https://h.org"
    rest = " and [b](https://b.org) and [c](#c)"
    assert outside(text, home) == "[![a chart](https://h.org/docs/a.png)](https://h.org/docs/a.md)" + rest
    assert outside(text, "") == "a chart" + rest


@pytest.mark.parametrize("home", ["https://h.org", "https://h.org/"])
def test_the_addresses_of_a_distribution_lead_to_existing_pages(home):
    found = addresses(home)
    assert found["Documentation"] == "https://h.org/docs/README.md"
    assert all((ROOT / address.removeprefix("https://h.org/")).exists() for address in found.values())
    assert addresses("") == {}
