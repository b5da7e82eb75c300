"""Checked correlations of states become machines and operators, of a stage after those of what they hear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from ...lang.condition import Aligned, Condition
from ...lang.correlation.states import labels
from ...lang.ops import Truth
from ...machines.interval import Intervals
from ...model.allen import Allen
from ...model.event import Event
from ...model.instant import show_duration
from ...model.qos import TIMELY
from ...model.scope import SEPARATOR, quoted
from ...model.topic import Topic
from .. import columns, scalar
from ..operator import SCOPE, SINCE, STATUS, Keys, Operator, digest, told_as

FAMILY = "intervals"


def operators(some: Iterable[Aligned], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each."""
    return [_operator(one) for one in some]


def _operator(one: Aligned) -> Operator:
    run = machine(one)
    scopings = {place.topic.name: columns.scoping(place) for place in _places(one)}

    def keyed(topic: str, batch: pa.RecordBatch) -> Keys:
        codes, keys = scopings[topic](batch)[-1]
        return Keys(codes, keys.to_pylist())

    return Operator(
        family=FAMILY,
        machine=run,
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=((),),
        looks_at=dict.fromkeys(run.topics, frozenset()),
        keyed=keyed if one.per and one.settled else None,
        key=(FAMILY, digest(one.name)),
        heard=frozenset(run.topics),
        recounts=True,
    )


def machine(one: Aligned) -> Intervals:
    """The machine of a correlation of states."""
    return Intervals(
        members=tuple(map(told_as, one.over)),
        name=one.name,
        says=(STATUS, SCOPE, SINCE),
        labels=tuple(labels(topic.name) for topic in one.over),
        relation=one.relation,
        within=one.within,
        near=one.near,
        groups=tuple(map(_group, _places(one))),
        per=one.per,
        shown=_shown,
    )


def _shown(scopes: Sequence[str]) -> str | None:
    """Scopes that meet with a comma between them; one that has a comma itself stands in quotes.

    >>> _shown(["s1", "s2"]), _shown(["s1", "lab,3"]), _shown(["", ""])
    ('s1,s2', 's1,"lab,3"', None)
    """
    return SEPARATOR.join(quoted(one) for one in scopes if one) or None


def _places(one: Aligned) -> list[Condition]:
    """Where what each condition tells lies, as conditions have it."""
    keys = (one.per,) if one.per else ()
    always, never = Truth(True), Truth(False)
    return [Condition(one.name, told_as(topic), always, never, keys, None, TIMELY) for topic in one.over]


def _group(place: Condition) -> Callable[[Event], str | None]:
    chain = scalar.chain(place)

    def group(event: Event) -> str | None:
        found = chain(event)
        return None if found is None else found[-1]

    return group


def meaning(one: Aligned) -> str:
    """Equal for correlations that mean the same; what they tell has their name."""
    return digest((one.over, one.topic, one.relation, one.within, one.near, one.per))


# --- in words ----------------------------------------------------------------------------------------


def in_words(one: Aligned) -> dict[str, str]:
    """What a correlation of states says, to tell what has changed."""
    return {
        "conditions": ", ".join(topic.name for topic in one.over),
        "relation": one.relation,
        "time apart": "" if one.within is None else show_duration(one.within),
        "distance": "" if one.near == math.inf else f"{one.near:g} m",
        "scope": ", ".join(one.per),
    }


def explained(some: Sequence[Aligned]) -> Iterator[str]:
    """The plan of correlations of states, line by line."""
    return ("\n".join(_plan(one)) for one in some)


def _plan(one: Aligned) -> Iterator[str]:
    names = [topic.name for topic in one.over]
    yield f"correlation {one.name} of {', '.join(names)}, which it hears in a stage after them"
    if one.momentary:
        yield f"  tells     once, {_KNOWN[one.relation].format(*names)}"
    else:
        yield "  starts    when the last of them starts"
        yield "  ends      when the first of them ends"
    if one.within is not None:
        yield f"  where     {_APART[one.relation].format(*names)} less than {show_duration(one.within)} apart"
    if one.near < math.inf:
        yield f"  near      each pair started less than {one.near:g} m apart"
    if one.per:
        yield f"  scopes    those that agree in {' and '.join(one.per)}"
    yield "  looks at  starts and ends alone, no reading"
    yield "  waits     until a moment is over: what ends as another starts does not hold with it"
    over = one.relation == "before" or (one.relation == "ends" and one.within is not None)
    yield "  keeps     what holds, with where it started" + (_OVER if over else "")
    if not (one.per and one.settled):
        yield "  shuffle   all meet in one place"


_OVER = "; of what is over the last of each scope, as long as that"
_KNOWN: dict[Allen, str] = {
    "overlaps": "when {0} ends while {1} holds that started later",
    "during": "when {0} ends while {1} holds that started earlier",
    "before": "when {1} starts after {0} has ended",
    "starts": "when {0} ends while {1} holds that started with it",
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
