"""Checking relationships: who takes part, what is measured, and the ranges in which it starts and ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import DefinitionError, Place, did_you_mean
from ...model.folder import Folder
from ...model.instant import SECOND
from ...model.relation import LENGTHS, Interval, Pairs, Relation, Setting, Term, Test, Tie
from ...model.relation import Member as Watched
from ...model.scope import listed
from ...model.topic import RESERVED, Attribute, Topic
from ...model.unit import UNITS
from ..condition import Caution, Related
from ..kinds import Parameters, Quantity, Scope, Typed
from ..ops import Call, DeclareGroup, DeclareRoute, Member, Not, Relate, Statement, Turn, place_of
from ..types import of_attribute, predicate
from .declared import NUMERIC, group, pairs, route, topic_named
from .linear import Part, measured, proportion, scaled

_METRE, _TIME = UNITS["m"], UNITS["s"]


@dataclass(frozen=True)
class Known:
    """What the relationships of a definition may speak of."""

    topics: Mapping[str, Topic]
    parameters: Parameters
    groups: Mapping[str, tuple[Watched, ...]]
    routes: Mapping[str, tuple[Term, ...]]
    folder: Folder


def relations(
    statements: Sequence[Statement], topics: Sequence[Topic], parameters: Parameters, folder: Folder
) -> tuple[Related, ...]:
    """The relationships of a definition, checked."""
    by_name = {topic.name: topic for topic in topics}
    groups: dict[str, tuple[Watched, ...]] = {}
    routes: dict[str, tuple[Term, ...]] = {}
    for one in statements:
        if isinstance(one, (DeclareGroup, DeclareRoute)) and one.name in {**groups, **routes}:
            raise DefinitionError(f"'{one.name}' is declared twice", one.at, hint="Rename one of them.")
        if isinstance(one, DeclareGroup):
            groups[one.name] = tuple(group(one, by_name, folder))
        elif isinstance(one, DeclareRoute):
            routes[one.name] = tuple(route(one, by_name, folder))
    known = Known(by_name, parameters, groups, routes, folder)
    return tuple(_related(one, known) for one in statements if isinstance(one, Relate))


# --- relationships -----------------------------------------------------------------------------


def _related(one: Relate, known: Known) -> Related:
    try:
        if one.delivery.wait is None and one.delivery.late == "apply":
            raise DefinitionError(
                "'late apply' needs 'ordered': without it nothing is ever late",
                one.at,
                hint="Add how long to wait, such as: ordered 30 s",
            )
        relation, listens = _best(one, known) if one.best else _compared(one, known)
        _check_strategy(one, relation)
        published = _published(one, relation)
        settings = tuple(replace(setting, word=str(setting.word)) for setting in one.settings)
        return Related(one.name, relation, listens, one.using, one.delivery, published, settings)
    except DefinitionError as error:
        if error.place is not None:
            raise
        raise DefinitionError(f"in '{one.name}': {error.message}", hint=error.hint) from None


def _best(one: Relate, known: Known) -> tuple[Relation, tuple[Topic, ...]]:
    """Which of several routes is quickest.  [B65]"""
    if len(one.best) < 2:
        raise DefinitionError("'best of' needs at least two routes", one.at)
    for name in one.best:
        if one.best.count(name) > 1:
            raise DefinitionError(f"'best of' names '{name}' twice", place_of(name, one.at))
    _refuse(one, roles=True, accuracy=True)
    terms = tuple(_named(name, known.routes, "route", one.at) for name in one.best)
    members = tuple(dict.fromkeys(term.member for some in terms for term in some))
    tie = Tie(None, members, terms)
    every = Test(Interval())
    relation = Relation("best", every, every, (tie,), names=tuple(map(str, one.best)), by=one.by / SECOND)
    return relation, _topics(members, known)


def _named(name: str, known: Mapping[str, tuple], what: str, at: Place | None) -> tuple:  # type: ignore[type-arg]
    if name not in known:
        has = f"declared: {', '.join(known)}" if known else "none is declared"
        raise DefinitionError(
            f"unknown {what} '{name}'; {has}", place_of(name, at), hint=did_you_mean(name, known)
        )
    return known[name]


def _topics(members: Iterable[Watched], known: Known) -> tuple[Topic, ...]:
    return tuple(known.topics[name] for name in dict.fromkeys(member.topic for member in members))


def _refuse(one: Relate, *, roles: bool = False, accuracy: bool = False) -> None:
    if roles and (one.roles or one.pairs is not None):
        raise DefinitionError(
            "roles and pairs are for relationships of two",
            one.at,
            hint="Leave them out: the others are named.",
        )
    if accuracy and one.accuracy is not None:
        raise DefinitionError("'accuracy' is for distances", place_of(one.accuracy, one.at))


def _compared(one: Relate, known: Known) -> tuple[Relation, tuple[Topic, ...]]:
    """A measure that is compared with numbers."""
    assert one.enter is not None
    roles = _roles(one, known)
    scope = Scope(None, known.parameters, _members(roles), lambda call: _measured(call, roles, known))
    leave = one.exit or Turn(Not(one.enter.when, one.enter.at), 0, (), one.enter.at)
    parts, within = measured(predicate(one.enter.when, scope), one.enter.at or one.at)
    if one.exit is None and isinstance(one.enter.when, Not):
        leave = Turn(one.enter.when.arg, 0, (), one.enter.at)
    others, beyond = measured(predicate(leave.when, scope), leave.at or one.at)
    ratio = proportion(parts, others)
    if ratio is None:
        raise DefinitionError(
            "'until' is about another measure than 'when'",
            leave.at or one.at,
            hint="Compare the same distance, spread or sum with another number.",
        )
    if within.low > within.high:
        raise DefinitionError("nothing can satisfy this test", one.enter.at or one.at)
    enter, exit = Test(within, one.enter.hold), Test(scaled(beyond, ratio), leave.hold)
    return _tied(one, roles, parts, (enter, exit), known)


def _roles(one: Relate, known: Known) -> dict[str, Topic]:
    roles: dict[str, Topic] = {}
    for role, topic in one.roles:
        if role in roles:
            raise DefinitionError(f"two roles are named '{role}'", place_of(role, one.at))
        if role in RESERVED | {"distance", "value"}:
            raise DefinitionError(f"a role cannot be named '{role}'", place_of(role, one.at))
        roles[str(role)] = topic_named(topic, known.topics, one.at)
    if roles and len(roles) != 2:
        raise DefinitionError(
            "a relationship is between two; more of them are a group",
            one.at,
            hint='As in: group Team of User ("ann", "bob", "eve")   relate Near all of Team within 100 m',
        )
    if one.pairs is not None and not roles:
        raise DefinitionError(
            "pairs need two roles", one.at, hint="As in: relate Meet (a User, b User) pairs …"
        )
    return roles


def _members(roles: Mapping[str, Topic]) -> dict[str, dict[str, Typed | str]]:
    """What can be said of the two: their numeric attributes."""
    found: dict[str, dict[str, Typed | str]] = {}
    for role, topic in roles.items():
        found[role] = {}
        for attribute in topic.attributes:
            typed = of_attribute(attribute)
            if isinstance(typed, Quantity):
                core = Member(role, attribute.name)
                found[role][attribute.name] = Quantity(core, typed.unit, difference=typed.difference)
            else:
                found[role][attribute.name] = f"it is {attribute.kind}, and a relationship compares numbers"
    return found


def _measured(call: Call, roles: Mapping[str, Topic], known: Known) -> Quantity:
    """What ``distance``, ``spread`` and ``travel_time`` stand for."""
    match call.function:
        case "distance":
            if sorted(call.args) != sorted(roles) or call.around is not None:
                names = f"distance({', '.join(roles)})" if roles else "relate Meet (a User, b User) …"
                raise DefinitionError("a distance is between the two roles", call.at, hint=f"Write: {names}")
            return Quantity(Member("distance", ""), _METRE)
        case "spread":
            (name,) = _one_argument(call, "group")
            _named(name, known.groups, "group", call.at)
            return Quantity(Member("spread", name), _METRE)
        case "radius":
            return Quantity(Member("radius", _radius(call, known)), _METRE)
        case _:
            (name,) = _one_argument(call, "route")
            _named(name, known.routes, "route", call.at)
            return Quantity(Member("travel_time", name), _TIME)


def _one_argument(call: Call, what: str) -> tuple[str, ...]:
    if len(call.args) != 1 or call.around is not None:
        raise DefinitionError(f"{call.function}(…) is of one {what}", call.at)
    return call.args


def _radius(call: Call, known: Known) -> str:
    """Of whom a radius is: the group, how many of it, and around whom, in one name."""
    name, *rest = call.args
    members = [member.source for member in _named(name, known.groups, "group", call.at)]
    if len(rest) > 1 or not all(number.isdecimal() for number in rest):
        raise DefinitionError(
            "radius(…) is of a group, a number and a source",
            call.at,
            hint=f'As in: radius({name}, 3), radius({name}, 3, "{members[0]}")',
        )
    least = int(rest[0]) if rest else len(members)
    if not 2 <= least <= len(members):
        raise DefinitionError(
            f"{least} of '{name}' cannot gather: it has {len(members)} sources",
            place_of(rest[0], call.at) if rest else call.at,
            hint=f"Take from 2 to {len(members)}.",
        )
    if call.around is not None and call.around not in members:
        raise DefinitionError(
            f"'{call.around}' is not of group '{name}'",
            place_of(call.around, call.at),
            hint=did_you_mean(call.around, members) or f"It has {', '.join(members)}.",
        )
    return " ".join([name, str(least), *([] if call.around is None else [call.around])])


def _tied(
    one: Relate, roles: dict[str, Topic], parts: dict[Part, float], tests: tuple[Test, Test], known: Known
) -> tuple[Relation, tuple[Topic, ...]]:
    owners = {member.owner for member, _ in parts}
    if owners & set(LENGTHS):
        if len(parts) > 1 or any(reciprocal for _, reciprocal in parts):
            raise DefinitionError("a distance is compared with a number alone", one.at)
        (((member, _), scale),) = parts.items()
        enter, exit = (Test(scaled(test.within, scale), test.hold) for test in tests)
        if member.owner == "spread":
            _refuse(one, roles=True)
            members = known.groups[member.name]
            listens = _topics(members, known)
            accuracy = _accuracy(one, listens)
            tie = Tie(str(member.name), members)
            return Relation("spread", enter, exit, (tie,), accuracy=accuracy), listens
        if member.owner == "radius":
            return _gathered(one, member.name, enter, exit, known)
        listens = tuple(dict.fromkeys(roles.values()))
        accuracy = _accuracy(one, listens)
        names = tuple(roles)
        if one.pairs is not None:
            named = list(pairs(one, roles, known.folder))
            first, second = (topic.name for topic in roles.values())
            ties = Pairs((first, second), tuple(a for a, _ in named), tuple(b for _, b in named))
            return Relation("distance", enter, exit, ties, names=names, accuracy=accuracy), listens
        if not math.isfinite(enter.within.high):
            raise DefinitionError(
                "between all sources, only a distance below some number can start a relationship",
                one.enter.at if one.enter else one.at,
                hint='Name the pairs: pairs ("ann", "bob"), or a table: pairs "pairs.csv"',
            )
        first, second = (topic.name for topic in roles.values())
        return Relation("distance", enter, exit, None, (first, second), names, accuracy), listens
    _refuse(one, accuracy=True)
    return _summed(one, roles, parts, tests, known)


def _gathered(
    one: Relate, of: str, enter: Test, exit: Test, known: Known
) -> tuple[Relation, tuple[Topic, ...]]:
    """So many of a group around one of it.  [B59]"""
    _refuse(one, roles=True)
    name, least, *around = of.split(" ", 2)
    members = known.groups[name]
    listens = _topics(members, known)
    accuracy, quorum = _accuracy(one, listens), int(least)
    ties, whom = (Tie(name, members),), around[0] if around else None
    return Relation("radius", enter, exit, ties, accuracy=accuracy, quorum=quorum, around=whom), listens


def _accuracy(one: Relate, topics: Sequence[Topic]) -> str | None:
    if one.accuracy is None:
        return None
    for topic in topics:
        attribute = topic.by_name.get(one.accuracy)
        if attribute is None or attribute.kind not in NUMERIC:
            raise DefinitionError(
                f"topic '{topic.name}' has no number '{one.accuracy}' that could say how good a fix is",
                place_of(one.accuracy, one.at),
                hint=f"Declare it: topic {topic.name} ({one.accuracy} float m)",
            )
        if attribute.unit is not None and UNITS[attribute.unit] != _METRE:
            raise DefinitionError(f"'{one.accuracy}' must be in metres", place_of(one.accuracy, one.at))
    return str(one.accuracy)


def _summed(
    one: Relate, roles: dict[str, Topic], parts: dict[Part, float], tests: tuple[Test, Test], known: Known
) -> tuple[Relation, tuple[Topic, ...]]:
    """A sum of attributes of the two, or of the times that routes take."""
    of_roles = [member for member, _ in parts if member.owner in roles]
    if of_roles and len(of_roles) < len(parts):
        raise DefinitionError("attributes of roles and times of routes do not mix", one.at)
    if not of_roles:
        _refuse(one, roles=True)
        terms = []
        for (member, reciprocal), scale in parts.items():
            if reciprocal:
                raise DefinitionError("a time is not divided by", one.at)
            terms += [Term(t.member, t.scale * scale, True) for t in known.routes[member.name]]
        members = tuple(dict.fromkeys(term.member for term in terms))
        if len(members) < len(terms):
            terms = [
                Term(member, math.fsum(t.scale for t in terms if t.member == member), True)
                for member in members
            ]
        return Relation("total", *tests, (Tie(None, members, (tuple(terms),)),)), _topics(members, known)
    if one.pairs is None:
        raise DefinitionError(
            "attributes are compared of pairs that are named",
            one.at,
            hint='As in: pairs ("ann", "bob"), or a table: pairs "pairs.csv"',
        )
    ties = []
    for a, b in pairs(one, roles, known.folder):
        sources = dict(zip(roles, (a, b), strict=True))
        terms = [
            Term(Watched(roles[m.owner].name, sources[m.owner], m.name), scale, reciprocal)
            for (m, reciprocal), scale in parts.items()
        ]
        members = tuple(dict.fromkeys(term.member for term in terms))
        ties.append(Tie(listed((a, b)), members, (tuple(terms),), (a, b)))
    relation = Relation("total", *tests, tuple(ties), names=tuple(roles))
    return relation, tuple(dict.fromkeys(roles.values()))


# --- what is told, and how it is watched ---------------------------------------------------------


def _published(one: Relate, relation: Relation) -> Topic:
    """The topic of what is told: who, and what was measured."""
    who = () if relation.kind == "best" else relation.names
    word = relation.measure
    unit = "m" if relation.kind in LENGTHS else None if relation.names and relation.kind == "total" else "s"
    return Topic(one.name, (*(Attribute(name, "text") for name in who), Attribute(word, "float", unit)))


_SERVES = {
    "range_ring": "distance", "parallel_line": "distance", "centre_of_mass": "spread", "counting": "radius",
    "hierarchy": "total",
}  # fmt: skip


def _check_strategy(one: Relate, relation: Relation) -> None:
    if one.using is None:
        return
    kind = "total" if relation.kind == "best" else relation.kind
    if _SERVES[one.using] != kind:
        other = [name for name, serves in _SERVES.items() if serves == kind]
        raise DefinitionError(
            f"'{one.using}' cannot watch this relationship", one.at, hint=f"Take {' or '.join(other)}."
        )
    for is_so, why, hint in (
        (
            one.delivery.wait is not None,
            "agents take readings as they arrive, so 'using' and 'ordered' exclude each other",
            "Leave out 'using', and one broker watches it in order; or leave out 'ordered'.",
        ),
        (
            bool(relation.enter.hold or relation.exit.hold),
            "agents do not wait, so 'using' and 'for' exclude each other",
            "Leave out 'using', and one broker watches it.",
        ),
    ):
        if is_so:
            raise DefinitionError(why, place_of(one.using, one.at), hint=hint)
    for i, setting in enumerate(one.settings):
        if any((setting.word, setting.of) == (before.word, before.of) for before in one.settings[:i]):
            raise DefinitionError(f"'{setting.word}' is given twice", place_of(setting.word, one.at))
        _check_setting(one, one.using, setting, relation)


_SETTINGS = {
    "range_ring": ("volatility", "enlarged"), "parallel_line": ("volatility",), "hierarchy": ("volatility",),
}  # fmt: skip


def _check_setting(one: Relate, using: str, setting: Setting, relation: Relation) -> None:
    word, at = setting.word, place_of(setting.word, one.at)
    if word not in (known := _SETTINGS.get(using, ())):
        hint = did_you_mean(word, known) or f"It has {' and '.join(known) or 'none'}."
        raise DefinitionError(f"'{using}' has no setting '{word}'", at, hint=hint)
    if word == "enlarged":
        if setting.of is not None or not 1 <= setting.value < math.inf:
            raise DefinitionError(
                "rings are enlarged by a number from 1 on, both alike", at, hint="Write: enlarged 1.5"
            )
        return
    is_pair = bool(relation.names) and relation.kind != "best"
    members = {member.source for tie in relation.ties or () for member in tie.members}
    known = relation.names if is_pair else tuple(sorted(members))
    if setting.of not in known or setting.is_source is is_pair or not 0 < setting.value < math.inf:
        example = known[0] if is_pair else f'"{known[0]}"'
        raise DefinitionError(
            f"'volatility' is a number above 0, of one of {', '.join(known[:6])}",
            at,
            hint=f"Write: volatility {example} 3",
        )


def cautions(one: Relate, checked: Related) -> Iterator[Caution]:
    """What is doubtful about a relationship."""
    relation = checked.relation
    enter, leave = relation.enter.within, relation.exit.within
    if relation.kind == "best":
        return
    if relation.ties is not None and relation.kind == "distance" and enter.high < 0:
        yield Caution(f"'{one.name}' can never start: no distance is below 0", one.at)
    if max(enter.low, leave.low) <= min(enter.high, leave.high):
        yield Caution(
            f"'{one.name}' can start and end by the same measure, and so goes on and off with every reading",
            one.at,
            "Leave a gap: when distance(a, b) <= 10 m until distance(a, b) >= 50 m",
        )
