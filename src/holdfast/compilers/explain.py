"""The plan of a definition in words: what is tested, what is dropped where, what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..lang.condition import Checked, Condition
from ..model.topic import Topic
from . import sql
from .families import FAMILIES, listened


def explain(checked: Checked) -> str:
    """The plan of every machine that the definition needs."""
    parts = [part for family in FAMILIES for part in family.explained(family.of(checked))]
    return "\n\n".join(parts) or "Nothing to run: no filter and no state is declared."


def explain_on_spark(checked: Checked) -> str:
    """The plan on Spark, stage by stage; Spark need not run for it."""
    parts: list[Iterable[str]] = [part for family in FAMILIES for part in family.explained_on_spark(checked)]
    if not parts:
        return explain(checked)
    watched = {condition.topic for condition in checked.conditions}
    others = listened(checked)
    parts += [
        _frame(topic, [c for c in checked.conditions if c.topic == topic], topic in others)
        for topic in checked.topics
        if topic in watched or topic in others
    ]
    return "\n\n".join("\n".join(part) for part in (*parts, _FILES, _LIVE))


def _frame(topic: Topic, conditions: list[Condition], listened: bool) -> Iterator[str]:
    """What Spark does by itself with rows of a topic that come in a DataFrame."""
    tests = [op for c in conditions for op in ([c.enter] if c.momentary else [c.enter, c.exit])]
    where = "every row: a component listens" if listened else sql.matching(tests, topic)
    yield f"a DataFrame of {topic.name}"
    yield f"  reads     {', '.join(['time', 'source', *(a.name for a in topic.attributes)])}"
    yield "            and, if it has them, topic, sequence, place, x, y, z"
    yield f"  where     {where}"
    yield f"  collapse  {'no: a component listens' if listened else _collapsed(conditions)}"
    yield "  then      crosses to Python once, is packed by machine and shard"


def _collapsed(conditions: list[Condition]) -> str:
    """Whether stretches in which nothing changes are found before rows leave Spark."""
    if (reason := sql.obstacle(conditions)) is not None:
        return f"no: {reason}"
    levels = next(condition.keys for condition in conditions if not condition.momentary)
    keys = [name for level in levels for name in level]
    return (
        f"stretches in which nothing changes, by {', '.join([*keys, 'span of time'])}; only of history from "
        "files, tables or the cache, with enough rows for each scope"
    )


_FILES = (
    "history from files",
    "  readers   read with Arrow inside the executor; row groups of Parquet that touch in time together",
    "  columns   of Parquet first those that predicates and scopes need, the rest only of rows that are kept",
    "  drop      there what satisfies no predicate; of a closed part all that can start or end nothing",
    "  shuffle   what is left, once, packed by machine and shard (two shards for each core)",
    "  then      each shard is put in order by (time, source, sequence) and stepped; nothing is late",
)
_LIVE = (
    "live",
    "  readers   each file once, in the order of a log of arrivals; timely conditions are reduced there",
    "  state     transformWithState: one value for each shard in Spark's state store (RocksDB); the",
    "            number of shards is fixed in the checkpoint",
    "  restart   Spark's offsets and states; a batch that is done again says the same with the same ids",
)
