"""Operators of checked counts, and the explanations of counts. The operators run one stage after the counted
condition.

`holdfast explain` prints the texts of `explain`; pages and tests show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.operator import RETOLD, Keys, Operator, digest, topic_of_condition
from ...lang.expressions import batch as columns
from ...lang.expressions.key_text import join_key, readable_key
from ...model.count import CountShare
from ..derived import group_of, operator_over
from .check import OWN
from .condition import CountCondition
from .machine import CountMachine


def operator(condition: CountCondition) -> Operator:
    """Return the operator of a count."""
    run = machine(condition)

    def shard_keys(_topic: str, batch: pa.RecordBatch) -> Keys:
        return Keys(*run.grouping(batch))

    keyed = shard_keys if condition.settled and condition.within else None
    return operator_over("count", condition.name, run, meaning(condition), keyed=keyed)


def machine(condition: CountCondition) -> CountMachine:
    """Return the machine of a count."""
    everywhere = not condition.within and condition.forest is None
    keys = (condition.within,) if condition.within else ()
    scoping = columns.scoping(keys, condition.forest)

    def grouping(batch: pa.RecordBatch) -> tuple[NDArray[np.int32], Sequence[str]]:
        codes, keys = scoping(batch)[-1]
        return codes, keys.to_pylist()

    members: dict[str, str] = {}
    for member, group in condition.roster or ():
        members[member] = join_key(None, group) if isinstance(group, tuple) else group or ""
    own = tuple(attribute.name for attribute in OWN)
    return CountMachine(
        topic=topic_of_condition(condition.over),
        name=condition.name,
        own=own,
        quota=condition.quota,
        joined=condition.joined,
        dead=condition.unknown,
        group=group_of(keys, condition.forest),
        grouping=grouping,
        shown=(lambda _key: None) if everywhere else readable_key,
        dropped=frozenset((*RETOLD, *own)),
        members=None if condition.roster is None else members,
        totals=Counter(members.values()),
        waits=condition.waits,
    )


def meaning(condition: CountCondition) -> str:
    """Return a digest that is equal for counts with equal meaning.

    The name is part of the meaning, because it is the topic of the count's events.
    """
    groups = condition.within, condition.forest
    clauses = condition.joined, condition.roster, condition.unknown
    return digest((condition.over, condition.topic, condition.quota, *groups, *clauses))


# --- in words ----------------------------------------------------------------------------------------


def describe(condition: CountCondition) -> dict[str, str]:
    """Return the parts of a count as text, by name, for the comparison of revisions."""
    return {
        "state that is counted": condition.over.name,
        "start": f"at least {_amount(condition.quota.least)}",
        "end": f"fewer than {_amount(condition.quota.fewer)}",
        "scope": _scope(condition),
        "roster": "" if condition.roster is None else f"{len(condition.roster)} members",
        "unknown members": condition.unknown,
    }


def explain(condition: CountCondition) -> Iterator[str]:
    """Yield an explanation of a count, line by line."""
    words = describe(condition)
    yield f"count {condition.name} over {condition.over.name}, evaluated in the stage after it"
    yield f"  starts    {words['start']}" + (f" of {words['roster']}" if condition.roster is not None else "")
    yield f"  ends      {words['end']}" + ("; reports each member that joins" if condition.joined else "")
    yield f"  scopes    {_scope(condition)}"
    yield "  looks at  starts and ends alone, no reading"
    yield f"  unknown   {_UNKNOWN[condition.unknown]}"
    if condition.waits:
        yield "  waits     for the watermark, because its input has timers"
    yield "  keeps     the active members and their starts, of groups that have any"
    if not condition.settled:
        yield "  shuffle   all events go to one shard: a member may end in another group than it started"


_UNKNOWN = {
    "left": "an unknown member does not count, and the total is one less",
    "kept": "an unknown member counts as it was last known",
    "spreads": "the count is unknown where unknown members decide it",
}


def _amount(share: CountShare) -> str:
    return f"{float(share.amount * 100):g} % of the roster" if share.of_all else str(share.amount)


def _scope(condition: CountCondition) -> str:
    if condition.within:
        return f"one for each {' and '.join(condition.within)}"
    return "one for everything" if condition.forest is None else f"{len(condition.forest.regions)} regions"
