"""Operators of checked overlaps, and the explanations of overlaps. The operators run one stage after the
conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ...engine.operator import Keys, Operator, digest, topic_of_condition
from ...lang.expressions import batch as columns
from ...model.allen import Allen
from ...model.instant import show_duration
from ...model.scope import SEPARATOR, quote_value
from ..derived import group_of, operator_over
from .check import labels
from .condition import OverlapCondition
from .machine import OverlapMachine


def operator(condition: OverlapCondition) -> Operator:
    """Return the operator of an overlap."""
    scoping = columns.scoping((condition.per,) if condition.per else ())

    def shard_keys(_topic: str, batch: pa.RecordBatch) -> Keys:
        codes, keys = scoping(batch)[-1]
        return Keys(codes, keys.to_pylist())

    keyed = shard_keys if condition.per and condition.settled else None
    return operator_over("overlap", condition.name, machine(condition), meaning(condition), keyed=keyed)


def machine(condition: OverlapCondition) -> OverlapMachine:
    """Return the machine of an overlap."""
    return OverlapMachine(
        members=tuple(map(topic_of_condition, condition.over)),
        name=condition.name,
        labels=tuple(labels(topic.name) for topic in condition.over),
        relation=condition.relation,
        within=condition.within,
        near=condition.near,
        groups=(group_of((condition.per,) if condition.per else ()),) * len(condition.over),
        per=condition.per,
        shown=_readable_scope,
    )


def _readable_scope(scopes: Sequence[str]) -> str | None:
    """Return the scopes of related conditions, separated by commas. A scope that contains a comma is quoted.

    >>> _readable_scope(["s1", "s2"]), _readable_scope(["s1", "lab,3"]), _readable_scope(["", ""])
    ('s1,s2', 's1,"lab,3"', None)
    """
    return SEPARATOR.join(quote_value(scope) for scope in scopes if scope) or None


def meaning(condition: OverlapCondition) -> str:
    """Return a digest that is equal for overlaps with equal meaning.

    The name is part of the meaning, because it is the topic of the overlap's events.
    """
    limits = condition.within, condition.near
    return digest((condition.over, condition.topic, condition.relation, *limits, condition.per))


# --- in words ----------------------------------------------------------------------------------------


def describe(condition: OverlapCondition) -> dict[str, str]:
    """Return the parts of an overlap as text, by name, for the comparison of revisions."""
    return {
        "conditions": ", ".join(topic.name for topic in condition.over),
        "relation": condition.relation,
        "time apart": "" if condition.within is None else show_duration(condition.within),
        "distance": "" if condition.near == math.inf else f"{condition.near:g} m",
        "scope": ", ".join(condition.per),
    }


def explain(condition: OverlapCondition) -> Iterator[str]:
    """Yield an explanation of an overlap, line by line."""
    names = [topic.name for topic in condition.over]
    yield f"correlation {condition.name} of {', '.join(names)}, evaluated in the stage after them"
    if condition.momentary:
        yield f"  reports   once, {_KNOWN[condition.relation].format(*names)}"
    else:
        yield "  starts    when the last of them starts"
        yield "  ends      when the first of them ends"
    if condition.within is not None:
        ends = _APART[condition.relation].format(*names)
        yield f"  where     {ends} less than {show_duration(condition.within)} apart"
    if condition.near < math.inf:
        yield f"  near      each pair started less than {condition.near:g} m apart"
    if condition.per:
        yield f"  scopes    those that agree in {' and '.join(condition.per)}"
    yield "  looks at  starts and ends alone, no reading"
    yield "  waits     for the watermark: a condition that ends when another starts does not overlap with it"
    over = condition.relation == "before" or (condition.relation == "ends" and condition.within is not None)
    yield "  keeps     active conditions and where they started" + (_OVER if over else "")
    if not (condition.per and condition.settled):
        yield "  shuffle   all events go to one shard"


_OVER = "; for each scope the last interval that ended, for that long"
_KNOWN: dict[Allen, str] = {
    "overlaps": "when {0} ends while {1} is active and started later",
    "during": "when {0} ends while {1} is active and started earlier",
    "before": "when {1} starts after {0} has ended",
    "starts": "when {0} ends while {1} is active and started with it",
    "ends": "when both have ended, {0} having started later",
}
_APART: dict[Allen, str] = {
    "overlapping": "their starts are",
    "overlaps": "their starts are",
    "during": "their starts are",
    "before": "the end of {0} and the start of {1} are",
    "starts": "their starts are",
    "ends": "their ends are",
}
