"""Checked counts over states become machines and operators, of a stage after that of what they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...lang.condition import Condition, Tallied
from ...lang.count.check import OWN
from ...lang.ops import Truth
from ...machines.count import Count
from ...model.count import Share
from ...model.event import Event
from ...model.qos import TIMELY
from ...model.topic import Topic
from .. import columns, scalar
from ..keys import joined, shown
from ..operator import RETOLD, SCOPE, SINCE, STATUS, Keys, Operator, digest, told_as

FAMILY = "counts"


def operators(counts: Iterable[Tallied], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each."""
    return [_operator(one) for one in counts]


def _operator(one: Tallied) -> Operator:
    run = machine(one)
    topic = run.topic.name

    def keyed(_topic: str, batch: pa.RecordBatch) -> Keys:
        codes, keys = run.grouping(batch)
        return Keys(codes, keys)

    return Operator(
        family=FAMILY,
        machine=run,
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=((),),
        looks_at={topic: frozenset()},
        keyed=keyed if one.settled and one.within else None,
        key=(FAMILY, digest(one.name)),
        heard=frozenset((topic,)),
        recounts=True,
    )


def machine(one: Tallied) -> Count:
    """The machine of a count."""
    topic = told_as(one.over)
    everywhere = not one.within and one.forest is None
    place = Condition(
        one.name, topic, Truth(True), Truth(False), (one.within,) if one.within else (), one.forest, TIMELY
    )
    chain, scoping = scalar.chain(place), columns.scoping(place)

    def group(event: Event) -> str | None:
        found = chain(event)
        return None if found is None else found[-1]

    def grouping(batch: pa.RecordBatch) -> tuple[NDArray[np.int32], Sequence[str]]:
        codes, keys = scoping(batch)[-1]
        return codes, keys.to_pylist()

    members = None if one.roster is None else {member: _key(at) for member, at in one.roster}
    own = tuple(a.name for a in OWN)
    return Count(
        topic=topic,
        name=one.name,
        says=(STATUS, SCOPE, SINCE),
        own=(own[0], own[1], own[2]),
        quota=one.quota,
        joined=one.joined,
        dead=one.unknown,
        group=group,
        grouping=grouping,
        shown=(lambda _key: None) if everywhere else shown,
        dropped=frozenset((*RETOLD, *own)),
        members=members,
        totals=Counter((members or {}).values()),
        is_timed=one.waits,
    )


def _key(place: tuple[str, ...] | str | None) -> str:
    """A scope of the roster, as the machine knows it."""
    if place is None or isinstance(place, str):
        return place or ""
    return joined(None, place)


def meaning(one: Tallied) -> str:
    """Equal for counts that mean the same; what they tell has their name."""
    return digest(
        (one.over, one.topic, one.quota, one.within, one.forest, one.joined, one.roster, one.unknown)
    )


# --- in words ----------------------------------------------------------------------------------------


def in_words(one: Tallied) -> dict[str, str]:
    """What a count says, to tell what has changed."""
    return {
        "state that is counted": one.over.name,
        "start": f"at least {_amount(one.quota.least)}",
        "end": f"fewer than {_amount(one.quota.fewer)}",
        "scope": _scope(one),
        "roster": "" if one.roster is None else f"{len(one.roster)} members",
        "unknown members": one.unknown,
    }


def explained(counts: Sequence[Tallied]) -> Iterator[str]:
    """The plan of counts, line by line."""
    return ("\n".join(_plan(one)) for one in counts)


def _plan(one: Tallied) -> Iterator[str]:
    said = in_words(one)
    yield f"count {one.name} over {one.over.name}, which it hears in a stage after it"
    yield f"  starts    {said['start']}" + (f" of {said['roster']}" if one.roster is not None else "")
    yield f"  ends      {said['end']}" + ("; tells of whoever joins" if one.joined else "")
    yield f"  scopes    {_scope(one)}"
    yield "  looks at  starts and ends alone, no reading"
    yield f"  unknown   {_UNKNOWN[one.unknown]}"
    if one.waits:
        yield "  waits     until a moment is over, as what it counts speaks by time"
    yield "  keeps     who holds and since when, of scopes in which somebody does"
    if not one.settled:
        yield "  shuffle   all meet in one place: a member may end elsewhere than it started"


_UNKNOWN = {
    "left": "a member that is unknown does not count, and there is one less of them",
    "kept": "a member that is unknown counts as it last was",
    "spreads": "where members that are unknown decide, so is the count",
}


def _amount(share: Share) -> str:
    return f"{float(share.amount * 100):g} % of the roster" if share.of_all else str(share.amount)


def _scope(one: Tallied) -> str:
    if one.within:
        return f"one for each {' and '.join(one.within)}"
    return "one for everything" if one.forest is None else f"{len(one.forest.regions)} regions"
