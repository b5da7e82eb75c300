"""The plan of a definition in words: what is tested, what is dropped where, what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..lang.condition import Checked, Condition
from ..model.topic import Topic
from .changes import hindrance
from .families import FAMILIES, listened, mattering, operators


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
    watched |= {topic for one in checked.correlations for topic in one.listens}
    watched |= set(listened(checked))
    parts += [_frame(checked, topic) for topic in checked.topics if topic in watched]
    return "\n\n".join("\n".join(part) for part in (*parts, _FILES, _LIVE))


def _frame(checked: Checked, topic: Topic) -> Iterator[str]:
    """What Spark does by itself with rows of a topic that come in a DataFrame."""
    conditions = [condition for condition in checked.conditions if condition.topic == topic]
    is_whole = topic in listened(checked)
    others = is_whole or any(topic in one.listens for one in checked.correlations)
    where = "every row: a component listens" if is_whole else mattering(checked, topic)
    yield f"a DataFrame of {topic.name}"
    yield f"  reads     {', '.join(['time', 'source', *(a.name for a in topic.attributes)])}"
    yield "            and, if it has them, topic, sequence, place, x, y, z"
    yield f"  where     {where}"
    yield "  files     if it is only a scan of Parquet files, selected and filtered: read as history below"
    yield f"  native    {_native(conditions, checked.published, others)}"
    yield f"  closed    {_closed(conditions, others)}"
    yield "  packed    else: crosses to Python once, is packed by machine and shard"
    yield f"  stream    {_stream(checked, topic)}"


def _native(conditions: list[Condition], published: Sequence[Topic], others: bool) -> str:
    """Whether Spark can do it all by itself."""
    if others:
        return "no: a component or a correlation listens"
    sharing: dict[object, list[Condition]] = {}
    for condition in conditions:
        sharing.setdefault((condition.keys, condition.forest), []).append(condition)
    for some in sharing.values():
        if (reason := hindrance(some, published)) is not None:
            return f"no: {reason}"
    keys = " and ".join(
        ", ".join(some[0].keys[0]) if some[0].keys else "nothing" for some in sharing.values()
    )
    again = ", of a frame that can be read again" if len(sharing) > 1 else ""
    return f"else Spark's own window query: what differs from the row before, by {keys}{again}"


def _closed(conditions: list[Condition], others: bool) -> str:
    """Whether partitions can be reduced by themselves."""
    if others:
        return "no: a component or a correlation listens"
    if any(condition.forest is not None for condition in conditions):
        return "no: only Python can tell in which region an event lies"
    return (
        "else, of a frame that can be read again: partitions whose times no scope shares, told by one "
        "aggregate, are reduced before the shuffle"
    )


def _stream(checked: Checked, topic: Topic) -> str:
    """What is dropped of rows of a topic that come in a stream."""
    if topic in listened(checked):
        return "every row crosses to Python: a component listens"
    running = (operator for operator in operators(checked, sharded=True) if operator.machine.is_timed)
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
