"""The plan of a definition in words: what is tested, what is dropped where, what is kept."""

from __future__ import annotations

from collections.abc import Iterator

from ..lang.condition import Checked, Condition
from ..lang.rewrite import names
from ..lang.show import show
from ..model.instant import show_duration
from ..model.topic import Topic
from .machine import Group, groups


def explain(checked: Checked) -> str:
    """The plan of every machine that the definition needs."""
    by_name = {condition.name: condition for condition in checked.conditions}
    parts = ["\n".join(_machine(i, group, by_name)) for i, group in enumerate(groups(checked.conditions), 1)]
    return "\n\n".join(parts) or "Nothing to run: no filter and no state is declared."


def _machine(number: int, group: Group, by_name: dict[str, Condition]) -> Iterator[str]:
    conditions = [by_name[name] for equal in group.conditions for name in equal]
    first = conditions[0]
    plural = "s" if len(group.conditions) > 1 else ""
    yield f"machine {number}: {len(group.conditions)} filter{plural} on {group.topic.name}"
    for equal in group.conditions:
        condition = by_name[equal[0]]
        yield f"  {', '.join(equal)}"
        yield f"    starts  {show(condition.enter)}"
        yield f"    ends    {_end(condition)}"
    looked_at = [_with_unit(group.topic, name) for name in _columns(conditions)]
    yield f"  looks at  {', '.join(['time', 'source', 'sequence', *looked_at])}"
    yield f"  scopes    {_scopes(first)}"
    yield f"  delivery  {_delivery(first)}"
    yield f"  drops     {_dropped(first)}"
    yield f"  keeps     {_state(first, len(group.conditions))}"


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
