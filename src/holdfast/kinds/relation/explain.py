"""Explain relations as text: the members, the measure, the stored state, the cost in an overlay.

`holdfast explain` prints these texts; pages and tests show them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from ...model.instant import show_duration
from ...model.relation import LENGTHS, ReadingRange, Relation
from ..kind import describe_delivery
from .condition import RelationCondition
from .plan import operators
from .show import show_setting

_MEASURES = {
    "distance": "how far the two are apart",
    "spread": "how far the farthest is from the centre of all",
    "total": "a sum of what each source tells",
    "best": "which sum is the least",
}
SPEEDS = {"walking": 1.4, "cycling": 5.0, "driving": 14.0}
"""The speeds for which `explain` estimates messages, in metres per second."""
NAMED = 6
"""The maximal number of sources that are listed by name."""


def explain_on_spark(relations: Iterable[RelationCondition]) -> Iterator[Iterator[str]]:
    """Yield an explanation of each relation on Spark, line by line."""
    for relation in relations:
        (operator,) = operators([relation])
        shards = "sources that are tied, over however many ties, by a hash (crc32) of the first"
        if operator.keyed is None:
            shards = "one: all sources may come near one another"
        yield chain(explain(relation), [f"  shards    {shards}"])


def describe(condition: RelationCondition) -> dict[str, str]:
    """Return the parts of a relation as text, by name, for the comparison of revisions."""
    relation = condition.relation
    return {
        "who is watched": str(relation.ties or relation.roaming),
        "measure": _measure(relation),
        "start": f"{show_range(relation.enter.within)} for {relation.enter.hold} µs",
        "end": f"{show_range(relation.exit.within)} for {relation.exit.hold} µs",
        "accuracy": relation.accuracy or "",
        "alternatives": f"{relation.names} by {relation.by!r} s" if relation.kind == "best" else "",
        "delivery": describe_delivery(condition.delivery),
    }


def explain(condition: RelationCondition) -> Iterator[str]:
    """Yield an explanation of a relation, line by line."""
    relation, error = condition.relation, ""
    if relation.accuracy:
        error = f", give or take '{relation.accuracy}': only what is certain counts"
    yield f"relationship {condition.name}"
    yield f"  watches   {_who(condition)}"
    yield f"  measures  {_measure(relation)}{error}"
    if relation.kind == "best":
        yield f"  tells     another when it is at least {relation.by:g} s less than the present one"
    else:
        unit = "m" if relation.kind in LENGTHS else condition.topic.attributes[-1].unit or ""
        for word, test in (("starts", relation.enter), ("ends", relation.exit)):
            held = f", for {show_duration(test.hold)}" if test.hold else ""
            yield f"  {word:<9} {show_range(test.within)} {unit}".rstrip() + held
    delivery = "timely: readings of one instant together, once time has passed it"
    if (wait := condition.delivery.wait) is not None:
        delivery = f"ordered: live, readings wait {show_duration(wait)} to be put in order"
    yield f"  delivery  {delivery}"
    yield "  drops     readings of other sources and readings without a location, when they are read"
    grid = "; partners by search in a grid, not all pairs" if relation.ties is None else ""
    yield f"  keeps     the latest reading of each source, and the state of each pair{grid}"
    yield from _overlay(condition)


def _measure(relation: Relation) -> str:
    """Return the description of a measure."""
    if relation.kind != "radius":
        return _MEASURES[relation.kind]
    return f"how far around {relation.around or 'one of them'} {relation.quorum} of them are, with itself"


def _who(condition: RelationCondition) -> str:
    """Return the description of the members of a relation."""
    relation = condition.relation
    if relation.ties is None:
        first, second = relation.roaming or ("", "")
        every = f"every two sources of {first}"
        return every if first == second else f"each source of {first} and of {second}"
    if relation.kind == "best":
        return f"the alternatives {', '.join(relation.names)}"
    count, members = len(relation.ties), len({m for tie in relation.ties for m in tie.members})
    if relation.names:
        return f"{count} pair{'s' * (count != 1)} of {members} sources"
    return f"{members} sources together"


def show_range(bounds: ReadingRange) -> str:
    """Return a range of numbers as text."""
    if math.isinf(bounds.low):
        return f"{'<=' if _round(bounds.high) == bounds.high else '<'} {_round(bounds.high):g}"
    if math.isinf(bounds.high):
        return f"{'>=' if _round(bounds.low) == bounds.low else '>'} {_round(bounds.low):g}"
    return f"in [{bounds.low:g}, {bounds.high:g}]"


def _round(bound: float) -> float:
    """Return the bound as it was written, given a bound that may be the float next to a strict bound.

    Of the bound and its neighbours, the number with the fewest digits is returned.
    """
    adjacent = (math.nextafter(bound, side) for side in (math.inf, -math.inf))
    return min(bound, *adjacent, key=lambda number: len(repr(number)))


# --- evaluation in an overlay ----------------------------------------------------------------------


def _overlay(condition: RelationCondition) -> Iterator[str]:
    """Yield lines that explain where agents run in an overlay and how many messages they exchange."""
    relation = condition.relation
    if relation.ties is None or relation.enter.hold or relation.exit.hold:
        yield "  agents    none: it runs at one broker, to which all readings go; agents watch named sources,"
        yield "            and do not wait"
        return
    yield f"  agents    {_homes(relation)}"
    if condition.settings:
        yield f"  settings  {', '.join(map(show_setting, condition.settings))}: rooms are divided so"
    match relation.kind:
        case "distance":
            yield from _rings(relation, "distance")
        # a member that leaves its ring reports it, the others are polled and answer, and all get new rings
        case "spread":
            size = len(relation.ties[0].members)
            yield from _rings(relation, "spread", (3 * size - 1) / 2)
        case "radius":
            yield "  silent    each two in rings of half of what they are from where one counts the other"
        case _:
            yield "  silent    each while what it tells stays in a range that the mediator gives; all ranges"
            yield "            together are no more than what the sum is from where it matters"


def _homes(relation: Relation) -> str:
    """Return a text with the brokers at which agents start, and the number of agents."""
    beside: Counter[str] = Counter()
    for tie in relation.ties or ():
        terms = [term.member.source for term_list in tie.terms for term in term_list]
        beside.update(terms or [member.source for member in tie.members])
    named = [f"{source} ({count})" if count > 1 else source for source, count in beside.most_common(NAMED)]
    rest = f" and {len(beside) - NAMED} more" if len(beside) > NAMED else ""
    is_mediated = relation.kind != "distance"
    mediator = f", and a mediator beside {next(iter(beside))}" if is_mediated else ""
    return f"{beside.total() + is_mediated}: beside {', '.join(named)}{rest}{mediator}"


def _rings(relation: Relation, measure: str, each: float = 1.0) -> Iterator[str]:
    """Yield lines that explain how far members may move without a message, and the cost.

    ``each`` is the number of messages that one departure from a ring causes.
    """
    near, far = relation.enter.within.high, relation.exit.within.low
    if not (math.isfinite(near) and math.isfinite(far)):
        return
    wide = 10 * max(near, 1.0)
    costs = [
        f"{word} {each * messages_an_hour(wide, near, v):.0f} and {each * messages_an_hour(near, far, v):.0f}"
        for word, v in SPEEDS.items()
    ]
    yield f"  silent    each in a ring of ({measure} - {near:g} m) / 2,"
    yield f"            while it holds of ({far:g} m - {measure}) / 2: a wide band buys silence"
    yield f"  cost      messages an hour with a {measure} of {wide:g} m, and while it holds:"
    yield f"            {', '.join(costs)}"


def messages_an_hour(distance: float, bound: float, speed: float) -> float:
    """Estimate the number of messages per hour that two moving members cause.

    Each member has a ring of half the distance to a bound and reports when it leaves the ring. A member with
    a given ``speed`` in metres per second crosses a ring of r metres in r / speed seconds. The distances are
    in metres.
    """
    ring = abs(distance - bound) / 2
    return math.inf if ring == 0 else 2 * 3600 * speed / ring
