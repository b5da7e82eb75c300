"""Check relations: the members, the measure, and the ranges in which a relation starts and ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import DefinitionError, did_you_mean
from ...lang.condition import Caution
from ...lang.context import Context
from ...lang.ops import Call, MemberAttribute, Not, Statement, Trigger, place_of
from ...lang.typed import NameScope, Parameters, Typed, TypedQuantity
from ...lang.types import of_attribute, predicate
from ...model.folder import Folder
from ...model.instant import SECOND
from ...model.relation import LENGTHS, Pairs, ReadingRange, Relation, Setting, Term, Test, Tie
from ...model.relation import Participant as Watched
from ...model.scope import join_values
from ...model.topic import RESERVED, Attribute, Topic
from ...model.unit import UNITS
from ..checks import naming, require_order
from .condition import RelationCondition
from .declared import NUMERIC, declared, group, pairs, route
from .linear import Part, measure_of, proportion, scale_range
from .syntax import DeclareGroup, DeclareRoute, DefineRelation

_METRE, _TIME = UNITS["m"], UNITS["s"]


@dataclass(frozen=True)
class RelationContext:
    """The topics, parameters, groups and routes to which statements about relations may refer."""

    topics: Mapping[str, Topic]
    parameters: Parameters
    groups: Mapping[str, tuple[Watched, ...]]
    routes: Mapping[str, tuple[Term, ...]]
    folder: Folder


def check(statements: Sequence[Statement], context: Context) -> list[RelationCondition]:
    """Check statements and return the relations that they define. Raise a `DefinitionError` at the first
    mistake."""
    by_name = {topic.name: topic for topic in context.topics}
    groups: dict[str, tuple[Watched, ...]] = {}
    routes: dict[str, tuple[Term, ...]] = {}
    for statement in statements:
        if isinstance(statement, (DeclareGroup, DeclareRoute)) and statement.name in {**groups, **routes}:
            message = f"'{statement.name}' is declared twice"
            raise DefinitionError(message, statement.at, hint="Rename one of them.")
        if isinstance(statement, DeclareGroup):
            groups[statement.name] = tuple(group(statement, by_name, context.folder))
        elif isinstance(statement, DeclareRoute):
            routes[statement.name] = tuple(route(statement, by_name, context.folder))
    known = RelationContext(by_name, context.parameters, groups, routes, context.folder)
    defined = [statement for statement in statements if isinstance(statement, DefineRelation)]
    return [_check_relation(statement, known) for statement in defined]


# --- relations ---------------------------------------------------------------------------------


RelationOver = tuple[Relation, tuple[Topic, ...]]
"""A relation, and the topics of its members."""


def _check_relation(statement: DefineRelation, known: RelationContext) -> RelationCondition:
    """Check the statement of a relation."""
    with naming(statement.name):
        require_order(statement.delivery, statement.at)
        relation, listens = _best(statement, known) if statement.best else _check_comparison(statement, known)
        _check_strategy(statement, relation)
        topic = _output_topic(statement, relation)
        settings = tuple(replace(setting, word=str(setting.word)) for setting in statement.settings)
        using, delivery = statement.using, statement.delivery
        return RelationCondition(statement.name, relation, listens, using, delivery, topic, settings)


def _best(statement: DefineRelation, known: RelationContext) -> RelationOver:
    """Return the relation that reports the quickest of several routes. [B65]"""
    if len(statement.best) < 2:
        raise DefinitionError("'best of' needs at least two routes", statement.at)
    for name in statement.best:
        if statement.best.count(name) > 1:
            raise DefinitionError(f"'best of' names '{name}' twice", place_of(name, statement.at))
    _refuse(statement, roles=True, accuracy=True)
    terms = tuple(declared(name, known.routes, "route", statement.at) for name in statement.best)
    members = tuple(dict.fromkeys(term.member for term_list in terms for term in term_list))
    ties, every = (Tie(None, members, terms),), Test(ReadingRange())
    names = tuple(map(str, statement.best))
    relation = Relation("best", every, every, ties, names=names, by=statement.by / SECOND)
    return relation, _topics(members, known)


def _topics(members: Iterable[Watched], known: RelationContext) -> tuple[Topic, ...]:
    """Return the topics of members, each once."""
    return tuple(known.topics[name] for name in dict.fromkeys(member.topic for member in members))


def _refuse(statement: DefineRelation, *, roles: bool = False, accuracy: bool = False) -> None:
    """Raise a `DefinitionError` if the statement has roles or an accuracy that its measure does not allow."""
    if roles and (statement.roles or statement.pairs is not None):
        message = "roles and pairs are for relationships of two"
        raise DefinitionError(message, statement.at, hint="Leave them out: the others are named.")
    if accuracy and statement.accuracy is not None:
        raise DefinitionError("'accuracy' is for distances", place_of(statement.accuracy, statement.at))


def _check_comparison(statement: DefineRelation, known: RelationContext) -> RelationOver:
    """Return the relation of a measure that is compared with numbers."""
    assert statement.enter is not None
    roles = _roles(statement, known)
    scope = NameScope(None, known.parameters, _members(roles), lambda call: _measure(call, roles, known))
    when, at = statement.enter.when, statement.enter.at
    parts, within = measure_of(predicate(when, scope), at or statement.at)
    leave = statement.exit or Trigger(when.arg if isinstance(when, Not) else Not(when, at), 0, (), at)
    others, beyond = measure_of(predicate(leave.when, scope), leave.at or statement.at)
    ratio = proportion(parts, others)
    if ratio is None:
        message = "'until' is about another measure than 'when'"
        hint = "Compare the same distance, spread or sum with another number."
        raise DefinitionError(message, leave.at or statement.at, hint=hint)
    if within.low > within.high:
        raise DefinitionError("nothing can satisfy this test", statement.enter.at or statement.at)
    enter, exit = Test(within, statement.enter.hold), Test(scale_range(beyond, ratio), leave.hold)
    return _tie(statement, roles, parts, (enter, exit), known)


def _roles(statement: DefineRelation, known: RelationContext) -> dict[str, Topic]:
    """Return the topic of each role. A relation has no roles, or two."""
    roles: dict[str, Topic] = {}
    for role, topic in statement.roles:
        if role in roles:
            raise DefinitionError(f"two roles are named '{role}'", place_of(role, statement.at))
        if role in RESERVED | {"distance", "value"}:
            raise DefinitionError(f"a role cannot be named '{role}'", place_of(role, statement.at))
        roles[str(role)] = declared(topic, known.topics, "topic", statement.at)
    if roles and len(roles) != 2:
        raise DefinitionError(
            "a relationship is between two; more of them are a group",
            statement.at,
            hint='As in: group Team of User ("ann", "bob", "eve")   relate Near all of Team within 100 m',
        )
    if statement.pairs is not None and not roles:
        hint = "As in: relate Meet (a User, b User) pairs …"
        raise DefinitionError("pairs need two roles", statement.at, hint=hint)
    return roles


def _members(roles: Mapping[str, Topic]) -> dict[str, dict[str, Typed | str]]:
    """Return the attributes of each role as expressions may name them.

    A text in the place of a type is the reason why the attribute cannot be used.
    """
    found: dict[str, dict[str, Typed | str]] = {}
    for role, topic in roles.items():
        found[role] = {}
        for attribute in topic.attributes:
            typed = of_attribute(attribute)
            if isinstance(typed, TypedQuantity):
                core = MemberAttribute(role, attribute.name)
                found[role][attribute.name] = TypedQuantity(core, typed.unit, difference=typed.difference)
            else:
                found[role][attribute.name] = f"it is {attribute.kind}, and a relationship compares numbers"
    return found


def _measure(call: Call, roles: Mapping[str, Topic], known: RelationContext) -> TypedQuantity:
    """Return the type of a call of ``distance``, ``spread``, ``radius`` or ``travel_time``."""
    match call.function:
        case "distance":
            if sorted(call.args) != sorted(roles) or call.around is not None:
                names = f"distance({', '.join(roles)})" if roles else "relate Meet (a User, b User) …"
                raise DefinitionError("a distance is between the two roles", call.at, hint=f"Write: {names}")
            return TypedQuantity(MemberAttribute("distance", ""), _METRE)
        case "spread":
            (name,) = _one_argument(call, "group")
            declared(name, known.groups, "group", call.at)
            return TypedQuantity(MemberAttribute("spread", name), _METRE)
        case "radius":
            return TypedQuantity(MemberAttribute("radius", _radius(call, known)), _METRE)
        case _:
            (name,) = _one_argument(call, "route")
            declared(name, known.routes, "route", call.at)
            return TypedQuantity(MemberAttribute("travel_time", name), _TIME)


def _one_argument(call: Call, what: str) -> tuple[str, ...]:
    """Return the only argument of a call, in a tuple."""
    if len(call.args) != 1 or call.around is not None:
        raise DefinitionError(f"{call.function}(…) is of one {what}", call.at)
    return call.args


def _radius(call: Call, known: RelationContext) -> str:
    """Return the name of a radius as a measure: the group, the number of members, and the centre."""
    name, *rest = call.args
    members = [member.source for member in declared(name, known.groups, "group", call.at)]
    if len(rest) > 1 or not all(number.isdecimal() for number in rest):
        hint = f'As in: radius({name}, 3), radius({name}, 3, "{members[0]}")'
        raise DefinitionError("radius(…) is of a group, a number and a source", call.at, hint=hint)
    least = int(rest[0]) if rest else len(members)
    if not 2 <= least <= len(members):
        message = f"{least} of '{name}' cannot gather: it has {len(members)} sources"
        hint = f"Take from 2 to {len(members)}."
        raise DefinitionError(message, place_of(rest[0], call.at) if rest else call.at, hint=hint)
    if call.around is not None and call.around not in members:
        message = f"'{call.around}' is not of group '{name}'"
        hint = did_you_mean(call.around, members) or f"It has {', '.join(members)}."
        raise DefinitionError(message, place_of(call.around, call.at), hint=hint)
    return " ".join([name, str(least), *([] if call.around is None else [call.around])])


Roles = dict[str, Topic]
Parts = dict[Part, float]
Tests = tuple[Test, Test]


def _tie(
    statement: DefineRelation, roles: Roles, parts: Parts, tests: Tests, known: RelationContext
) -> RelationOver:
    """Return the relation of a measure (`parts`) that is compared with the ranges of `tests`."""
    owners = {member.owner for member, _ in parts}
    if owners & set(LENGTHS):
        if len(parts) > 1 or any(reciprocal for _, reciprocal in parts):
            raise DefinitionError("a distance is compared with a number alone", statement.at)
        (((member, _), scale),) = parts.items()
        enter, exit = (Test(scale_range(test.within, scale), test.hold) for test in tests)
        if member.owner in ("spread", "radius"):
            return _group_relation(statement, member, enter, exit, known)
        listens = tuple(dict.fromkeys(roles.values()))
        accuracy = _accuracy(statement, listens)
        names = tuple(roles)
        if statement.pairs is not None:
            named = list(pairs(statement, roles, known.folder))
            first, second = (topic.name for topic in roles.values())
            ties = Pairs((first, second), tuple(a for a, _ in named), tuple(b for _, b in named))
            return Relation("distance", enter, exit, ties, names=names, accuracy=accuracy), listens
        if not math.isfinite(enter.within.high):
            message = "between all sources, only a distance below some number can start a relationship"
            hint = 'Name the pairs: pairs ("ann", "bob"), or a table: pairs "pairs.csv"'
            raise DefinitionError(message, statement.enter.at if statement.enter else statement.at, hint=hint)
        first, second = (topic.name for topic in roles.values())
        return Relation("distance", enter, exit, None, (first, second), names, accuracy), listens
    _refuse(statement, accuracy=True)
    return _sum(statement, roles, parts, tests, known)


def _group_relation(
    statement: DefineRelation, member: MemberAttribute, enter: Test, exit: Test, known: RelationContext
) -> RelationOver:
    """Return the relation of all members of a group, or of a number of them within a radius of one. [B59]"""
    _refuse(statement, roles=True)
    name, *least = member.name.split(" ", 2)
    members = known.groups[name]
    listens = _topics(members, known)
    ties, accuracy = (Tie(name, members),), _accuracy(statement, listens)
    if member.owner == "spread":
        return Relation("spread", enter, exit, ties, accuracy=accuracy), listens
    quorum, around = int(least[0]), least[1] if len(least) > 1 else None
    return Relation("radius", enter, exit, ties, accuracy=accuracy, quorum=quorum, around=around), listens


def _accuracy(statement: DefineRelation, topics: Sequence[Topic]) -> str | None:
    """Return the attribute with the accuracy of locations, in metres, or `None`. Each topic must have this
    attribute."""
    if statement.accuracy is None:
        return None
    for topic in topics:
        attribute = topic.by_name.get(statement.accuracy)
        if attribute is None or attribute.kind not in NUMERIC:
            raise DefinitionError(
                f"topic '{topic.name}' has no number '{statement.accuracy}' that could say how good a fix is",
                place_of(statement.accuracy, statement.at),
                hint=f"Declare it: topic {topic.name} ({statement.accuracy} float m)",
            )
        if attribute.unit is not None and UNITS[attribute.unit] != _METRE:
            at = place_of(statement.accuracy, statement.at)
            raise DefinitionError(f"'{statement.accuracy}' must be in metres", at)
    return str(statement.accuracy)


def _sum(
    statement: DefineRelation, roles: Roles, parts: Parts, tests: Tests, known: RelationContext
) -> RelationOver:
    """Return the relation of a sum of attributes of two members, or of the travel times of routes."""
    of_roles = [member for member, _ in parts if member.owner in roles]
    if of_roles and len(of_roles) < len(parts):
        raise DefinitionError("attributes of roles and times of routes do not mix", statement.at)
    if not of_roles:
        _refuse(statement, roles=True)
        terms = []
        for (member, reciprocal), scale in parts.items():
            if reciprocal:
                raise DefinitionError("a time is not divided by", statement.at)
            terms += [Term(t.member, t.scale * scale, True) for t in known.routes[member.name]]
        members = tuple(dict.fromkeys(term.member for term in terms))
        if len(members) < len(terms):
            scales = {m: math.fsum(t.scale for t in terms if t.member == m) for m in members}
            terms = [Term(member, scale, True) for member, scale in scales.items()]
        return Relation("total", *tests, (Tie(None, members, (tuple(terms),)),)), _topics(members, known)
    if statement.pairs is None:
        hint = 'As in: pairs ("ann", "bob"), or a table: pairs "pairs.csv"'
        raise DefinitionError("attributes are compared of pairs that are named", statement.at, hint=hint)
    ties = []
    for a, b in pairs(statement, roles, known.folder):
        sources = dict(zip(roles, (a, b), strict=True))
        terms = [
            Term(Watched(roles[m.owner].name, sources[m.owner], m.name), scale, reciprocal)
            for (m, reciprocal), scale in parts.items()
        ]
        members = tuple(dict.fromkeys(term.member for term in terms))
        ties.append(Tie(join_values((a, b)), members, (tuple(terms),), (a, b)))
    relation = Relation("total", *tests, tuple(ties), names=tuple(roles))
    return relation, tuple(dict.fromkeys(roles.values()))


# --- output and strategy --------------------------------------------------------------------------


def _output_topic(statement: DefineRelation, relation: Relation) -> Topic:
    """Return the topic of a relation's events, with the members and the measured value as attributes."""
    members = () if relation.kind == "best" else relation.names
    word = relation.measure
    unit = "m" if relation.kind in LENGTHS else None if relation.names and relation.kind == "total" else "s"
    texts = (Attribute(name, "text") for name in members)
    return Topic(statement.name, (*texts, Attribute(word, "float", unit)))


_SERVES = {
    "range_ring": "distance", "parallel_line": "distance", "centre_of_mass": "spread", "counting": "radius",
    "hierarchy": "total",
}  # fmt: skip


def _check_strategy(statement: DefineRelation, relation: Relation) -> None:
    """Check that the strategy in `using` can evaluate the relation, and check its settings."""
    if statement.using is None:
        return
    kind = "total" if relation.kind == "best" else relation.kind
    if _SERVES[statement.using] != kind:
        strategies = [name for name, serves in _SERVES.items() if serves == kind]
        message = f"'{statement.using}' cannot watch this relationship"
        raise DefinitionError(message, statement.at, hint=f"Take {' or '.join(strategies)}.")
    at = place_of(statement.using, statement.at)
    if statement.delivery.wait is not None:
        why = "agents take readings as they arrive, so 'using' and 'ordered' exclude each other"
        hint = "Leave out 'using', and one broker watches it in order; or leave out 'ordered'."
        raise DefinitionError(why, at, hint=hint)
    if relation.enter.hold or relation.exit.hold:
        why = "agents do not wait, so 'using' and 'for' exclude each other"
        raise DefinitionError(why, at, hint="Leave out 'using', and one broker watches it.")
    for i, setting in enumerate(statement.settings):
        if any((setting.word, setting.of) == (before.word, before.of) for before in statement.settings[:i]):
            raise DefinitionError(f"'{setting.word}' is given twice", place_of(setting.word, statement.at))
        _check_setting(statement, statement.using, setting, relation)


_SETTINGS = {
    "range_ring": ("volatility", "enlarged"), "parallel_line": ("volatility",), "hierarchy": ("volatility",),
}  # fmt: skip


def _check_setting(statement: DefineRelation, using: str, setting: Setting, relation: Relation) -> None:
    """Check a setting of a strategy."""
    word, at = setting.word, place_of(setting.word, statement.at)
    if word not in (known := _SETTINGS.get(using, ())):
        hint = did_you_mean(word, known) or f"It has {' and '.join(known) or 'none'}."
        raise DefinitionError(f"'{using}' has no setting '{word}'", at, hint=hint)
    if word == "enlarged":
        if setting.of is not None or not 1 <= setting.value < math.inf:
            message = "rings are enlarged by a number from 1 on, both alike"
            raise DefinitionError(message, at, hint="Write: enlarged 1.5")
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


def cautions(statement: DefineRelation, checked: RelationCondition, _context: Context) -> Iterator[Caution]:
    """Yield warnings about a relation that is probably a mistake."""
    relation = checked.relation
    enter, leave = relation.enter.within, relation.exit.within
    if relation.kind == "best":
        return
    if relation.ties is not None and relation.kind == "distance" and enter.high < 0:
        yield Caution(f"'{statement.name}' can never start: no distance is below 0", statement.at)
    if max(enter.low, leave.low) <= min(enter.high, leave.high):
        yield Caution(
            f"'{statement.name}' can start and end by the same measure, and so goes on and off with every "
            "reading",
            statement.at,
            "Leave a gap: when distance(a, b) <= 10 m until distance(a, b) >= 50 m",
        )
