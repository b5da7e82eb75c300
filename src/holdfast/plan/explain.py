"""Descriptions of the plan of a definition: predicates, pushdown, stored state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..kinds.registry import by_kind, kind
from ..lang.condition import Checked
from ..model.topic import Topic
from .compile import operators, read_whole, relevant_in_sql


def explain(checked: Checked) -> str:
    """Return a text that explains every machine of a definition."""
    parts = [part for kind_, found in by_kind(checked.conditions) for part in kind_.explain(found)]
    return "\n\n".join(parts) or "Nothing to run: no filter and no state is declared."


def explain_on_spark(checked: Checked) -> str:
    """Return a text that explains the plan on Spark, stage by stage. Spark is not started."""
    parts: list[Iterable[str]] = []
    for kind_, conditions in by_kind(checked.conditions):
        if kind_.explain_on_spark is None:
            parts += (part.splitlines() for part in kind_.explain(conditions))
        else:
            parts += kind_.explain_on_spark(conditions, checked.topics)
    if not parts:
        return explain(checked)
    watched = {topic for c in checked.conditions if kind(c).sql for topic in c.listens}
    watched |= set(read_whole(checked))
    parts += [_frame(checked, topic) for topic in checked.topics if topic in watched]
    return "\n\n".join("\n".join(part) for part in (*parts, _FILES, _LIVE))


def _frame(checked: Checked, topic: Topic) -> Iterator[str]:
    """Yield lines that explain which plan Spark uses for rows of a topic in a DataFrame."""
    consumers = [c for c in checked.conditions if kind(c).sql and topic in c.listens]
    conditions = [c for c in consumers if kind(c).window]
    is_whole = topic in read_whole(checked)
    others = is_whole or len(conditions) < len(consumers)
    where = "every row: a component listens" if is_whole else relevant_in_sql(checked, topic)
    yield f"a DataFrame of {topic.name}"
    yield f"  reads     {', '.join(['time', 'source', *(a.name for a in topic.attributes)])}"
    yield "            and, if it has them, topic, sequence, place, x, y, z"
    yield f"  where     {where}"
    yield "  files     if it is only a scan of Parquet files, selected and filtered: read as history below"
    yield f"  native    {_explain_native(conditions, checked.output_topics, others)}"
    yield f"  closed    {_explain_closed(conditions, others)}"
    yield "  packed    else: crosses to Python once, is packed by machine and shard"
    yield f"  stream    {_stream(checked, topic)}"


def _explain_native(conditions: list[Any], published: Sequence[Topic], others: bool) -> str:
    """Return whether Spark SQL evaluates the conditions without Python, with the reason."""
    if others:
        return "no: a component or a correlation listens"
    sharing: dict[object, list[Any]] = {}
    for condition in conditions:
        sharing.setdefault((condition.keys, condition.forest), []).append(condition)
    for group in sharing.values():
        window = kind(group[0]).window
        if window is not None and (reason := window.reason_against(group, published)) is not None:
            return f"no: {reason}"
    keys = " and ".join(
        ", ".join(group[0].keys[0]) if group[0].keys else "nothing" for group in sharing.values()
    )
    again = ", of a frame that can be read again" if len(sharing) > 1 else ""
    return f"else Spark's own window query: what differs from the row before, by {keys}{again}"


def _explain_closed(conditions: list[Any], others: bool) -> str:
    """Return whether partitions are compacted separately, with the reason."""
    if others:
        return "no: a component or a correlation listens"
    if any(condition.forest is not None for condition in conditions):
        return "no: only Python can tell in which region an event lies"
    return (
        "else, of a frame that can be read again: partitions whose times no scope shares, told by one "
        "aggregate, are reduced before the shuffle"
    )


def _stream(checked: Checked, topic: Topic) -> str:
    """Return which rows of a topic a stream drops."""
    if topic in read_whole(checked):
        return "every row crosses to Python: a component listens"
    running = (
        operator for operator in operators(checked, sharded=True) if operator.machine.traits.uses_watermark
    )
    if any(topic.name in operator.clock for operator in running):
        return "every row crosses to Python: it tells how far time has come, and may be late"
    return "what satisfies a predicate crosses to Python once, and is packed and stepped as live"


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
