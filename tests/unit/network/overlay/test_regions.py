"""Regions that a broker has for those who have none."""

from __future__ import annotations

import pytest

from holdfast import load, parse, show
from holdfast.errors import Unsupported, UsageError
from holdfast.network.overlay.conditions import LONGEST, compile_condition, split_app
from holdfast.network.overlay.regions import regions, with_regions

HOUSE = """
[floors]
ground = {}
[rooms]
lab = { in = "ground", rectangle = [0, 0, 10, 5] }
"long hall" = { in = "ground", circle = [20, 5, 4] }
"""


def test_regions_of_a_network_equal_regions_in_the_definition(tmp_path):
    (tmp_path / "house.toml").write_text(HOUSE)
    (tmp_path / "app.hf").write_text('gazetteer "house.toml"\n' + REDUNDANT)
    (mine,) = split_app(load(tmp_path / "app.hf")).values()
    (theirs,) = split_app(with_regions(parse(REDUNDANT), regions(tmp_path / "house.toml"))).values()
    assert compile_condition(show(mine)) is compile_condition(show(theirs))


REDUNDANT = "topic T (v float)\nstate Redundant on T [v > 1; v < 0] scope regions within ground\n"


def test_regions_that_no_definition_could_have_are_refused(tmp_path):
    path = tmp_path / "house.toml"
    path.write_text('[rooms]\noffice = { sources = ["s1"] }\n')
    with pytest.raises(Unsupported, match="lists its sources"):
        regions(path)
    path.write_text("[rooms]\n" + "".join(f"room-{i} = {{}}\n" for i in range(LONGEST // 10)))
    with pytest.raises(UsageError, match="a definition that travels 65,536 at most"):
        regions(path)
