"""The reference page knows every key and every kind that a scenario may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import inspect

from holdfast.sim.routing import datagram, ledger
from holdfast.sim.scenario.values import Scenario

PAGE = (Path(__file__).resolve().parents[4] / "docs/reference/scenario.md").read_text(encoding="utf-8")


def words(kind: inspect.Type) -> set[str]:
    """All keys, kinds and choices below a type."""
    match kind:
        case inspect.StructType(fields=fields, tag=tag):
            found = {str(tag)} if tag else set()
            for field in fields:
                found |= {field.encode_name} | words(field.type)
            return found
        case inspect.UnionType(types=types):
            return set().union(*map(words, types))
        case inspect.ListType(item_type=item):
            return words(item)
        case inspect.LiteralType(values=values):
            return {str(value) for value in values}
    return set()


@pytest.mark.parametrize("word", sorted(words(inspect.type_info(Scenario))))
def test_every_word_of_a_scenario_is_in_the_reference(word):
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", PAGE)


@pytest.mark.parametrize(
    "cause", [datagram.NO_ROUTE, datagram.NO_ROOM, datagram.HOP_LIMIT, ledger.NOT_REACHED]
)
def test_every_reason_for_a_loss_is_in_the_reference(cause):
    assert f"`{cause}`" in PAGE
