"""The reference page knows every key, kind and choice that a scenario may have, and every fate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from holdfast.network.motes import account, cbps, dds
from holdfast.network.motes.convert import keys, options
from holdfast.network.motes.scenario import Scenario
from holdfast.network.sim.routing import datagram, ledger

PAGE = (Path(__file__).resolve().parents[4] / "docs/reference/scenario.md").read_text(encoding="utf-8")


def words(kind: Any) -> set[str]:
    """All keys, kinds and choices below a type."""
    if is_dataclass(kind):
        found = {kind.kind} if hasattr(kind, "kind") else set()
        return found.union(*({key} | words(inner) for key, (_, inner) in keys(kind).items()))
    if get_origin(kind) is Literal:
        return {str(word) for word in get_args(kind)}
    if get_origin(kind) in (tuple, Mapping) or len(options(kind)) > 1:
        return set().union(*map(words, get_args(kind)))
    return set()


@pytest.mark.parametrize("word", sorted(words(Scenario)))
def test_every_key_of_a_scenario_is_in_the_reference(word):
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", PAGE)


@pytest.mark.parametrize(
    "cause", [datagram.NO_ROUTE, datagram.NO_ROOM, datagram.HOP_LIMIT, ledger.NOT_REACHED]
)
def test_every_reason_for_a_loss_is_in_the_reference(cause):
    assert f"`{cause}`" in PAGE


@pytest.mark.parametrize(
    "fate",
    [
        account.LOST,
        dds.OVERFLOWED,
        dds.GIVEN_UP,
        dds.LOST_WITH_ITS_NODE,
        dds.NOBODY,
        dds.UNKNOWN,
        cbps.UNSENT,
    ],
)
def test_every_fate_of_a_delivery_is_in_the_reference(fate):
    assert f"`{fate}`" in PAGE
