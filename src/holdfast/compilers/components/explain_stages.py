"""The operators of components on Spark in words: what runs together, by which key, after whom, and why."""

from __future__ import annotations

from collections.abc import Iterator

from ...lang.condition import Checked
from ...model.instant import show_duration
from ..operator import Operator
from .stages import sharded


def explained(checked: Checked) -> Iterator[Iterator[str]]:
    """The plan of each operator, line by line."""
    found = sharded(checked.components, checked.topics)
    said_in = {name: operator.stage + 1 for operator in found for name in operator.subscriptions}
    return (_operator(number, operator, said_in) for number, operator in enumerate(found, 1))


def _operator(number: int, operator: Operator, said_in: dict[str, int]) -> Iterator[str]:
    names = operator.subscriptions
    yield f"operator {number}, stage {operator.stage + 1}: {', '.join(names)}"
    if len(names) > 1:
        yield "  fused     one machine runs them all: they keep the same apart"
    for topic in sorted(operator.heard):
        name = topic.removeprefix("@")
        yield f"  hears     what {name} says in stage {said_in[name]}"
    for topic in (name for name in operator.topics if name not in operator.heard):
        assert operator.needs is not None
        own = [a.name for a in operator.topics[topic].attributes if a.name in operator.needs[topic]]
        yield f"  reads     {topic}: {', '.join(['time', 'source', 'location', *own])}"
    if not operator.heard >= operator.topics.keys():
        yield f"  readers   {_dropped(operator)}"
    yield f"  shuffle   {_shuffled(operator)}"
    yield f"  live      {_live(operator)}"


def _dropped(operator: Operator) -> str:
    """What need not leave the place where it is read."""
    kept = "" if operator.machine.strictest is None else "; live, what may be late stays, to be told"
    missing = f"drop events without {' or '.join(operator.key)}, and" if operator.key else "drop"
    return f"{missing} what lies outside the locations of all queries{kept}"


def _shuffled(operator: Operator) -> str:
    if operator.key:
        return f"packed as Arrow by shard; a shard is a hash (crc32) of {' and '.join(operator.key)}"
    why = "; ".join(f"{name}: {reason}" for name, reason in operator.reasons)
    return f"one shard, without help from other cores ({why})"


def _live(operator: Operator) -> str:
    waits = operator.behind
    behind = f"; the slowest stays {show_duration(waits)} behind" if waits else ""
    own = "a state operator of its own after that of the stage before; " if operator.stage else ""
    return f"{own}time goes on in every shard in every batch, whether it has events or not{behind}"
