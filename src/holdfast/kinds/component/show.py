"""Print components in the readable form. `parse.py` reads the same statement again from the text."""

from __future__ import annotations

from ...kernels.functions import AGGREGATES
from ...lang.literal import write_text
from ...lang.ops import Trigger
from ...lang.show import label, show_coordinate, show_delivery, show_expression
from ...model.event import STATUSES
from ...model.instant import show_duration, show_instant
from ...model.query import (
    HERE,
    HOWS,
    NOW,
    Aggregate,
    Ball,
    Closest,
    Dimension,
    Function,
    Group,
    How,
    Index,
    MemberSet,
    Multiple,
    Parameter,
    PooledDimension,
    Query,
    QueryRange,
    Whole,
)
from .syntax import DefineComponent

_BEFORE_A_TOPIC = {*AGGREGATES, *HOWS, *STATUSES, "each", "latest"}
"""Words that may precede a topic. A topic with such a name is quoted."""


def show_detect(statement: DefineComponent) -> str:
    """Print a component: `state TrafficCongestion`, and one line for each query, trigger and trait."""
    name = label(statement.name)
    match statement.inputs:
        case (("", query),):
            head = [f"state {name} on {show_query(query)}"]
        case inputs:
            head = [f"state {name}", *(f"  {own} = {show_query(query)}" for own, query in inputs)]
    turns = [_show_trigger("enter", statement.enter), _show_trigger("exit", statement.exit)]
    return "\n".join([*head, *turns, *(f"  {line}" for line in show_traits(statement))])


def _show_trigger(word: str, trigger: Trigger) -> str:
    held = f" for {show_duration(trigger.hold)}" if trigger.hold else ""
    sets = ", ".join(f"{name} = {show_expression(value)}" for name, value in trigger.sets)
    return f"  {word} {show_expression(trigger.when)}{held}" + (f" set {sets}" if sets else "")


def show_traits(statement: DefineComponent) -> list[str]:
    """Return `tick`, `here` and delivery as one line each."""
    lines = [] if statement.tick is None else [f"tick {show_duration(statement.tick)}"]
    match statement.here:
        case None:
            pass
        case str(topic):
            lines.append(f"here {label(topic)}")
        case tuple(point):
            lines.append(f"here ({', '.join(map(show_coordinate, point))})")
    shown = show_delivery(statement.delivery)
    return lines + ([shown] if shown else [])


# --- queries -----------------------------------------------------------------------------------


def show_query(query: Query) -> str:
    """Print a query, such as `avg InductiveLoop over 30 s each location`."""
    time, status = query.time, query.status
    function = _functions(time.functions) if isinstance(time, Aggregate) else ""
    closest = str(status.index.value) if isinstance(status, Closest) else ""
    statuses = "" if closest or status == Multiple("any") else _words(status, "status")
    keys = f"each {', '.join(query.each)}" if query.each else ""
    words = [function, closest, _topic(query.topic), _time(time), _location(query.location), statuses, keys]
    return " ".join(filter(None, words))


def _functions(functions: How | Function | tuple[tuple[str, Function], ...]) -> str:
    if isinstance(functions, str):
        return "each" if functions == "separate" else functions
    return f"({', '.join(f'{function} {name}' for name, function in functions)})"


def _topic(topic: Parameter) -> str:
    match topic:
        case Closest(index):
            return _topic_name(index)
        case Aggregate(functions, MemberSet(values)) | Multiple(functions, MemberSet(values)):
            return f"{_functions(functions)} of ({', '.join(map(_topic_name, values))})"
    raise AssertionError(f"not a choice of topics: {topic}")


def _topic_name(index: Index) -> str:
    name = str(index.value)
    return write_text(name) if name in _BEFORE_A_TOPIC else label(name)


def _time(time: Parameter) -> str:
    match time:
        case Closest(index):
            return "" if index == NOW else f"at {_index(index)}"
        case Aggregate(_, group):
            return _window(group)
        case Multiple(_, QueryRange() as group):
            return f"{_words(Multiple(time.how), 'time')} {_window(group)}"
    return _words(time, "time")


def _window(group: Group) -> str:
    match group:
        case Whole():
            return "ever"
        case QueryRange(Index(int(low), True), high) if high == NOW and low <= 0:
            return f"over {show_duration(-low)}"
        case QueryRange(low, high):
            return f"over [{_index(low)}, {_index(high)}]"
        case MemberSet(values):
            return f"over ({', '.join(map(_index, values))})"
    raise AssertionError(f"not a window: {group}")


def _location(location: Parameter) -> str:
    match location:
        case PooledDimension(group):
            return _region(group)
        case Closest(index):
            return f"closest to {_index(index)}"
        case Aggregate(functions, group) | Multiple(functions, group) if not isinstance(group, MemberSet):
            return f"{_functions(functions)} location {_region(group)}".rstrip()
    return _words(location, "location")


def _region(group: Group) -> str:
    match group:
        case Whole():
            return ""
        case QueryRange(low, high):
            return f"within [{_index(low)}, {_index(high)}]"
        case Ball(centre, radius):
            return f"within {show_coordinate(radius)} m of {_index(centre)}"
        case MemberSet(values):
            return f"among ({', '.join(map(_index, values))})"


def _words(parameter: Parameter, dimension: Dimension) -> str:
    """Print a dimension that is pooled or selects several members, such as `any status of (ingress,
    egress)`."""
    match parameter:
        case Aggregate(functions, group) | Multiple(functions, group):
            words = _functions(functions)
        case PooledDimension(group):
            words = "whatever"
        case _:
            raise AssertionError(f"not of many: {parameter}")
    members = f" of ({', '.join(map(_index, group.values))})" if isinstance(group, MemberSet) else ""
    return f"{words} {dimension}{members}"


def _index(index: Index) -> str:
    match index.value:
        case int(instant) if index.relative:
            if not instant:
                return "now"
            return f"-{show_duration(-instant)}" if instant < 0 else show_duration(instant)
        case int(instant):
            return write_text(show_instant(instant))
        case tuple(point):
            if index == HERE:
                return "here"
            shown = f"({', '.join(map(show_coordinate, point))})"
            if index.relative:
                return f"here + {shown}"
            return show_coordinate(point[0]) if len(point) == 1 else shown
        case str(name):
            return name if name in ("atomic", "ingress", "egress") else write_text(name)
