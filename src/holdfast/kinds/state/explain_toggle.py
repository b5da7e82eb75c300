"""Explain plain states as text: predicates, pushdown, stored state.

`holdfast explain` prints these texts; pages and tests show them. Other kinds use some of the functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ...engine.operator import Operator
from ...errors import counted
from ...lang.expressions.tables import columns_of
from ...lang.ops import DeclareRegion
from ...lang.rewrite import names
from ...lang.show import show_expression, show_statement
from ...model.instant import show_duration
from ...model.qos import Correct, Late
from ..kind import describe_delivery
from .condition import AnyState, StateCondition
from .cover import covering
from .plan_toggle import operators


def explain(conditions: Iterable[StateCondition]) -> Iterator[str]:
    """Yield an explanation of each machine that filters need."""
    for number, operator, states in _machines(conditions):
        first = states[0]
        delivered = f"  delivery  {delivery(first)}", f"  drops     {_explain_dropped(first)}"
        stored = f"  keeps     {_state(first, len(operator.names))}", *remembers(first)
        yield "\n".join([*_head(number, operator, states), *delivered, *stored])


def explain_on_spark(conditions: Iterable[StateCondition]) -> Iterator[Iterator[str]]:
    """Yield an explanation of each machine on Spark, line by line."""
    for number, operator, states in _machines(conditions):
        first = states[0]
        lines = f"  shuffle   {explain_shuffle(first)}", f"  live      {_live(first)}"
        stored = f"  keeps     {_state(first, len(operator.names))}"
        yield iter([*_head(number, operator, states), *lines, stored])


def _machines(conditions: Iterable[StateCondition]) -> Iterator[tuple[int, Operator, list[StateCondition]]]:
    """Yield the operators of filters, each with its number and its conditions."""
    by_name = {condition.name: condition for condition in conditions}
    for number, operator in enumerate(operators(by_name.values()), 1):
        yield number, operator, [by_name[name] for equal in operator.names for name in equal]


def explain_shuffle(condition: AnyState) -> str:
    """Return a text that explains the shuffle key of a condition."""
    if not condition.keys and condition.forest is None:
        return "one scope is one shard: the step after the shuffle has no help from other cores"
    outermost = "the outermost region" if condition.forest is not None else " and ".join(condition.keys[-1])
    return f"once, packed as Arrow by shard; a shard is a hash (crc32) of {outermost}"


def _live(condition: StateCondition) -> str:
    """Return a text that explains the order of events in a live query."""
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "in the order of arrival, never sorted again; nothing is late"
    if isinstance(late, Correct):
        return "not on Spark: what it has told would have to be taken back ('late correct')"
    then = late_ones(late, "is counted and goes to the late output")
    return (
        f"waits until event time has passed by {show_duration(wait)}, then in order; "
        f"a later event {then}. The machine decides what is late, not Spark's watermark"
    )


def _head(number: int, operator: Operator, conditions: Sequence[StateCondition]) -> Iterator[str]:
    """Yield lines that explain the predicates of a machine, the columns that they read, and its scopes."""
    by_name = {condition.name: condition for condition in conditions}
    (topic,) = operator.topics.values()
    plural = "s" if len(operator.names) > 1 else ""
    yield f"machine {number}: {len(operator.names)} filter{plural} on {topic.name}"
    for equal in operator.names:
        condition = by_name[equal[0]]
        yield f"  {', '.join(equal)}"
        yield f"    starts  {show_expression(condition.enter)}"
        yield f"    ends    {_end(condition)}"
    units = {attribute.name: f" in {attribute.unit}" for attribute in topic.attributes if attribute.unit}
    looked_at = [name + units.get(name, "") for name in _columns(conditions)]
    yield f"  looks at  {', '.join(['time', 'source', 'sequence', *looked_at])}"
    yield from _tables(conditions)
    yield f"  scopes    {scopes(conditions[0])}"


def _tables(conditions: Sequence[StateCondition]) -> Iterator[str]:
    """Yield lines that explain the tables of conditions, and the cover that runs without these tables."""
    for table in dict.fromkeys(table for condition in conditions for table in condition.tables):
        yield f"  table     {table.name}: {counted(table, 'row')} by {', '.join(table.by)}"
    for condition in conditions:
        if condition.tables:
            cover = covering(condition).condition
            ends = "" if condition.momentary else f"; {show_expression(cover.exit)}"
            yield f"  upstream  all rows of {condition.name}: [{show_expression(cover.enter)}{ends}]"
            yield "            publishers and motes send while that holds; who subscribes looks rows up"


def _end(condition: StateCondition) -> str:
    if condition.momentary:
        return "at once (momentary: every match passes, nothing is kept)"
    ends = show_expression(condition.exit)
    return "never" if ends == "false" else ends


def _explain_dropped(condition: StateCondition) -> str:
    """Return a text that explains which events are dropped when they are read."""
    neither = "what satisfies neither predicate, where it is read"
    if condition.delivery.wait is None:
        return f"{neither}; of what is in order already, all that can start or end nothing"
    live = "" if condition.delivery.late == "apply" else "; live nothing: any event may be late"
    return neither + live


def _columns(conditions: Sequence[StateCondition]) -> list[str]:
    """Return the columns that are read beside time, source and sequence."""
    seen: dict[str, None] = {}
    for condition in conditions:
        seen.update(dict.fromkeys(columns_of(condition)))
        seen.update(dict.fromkeys(name for level in condition.keys for name in level))
    if conditions[0].forest is not None:
        seen.update(dict.fromkeys(("place", "x", "y", "z")))
    return [name for name in seen if name != "source"]


def scopes(condition: AnyState) -> str:
    """Return a text that explains the scopes of a condition."""
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
    """Return a text that explains the treatment of late events; ``dropped`` is the text for dropping them."""
    match late:
        case Correct(within):
            return f"corrects what was told; one more than {show_duration(within)} later than that {dropped}"
        case "drop":
            return dropped
        case "apply":
            return "is applied as it arrives"


def remembers(condition: AnyState) -> Iterator[str]:
    """Yield a line that explains the events stored for corrections, if the condition corrects
    notifications."""
    if isinstance(late := condition.delivery.late, Correct):
        yield f"            twice: now and {show_duration(late.within)} ago; and live the readings since then"


def delivery(condition: AnyState) -> str:
    """Return a text that explains the order in which events are processed."""
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "timely: live, events are taken as they arrive (replay is always in order of time)"
    then = late_ones(late, "goes to the late output")
    return f"ordered: live, events wait {show_duration(wait)} to be put in order; a later one {then}"


def _state(condition: StateCondition, filters: int) -> str:
    if condition.momentary and filters == 1:
        return "the names of the scopes it has met; no bit is ever set"
    word = 1 if filters <= 8 else 8
    return (
        f"for each scope {word} byte{'s' if word > 1 else ''} of status bits, its name (about 30 bytes and "
        f"the text), and {8 * filters} bytes of start times"
    )


def describe(condition: AnyState) -> dict[str, str]:
    """Return the parts of a state filter as text, by name, for the comparison of revisions."""
    used = {*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)}
    attributes = (condition.topic_with_rows.by_name[name] for name in sorted(used))
    declared = () if condition.forest is None else condition.forest.regions
    regions = [show_statement(DeclareRegion(r.name, r.shape)).removeprefix("region ") for r in declared]
    return {
        "topic": condition.topic.name,
        "key": " within ".join(", ".join(level) for level in condition.keys),
        "scope": ", ".join(regions),
        "delivery": describe_delivery(condition.delivery),
        "list of attributes": ", ".join(f"{a.name} {a.kind} {a.unit or ''}".rstrip() for a in attributes),
        "start": show_expression(condition.enter),
        "end": show_expression(condition.exit),
        **{f"table {table.name}": f"{len(table):,} rows, {table.digest[:12]}" for table in condition.tables},
    }
