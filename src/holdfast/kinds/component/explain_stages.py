"""The operators of components on Spark in words: stage, key, upstreams, and reasons for having no key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.operator import Operator
from ...model.instant import show_duration
from ...model.topic import Topic
from .condition import ComponentCondition
from .plan import sharded


def explain_stages(
    components: Sequence[ComponentCondition], topics: Sequence[Topic]
) -> Iterator[Iterator[str]]:
    """The plan of each operator, line by line."""
    found = sharded(components, topics)
    stage_of = {name: operator.stage + 1 for operator in found for name in operator.subscriptions}
    return (_operator(number, operator, stage_of) for number, operator in enumerate(found, 1))


def _operator(number: int, operator: Operator, stage_of: dict[str, int]) -> Iterator[str]:
    names = operator.subscriptions
    yield f"operator {number}, stage {operator.stage + 1}: {', '.join(names)}"
    if len(names) > 1:
        yield "  fused     one machine runs them all: they keep the same apart"
    for topic in sorted(operator.upstream_topics):
        name = topic.removeprefix("@")
        yield f"  hears     what {name} says in stage {stage_of[name]}"
    for topic in (name for name in operator.topics if name not in operator.upstream_topics):
        assert operator.needed_columns is not None
        own = [a.name for a in operator.topics[topic].attributes if a.name in operator.needed_columns[topic]]
        yield f"  reads     {topic}: {', '.join(['time', 'source', 'location', *own])}"
    if not operator.upstream_topics >= operator.topics.keys():
        yield f"  readers   {_explain_dropped(operator)}"
    yield f"  shuffle   {_explain_shuffle(operator)}"
    yield f"  live      {_live(operator)}"


def _explain_dropped(operator: Operator) -> str:
    """Which readings are dropped where they are read."""
    remaining = (
        "" if operator.machine.traits.lateness is None else "; live, what may be late stays, to be told"
    )
    missing = f"drop events without {' or '.join(operator.key)}, and" if operator.key else "drop"
    return f"{missing} what lies outside the locations of all queries{remaining}"


def _explain_shuffle(operator: Operator) -> str:
    if operator.key:
        return f"packed as Arrow by shard; a shard is a hash (crc32) of {' and '.join(operator.key)}"
    why = "; ".join(f"{name}: {reason}" for name, reason in operator.reasons)
    return f"one shard, without help from other cores ({why})"


def _live(operator: Operator) -> str:
    waits = operator.delay
    behind = f"; the slowest stays {show_duration(waits)} behind" if waits else ""
    own = "a state operator of its own after that of the stage before; " if operator.stage else ""
    return f"{own}time goes on in every shard in every batch, whether it has events or not{behind}"
