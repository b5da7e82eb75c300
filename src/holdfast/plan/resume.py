"""Operators that continue from stored states after the definition may have changed.

If conditions were added or removed, the others continue from their states and new ones start. A condition
with the same name but another meaning is refused, because such a change needs a revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..engine.operator import Operator, OperatorRecord
from ..errors import UsageError
from ..kinds.kind import Kind
from ..kinds.registry import by_kind
from ..kinds.registry import kind as kind_of
from ..lang.condition import Checked, Condition
from ..model.topic import Topic
from .compile import link, meanings


class Resumed(NamedTuple):
    """An operator that continues from a stored state, or starts now."""

    operator: Operator
    before: int | None = None
    """The index of the stored operator from which it continues."""
    was: tuple[int | None, ...] = ()
    """The number ``was[i]`` that condition ``i`` had there; ``None`` if it is new."""


def resume(records: Sequence[OperatorRecord], checked: Checked, *, sharded: bool = False) -> list[Resumed]:
    """Return the operators of a definition, given the records of operators with stored states."""
    checked = _in_stored_form(records, checked)
    _require_same_meaning(records, checked)
    found: list[Resumed] = []
    for kind, conditions in by_kind(checked.conditions):
        own_records = [(i, record) for i, record in enumerate(records) if record.kind == kind.name]
        go_on = _join_machines if kind.shares_machines else _keep_machines
        found += go_on(kind, conditions, own_records, checked.topics, sharded)
    return _link(found)


def _link(found: list[Resumed]) -> list[Resumed]:
    """Return the operators with their links, in topological order."""
    at = {id(resumed.operator.machine): resumed for resumed in found}
    return [at[id(one.machine)]._replace(operator=one) for one in link(r.operator for r in found)]


def _in_stored_form(records: Sequence[OperatorRecord], checked: Checked) -> Checked:
    """Return the definition with revised conditions in the form in which their states were stored."""
    meant = {
        name: meaning
        for record in records
        for names, meaning in zip(record.names, record.meanings, strict=True)
        for name in names
    }
    return replace(
        checked,
        conditions=tuple(_form(condition, meant.get(condition.name)) for condition in checked.conditions),
    )


def _form(condition: Condition, meant: str | None) -> Condition:
    """Return a condition, or its revisable form if the stored digest is that of the revisable form."""
    kind = kind_of(condition)
    if meant is None or meant == kind.meaning(condition):
        return condition
    revised = kind.revision.revisable(condition)
    return revised if meant == kind.meaning(revised) else condition


def _join_machines(
    kind: Kind,
    conditions: Sequence[Condition],
    records: Sequence[tuple[int, OperatorRecord]],
    topics: Sequence[Topic],
    sharded: bool,
) -> Iterator[Resumed]:
    """Yield the operators of kinds whose conditions share machines.

    An operator with the same stage and key as a stored one continues, and new conditions join it.
    """
    places = {(one.stage, one.key): (i, one) for i, one in records}
    for operator in kind.compile(conditions, topics, sharded=sharded):
        if (at := (operator.links.stage, operator.key)) not in places:
            yield Resumed(operator)
            continue
        before, record = places[at]
        numbers = {meaning: i for i, meaning in enumerate(record.meanings)}
        yield Resumed(operator, before, tuple(map(numbers.get, operator.meanings)))


def _keep_machines(
    kind: Kind,
    conditions: Sequence[Condition],
    records: Sequence[tuple[int, OperatorRecord]],
    topics: Sequence[Topic],
    sharded: bool,
) -> Iterator[Resumed]:
    """Yield the operators of kinds whose machines are never joined.

    Each stored machine retains its remaining conditions, and new conditions get machines of their own.
    """
    missing = {condition.name: condition for condition in conditions}
    for before, record in records:
        staying: dict[int, list[Any]] = {}
        for number, names in enumerate(record.names):
            if same_meaning := [missing.pop(name) for name in names if name in missing]:
                staying[number] = same_meaning
        if staying:
            first = [same_meaning[0] for same_meaning in staying.values()]
            (operator,) = kind.compile(first, topics, sharded=sharded)
            operator = replace(operator, key=record.key)
            served = ((one.name for one in same_meaning) for same_meaning in staying.values())
            yield Resumed(operator.with_names(served), before, tuple(staying))
    yield from map(Resumed, kind.compile(tuple(missing.values()), topics, sharded=sharded))


def find_changed_meanings(records: Sequence[OperatorRecord], checked: Checked) -> list[str]:
    """Return the conditions whose meaning has changed since their states were stored."""
    now = meanings(_in_stored_form(records, checked))
    return [
        name
        for record in records
        for names, meaning in zip(record.names, record.meanings, strict=True)
        for name in names
        if now.get(name, meaning) != meaning
    ]


def _require_same_meaning(records: Sequence[OperatorRecord], checked: Checked) -> None:
    for name in find_changed_meanings(records, checked):
        raise UsageError(
            f"'{name}' means something else than when its state was kept. "
            "Give the new condition a name of its own, or start without the old state."
        )
