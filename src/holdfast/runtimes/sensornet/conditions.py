"""Conditions of a definition as machines for publishers' nodes."""

from __future__ import annotations

from ...compilers.families import meanings
from ...compilers.filters.machine import filters
from ...errors import Unsupported
from ...lang.condition import Checked, Condition
from ...machines.machine import Machine


def on_motes(definition: Checked) -> dict[str, Machine]:
    """The machine of each condition, by name; each publisher will run it for its own samples.

    >>> from holdfast.lang.parse import parse
    >>> text = "topic T (value float)  state Warm on T [value > 25; value < 22] per source"
    >>> list(on_motes(parse(text).check()))
    ['Warm']
    """
    alone = {condition.name for condition in definition.conditions}
    beyond = [name for name in meanings(definition) if name not in alone]
    if beyond:
        raise Unsupported(f"'{beyond[0]}' looks at several sensors; a mote sees only its own samples")
    return {condition.name: filters([_checked(condition)]) for condition in definition.conditions}


def _checked(condition: Condition) -> Condition:
    alone = condition.keys and "source" in condition.keys[-1]
    if condition.forest is not None or not (alone or condition.momentary):
        raise Unsupported(
            f"'{condition.name}' has one state for several sensors; on motes each sensor has its own: "
            "write 'per source'"
        )
    if condition.delivery.wait is not None:
        raise Unsupported(f"'{condition.name}' puts samples in order; a mote's own samples are: leave it out")
    return condition
