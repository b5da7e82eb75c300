"""The plan of state filters in words: what is tested, what is dropped where, what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ...errors import counted
from ...lang.condition import Condition, Guarded
from ...lang.ops import DeclareRegion
from ...lang.rewrite import names
from ...lang.show import show
from ...model.instant import show_duration
from ...model.qos import Correct, Late
from ...model.space import Region
from ...model.topic import Topic
from ..envelope import covering
from ..operator import Operator
from ..tables import looked_at
from .machine import operators


def explained(conditions: Iterable[Condition]) -> Iterator[str]:
    """The plan of every machine that filters need."""
    by_name = {condition.name: condition for condition in conditions}
    for number, operator in enumerate(operators(by_name.values()), 1):
        yield "\n".join(_machine(number, operator, by_name))


def explained_on_spark(conditions: Iterable[Condition]) -> Iterator[Iterator[str]]:
    """The plan of every machine on Spark, line by line."""
    by_name = {condition.name: condition for condition in conditions}
    for number, operator in enumerate(operators(by_name.values()), 1):
        yield _on_spark(number, operator, by_name)


def _on_spark(number: int, operator: Operator, by_name: Mapping[str, Condition]) -> Iterator[str]:
    first = by_name[operator.names[0][0]]
    yield from _head(number, operator, by_name)
    yield f"  shuffle   {shuffled(first)}"
    yield f"  live      {_live(first)}"
    yield f"  keeps     {_state(first, len(operator.names))}"


def shuffled(condition: Condition | Guarded) -> str:
    """What decides in which shard an event meets the others."""
    if not condition.keys and condition.forest is None:
        return "one scope is one shard: the step after the shuffle has no help from other cores"
    outermost = "the outermost region" if condition.forest is not None else " and ".join(condition.keys[-1])
    return f"once, packed as Arrow by shard; a shard is a hash (crc32) of {outermost}"


def _live(condition: Condition) -> str:
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "in the order of arrival, never sorted again; nothing is late"
    then = late_ones(late, "is counted and goes to the late output")
    return (
        f"waits until event time has passed by {show_duration(wait)}, then in order; "
        f"a later event {then}. The machine decides what is late, not Spark's watermark"
    )


def _machine(number: int, operator: Operator, by_name: Mapping[str, Condition]) -> Iterator[str]:
    first = by_name[operator.names[0][0]]
    yield from _head(number, operator, by_name)
    yield f"  delivery  {delivery(first)}"
    yield f"  drops     {_dropped(first)}"
    yield f"  keeps     {_state(first, len(operator.names))}"


def _head(number: int, operator: Operator, by_name: Mapping[str, Condition]) -> Iterator[str]:
    """What a machine tests, of which columns, in which scopes."""
    conditions = [by_name[name] for equal in operator.names for name in equal]
    (topic,) = operator.topics.values()
    plural = "s" if len(operator.names) > 1 else ""
    yield f"machine {number}: {len(operator.names)} filter{plural} on {topic.name}"
    for equal in operator.names:
        condition = by_name[equal[0]]
        yield f"  {', '.join(equal)}"
        yield f"    starts  {show(condition.enter)}"
        yield f"    ends    {_end(condition)}"
    looked_at = [_with_unit(topic, name) for name in _columns(conditions)]
    yield f"  looks at  {', '.join(['time', 'source', 'sequence', *looked_at])}"
    yield from _tables(conditions)
    yield f"  scopes    {scopes(conditions[0])}"


def _tables(conditions: list[Condition]) -> Iterator[str]:
    """The tables that conditions look up, and what whoever is far from them can do."""
    for table in dict.fromkeys(table for one in conditions for table in one.tables):
        yield f"  table     {table.name}: {counted(table, 'row')} by {', '.join(table.by)}"
    for one in conditions:
        if one.tables:
            cover = covering(one).condition
            ends = "" if one.momentary else f"; {show(cover.exit)}"
            yield f"  upstream  all rows of {one.name}: [{show(cover.enter)}{ends}]"
            yield "            publishers and motes send while that holds; who subscribes looks rows up"


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
    unit = topic.by_name[name].unit if name in topic.by_name else None
    return f"{name} in {unit}" if unit else name


def _columns(conditions: list[Condition]) -> list[str]:
    """What is read of an event beside time, source and sequence."""
    seen: dict[str, None] = {}
    for condition in conditions:
        seen.update(dict.fromkeys(looked_at(condition)))
        seen.update(dict.fromkeys(name for level in condition.keys for name in level))
    if conditions[0].forest is not None:
        seen.update(dict.fromkeys(("place", "x", "y", "z")))
    return [name for name in seen if name != "source"]


def scopes(condition: Condition | Guarded) -> str:
    """Of what there is one filter each."""
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


def late_ones(late: Late, dropped: str) -> str:
    """What becomes of a late event."""
    match late:
        case Correct(within):
            return f"corrects what was told; one more than {show_duration(within)} later than that {dropped}"
        case "drop":
            return dropped
        case "apply":
            return "is applied as it arrives"


def delivery(condition: Condition | Guarded) -> str:
    """How events reach it."""
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "timely: live, events are taken as they arrive (replay is always in order of time)"
    then = late_ones(late, "goes to the late output")
    return f"ordered: live, events wait {show_duration(wait)} to be put in order; a later one {then}"


def _state(condition: Condition, filters: int) -> str:
    if condition.momentary and filters == 1:
        return "the names of the scopes it has met; no bit is ever set"
    word = 1 if filters <= 8 else 8
    return (
        f"for each scope {word} byte{'s' if word > 1 else ''} of status bits, its name (about 30 bytes and "
        f"the text), and {8 * filters} bytes of start times"
    )


def in_words(condition: Condition | Guarded) -> dict[str, str]:
    """What a condition says, to tell what has changed."""
    used = {*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)}
    attributes = (condition.looked.by_name[name] for name in sorted(used))
    wait = condition.delivery.wait
    return {
        "topic": condition.topic.name,
        "key": " within ".join(", ".join(level) for level in condition.keys),
        "scope": "" if condition.forest is None else ", ".join(map(_region, condition.forest.regions)),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {condition.delivery.late}",
        "list of attributes": ", ".join(f"{a.name} {a.kind} {a.unit or ''}".rstrip() for a in attributes),
        "start": show(condition.enter),
        "end": show(condition.exit),
        **{f"table {one.name}": f"{len(one):,} rows, {one.digest[:12]}" for one in condition.tables},
    }


def _region(region: Region) -> str:
    return show(DeclareRegion(region.name, region.shape)).removeprefix("region ")
