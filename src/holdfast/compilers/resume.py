"""Operators whose states were kept, when the definition may have changed.

Subscriptions may come and go: those that stay go on where they were, new ones start afresh.  One that has
the same name but another meaning is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import UsageError
from ..lang.condition import Checked
from .families import FAMILIES, Family, linked, meanings
from .guarded import machine as guarded
from .guarded.revise import as_guarded
from .levels import machine as levels
from .levels.revise import revisable
from .operator import Kept, Operator


class Resumed(NamedTuple):
    """An operator that goes on, or one that starts now."""

    operator: Operator
    before: int | None = None
    """Which of the kept ones it was, if it was there."""
    was: tuple[int | None, ...] = ()
    """Condition ``i`` had the number ``was[i]`` there; ``None`` if it starts now."""


def resumed(kept: Sequence[Kept], checked: Checked, *, sharded: bool = False) -> list[Resumed]:
    """The operators of a definition, given those whose states were kept."""
    checked = _as_kept(kept, checked)
    _require_same_meaning(kept, checked)
    found: list[Resumed] = []
    for family in FAMILIES:
        mine = [(i, one) for i, one in enumerate(kept) if one.family == family.name]
        go_on = _joined if family.builds_on_others else _apart
        found += go_on(family, mine, checked, sharded)
    return _linked(found)


def _linked(found: list[Resumed]) -> list[Resumed]:
    """The same, with operators that know by whom they are heard."""
    at = {id(one.operator.machine): one for one in found}
    return [at[id(one.machine)]._replace(operator=one) for one in linked(r.operator for r in found)]


def _as_kept(kept: Sequence[Kept], checked: Checked) -> Checked:
    """The definition with what was revised, and so may be unknown, as it goes on since then: plain states
    among the guarded, and levels with such states inside."""
    revised = {name for one in kept if one.family == guarded.FAMILY for names in one.names for name in names}
    moved = tuple(as_guarded(one) for one in checked.conditions if one.name in revised)
    meant = {
        name: meaning
        for one in kept
        if one.family == levels.FAMILY
        for names, meaning in zip(one.names, one.meanings, strict=True)
        for name in names
    }
    leveled = tuple(
        revisable(one) if meant.get(one.name) == levels.meaning(revisable(one)) else one
        for one in checked.leveled
    )
    if moved:
        plain = tuple(one for one in checked.conditions if one.name not in revised)
        checked = replace(checked, conditions=plain, guarded=(*checked.guarded, *moved))
    return checked if leveled == checked.leveled else replace(checked, leveled=leveled)


def _joined(
    family: Family, kept: Sequence[tuple[int, Kept]], checked: Checked, sharded: bool
) -> Iterator[Resumed]:
    """Those of a place go on in the machine that was there, and new ones join them."""
    places = {(one.stage, one.key): (i, one) for i, one in kept}
    for operator in family.compiled(family.of(checked), checked.topics, sharded=sharded):
        if (at := (operator.stage, operator.key)) not in places:
            yield Resumed(operator)
            continue
        before, there = places[at]
        numbers = {meaning: i for i, meaning in enumerate(there.meanings)}
        yield Resumed(operator, before, tuple(map(numbers.get, operator.meanings)))


def _apart(
    family: Family, kept: Sequence[tuple[int, Kept]], checked: Checked, sharded: bool
) -> Iterator[Resumed]:
    """Kept machines serve those who stay; new ones start on machines of their own."""
    missing = {one.name: one for one in family.of(checked)}
    for before, there in kept:
        staying: dict[int, list[Any]] = {}
        for number, names in enumerate(there.names):
            if some := [missing.pop(name) for name in names if name in missing]:
                staying[number] = some
        if staying:
            first = [some[0] for some in staying.values()]
            (operator,) = family.compiled(first, checked.topics, sharded=sharded)
            operator = replace(operator, key=there.key)
            served = ((one.name for one in some) for some in staying.values())
            yield Resumed(operator.serving(served), before, tuple(staying))
    yield from map(Resumed, family.compiled(tuple(missing.values()), checked.topics, sharded=sharded))


def differing(kept: Sequence[Kept], checked: Checked) -> list[str]:
    """The conditions that mean something else than when their states were kept."""
    now = meanings(_as_kept(kept, checked))
    return [
        name
        for one in kept
        for names, meaning in zip(one.names, one.meanings, strict=True)
        for name in names
        if now.get(name, meaning) != meaning
    ]


def _require_same_meaning(kept: Sequence[Kept], checked: Checked) -> None:
    for name in differing(kept, checked):
        raise UsageError(
            f"'{name}' means something else than when its state was kept. "
            "Give the new condition a name of its own, or start without the old state."
        )
