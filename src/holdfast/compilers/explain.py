"""The plan of a definition in words: what is tested, what is dropped where, what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..lang.condition import Checked, Condition
from ..lang.rewrite import names
from ..lang.show import show
from ..model.instant import show_duration
from ..model.topic import Topic
from . import explain_correlation, explain_stages, sql
from .explain_component import explained
from .machine import Group, groups


def explain(checked: Checked) -> str:
    """The plan of every machine that the definition needs."""
    by_name = {condition.name: condition for condition in checked.conditions}
    parts = ["\n".join(_machine(i, group, by_name)) for i, group in enumerate(groups(checked.conditions), 1)]
    parts += ["\n".join(explained(component)) for component in checked.components]
    parts += explain_correlation.explained(checked.correlations)
    return "\n\n".join(parts) or "Nothing to run: no filter and no state is declared."


def explain_on_spark(checked: Checked) -> str:
    """The plan on Spark, stage by stage; Spark need not run for it."""
    by_name = {condition.name: condition for condition in checked.conditions}
    machines = groups(checked.conditions)
    if not machines and not checked.components and not checked.correlations:
        return explain(checked)
    listened = {topic for one in checked.components for topic in one.listens}
    listened |= {topic for one in checked.correlations for topic in one.listens}
    watched = dict.fromkeys(group.topic for group in machines)
    parts: list[Iterable[str]] = [
        *(_on_spark(i, group, by_name) for i, group in enumerate(machines, 1)),
        *map(explained, checked.components),
        *explain_stages.explained(checked),
        *explain_correlation.explained_on_spark(checked.correlations),
        *(
            _frame(topic, [c for c in checked.conditions if c.topic == topic], topic in listened)
            for topic in checked.topics
            if topic in watched or topic in listened
        ),
        _FILES,
        _LIVE,
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def _on_spark(number: int, group: Group, by_name: dict[str, Condition]) -> Iterator[str]:
    first = by_name[group.conditions[0][0]]
    yield from _head(number, group, by_name)
    yield f"  shuffle   {_shuffled(first)}"
    yield f"  live      {_live(first)}"
    yield f"  keeps     {_state(first, len(group.conditions))}"


def _shuffled(condition: Condition) -> str:
    """What decides in which shard an event meets the others."""
    if not condition.keys and condition.forest is None:
        return "one scope is one shard: the step after the shuffle has no help from other cores"
    outermost = "the outermost region" if condition.forest is not None else " and ".join(condition.keys[-1])
    return f"once, packed as Arrow by shard; a shard is a hash (crc32) of {outermost}"


def _live(condition: Condition) -> str:
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "in the order of arrival, never sorted again; nothing is late"
    then = "is counted and goes to the late output" if late == "drop" else "is applied as it arrives"
    return (
        f"waits until event time has passed by {show_duration(wait)}, then in order; "
        f"a later event {then}. The machine decides what is late, not Spark's watermark"
    )


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


def _machine(number: int, group: Group, by_name: dict[str, Condition]) -> Iterator[str]:
    first = by_name[group.conditions[0][0]]
    yield from _head(number, group, by_name)
    yield f"  delivery  {_delivery(first)}"
    yield f"  drops     {_dropped(first)}"
    yield f"  keeps     {_state(first, len(group.conditions))}"


def _head(number: int, group: Group, by_name: dict[str, Condition]) -> Iterator[str]:
    """What a machine tests, of which columns, in which scopes."""
    conditions = [by_name[name] for equal in group.conditions for name in equal]
    plural = "s" if len(group.conditions) > 1 else ""
    yield f"machine {number}: {len(group.conditions)} filter{plural} on {group.topic.name}"
    for equal in group.conditions:
        condition = by_name[equal[0]]
        yield f"  {', '.join(equal)}"
        yield f"    starts  {show(condition.enter)}"
        yield f"    ends    {_end(condition)}"
    looked_at = [_with_unit(group.topic, name) for name in _columns(conditions)]
    yield f"  looks at  {', '.join(['time', 'source', 'sequence', *looked_at])}"
    yield f"  scopes    {_scopes(conditions[0])}"


def _end(condition: Condition) -> str:
    if condition.momentary:
        return "at once (momentary: every match passes, nothing is kept)"
    ends = show(condition.exit)
    return "never" if ends == "false" else ends


def _dropped(condition: Condition) -> str:
    """What need not leave the place where it is read."""
    neither = "what satisfies neither predicate, where it is read"
    if condition.delivery.wait is None:
        return f"{neither}; of what is in order already, all that can start or end nothing"
    return (
        neither if condition.delivery.late == "apply" else f"{neither}; live nothing: any event may be late"
    )


def _with_unit(topic: Topic, name: str) -> str:
    unit = topic.by_name[name].unit
    return f"{name} in {unit}" if unit else name


def _columns(conditions: list[Condition]) -> list[str]:
    """What is read of an event beside time, source and sequence."""
    seen: dict[str, None] = {}
    for condition in conditions:
        seen.update(dict.fromkeys([*names(condition.enter), *names(condition.exit)]))
        seen.update(dict.fromkeys(name for level in condition.keys for name in level))
    if conditions[0].forest is not None:
        seen.update(dict.fromkeys(("place", "x", "y", "z")))
    return [name for name in seen if name != "source"]


def _scopes(condition: Condition) -> str:
    levels = [" and ".join(names) for names in condition.keys]
    if condition.forest is not None:
        forest = condition.forest
        depth = f", {forest.depth} deep" if forest.depth > 1 else ""
        plural = "s" * (len(forest.regions) != 1)
        levels.append(f"{len(forest.regions)} region{plural}{depth}")
    if not levels:
        return "one for everything"
    inner = "one filter for each " + ", inside each of ".join(levels)
    nested = len(condition.keys) + (condition.forest.depth if condition.forest else 0) > 1
    return inner + ("; what passes the inner filter feeds the outer" if nested else "")


def _delivery(condition: Condition) -> str:
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "timely: live, events are taken as they arrive (replay is always in order of time)"
    then = "goes to the late output" if late == "drop" else "is applied as it arrives"
    return f"ordered: live, events wait {show_duration(wait)} to be put in order; a later one {then}"


def _state(condition: Condition, filters: int) -> str:
    if condition.momentary and filters == 1:
        return "the names of the scopes it has met; no bit is ever set"
    word = 1 if filters <= 8 else 8
    return (
        f"for each scope {word} byte{'s' if word > 1 else ''} of status bits, its name (about 25 bytes and "
        f"the text), and {8 * filters} bytes of start times"
    )
