"""Checking: names are resolved, types and units agree, scopes nest; what is left is the core.

Whatever is wrong raises a `DefinitionError` at its place; what is only doubtful becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import DefinitionError, Place, UsageError, did_you_mean
from ..model.folder import Folder
from ..model.guard import Care
from ..model.qos import Correct
from ..model.query import Function
from ..model.space import Gazetteer
from ..model.table import Table
from ..model.topic import KINDS, RESERVED, Topic
from ..model.unit import UNITS, nearest
from . import hearing, levels, reason, scopes, tables
from .component import check as component
from .component.infer import implicit_topics
from .condition import (
    Aligned,
    Caution,
    Checked,
    Condition,
    Folded,
    Guarded,
    Leveled,
    Tallied,
)
from .correlation import check as correlation
from .correlation import states
from .count import check as count
from .fold import check as fold
from .guarded import guarded
from .infer import implicit_topic, topic_of
from .kinds import Parameters, Quantity, Scope, Typed, Words
from .mute import check as mute
from .ops import (
    Align,
    Case,
    Collide,
    Correlate,
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    Defined,
    Detect,
    Expect,
    Expression,
    Fold,
    Given,
    Ladder,
    Let,
    Mute,
    Number,
    Relate,
    Statement,
    Subscribe,
    Tally,
    Text,
    Truth,
    place_of,
)
from .regions import require_places
from .relation import check as relation
from .types import in_unit_of, of_attribute, predicate, typed, unknown_attribute

if TYPE_CHECKING:
    from .app import App

Literal = float | int | str | bool
S = TypeVar("S", bound=Statement)


def check(
    app: App,
    base: Folder | None = None,
    lets: Mapping[str, Literal] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Checked:
    """What a definition means, or the first thing that is wrong with it.

    ``base`` is the folder that paths start from; ``lets`` gives parameters other values, and ``tables`` is
    taken in the place of the files of tables: Arrow tables or data frames.
    """
    folder = base or (Path(app.file).parent if app.file else Path())
    try:
        found = _checked(app.statements, folder, lets or {}, tables or {})
    except DefinitionError as error:
        if app.text is None or error.text is not None:
            raise
        raise error.located(app.text, app.file) from None
    except RecursionError:
        raise DefinitionError("an expression is nested too deeply", text=app.text, file=app.file) from None
    cautions = tuple(replace(caution, text=app.text, file=app.file) for caution in found.warnings)
    return replace(found, warnings=cautions)


def require_final(app: App, where: str) -> None:
    """Refuse conditions that correct what they have told, where nobody could take it back."""
    for one in correcting(app):
        raise DefinitionError(
            f"'{one.name}' corrects what it has told ('late correct'): {where} cannot take anything back",
            one.at,
            hint="It is late drop, or late apply.",
        ).located(app.text or "", app.file)


def correcting(app: App) -> list[Subscribe]:
    """The conditions that correct what they have told."""
    found = (one for one in app.statements if isinstance(one, Subscribe))
    return [one for one in found if isinstance(one.delivery.late, Correct)]


def _checked(
    statements: Sequence[Statement],
    folder: Folder,
    lets: Mapping[str, Literal],
    given: Mapping[str, Any],
) -> Checked:
    topics = _topics(_unique("topic", _all(DeclareTopic, statements), lambda s: s.topic.name))
    _unique("region", _all(DeclareRegion, statements), lambda s: s.name)
    subscriptions, detectors = _all(Subscribe, statements), _all(Detect, statements)
    correlates = _all(Correlate, statements)
    ladders, relates = _all(Ladder, statements), _all(Relate, statements)
    named: list[Defined] = [s for s in statements if isinstance(s, Defined)]
    _unique("subscription", named, lambda s: s.name)
    parameters = _parameters(_unique("parameter", _all(Let, statements), lambda s: s.name), lets)
    known = scopes.gazetteer(statements, folder)
    require_places(statements, known, parameters)
    if not topics and (short := [s for s in subscriptions if s.topic is None]):
        topics = (implicit_topic(short, parameters),)
    topics = topics or (*implicit_topics(detectors), *correlation.implicit_topics(correlates))
    filters = [s.name for s in subscriptions]
    made = component.components(detectors, topics, parameters, filters, _collide(statements))
    looked_up = tables.tables(
        _unique("table", _all(DeclareTable, statements), lambda s: s.name), folder, given
    )
    here = _Known(topics, parameters, known, folder, looked_up)
    conditions = tuple(_condition(s, here) for s in subscriptions)
    joined = correlation.correlations(correlates, topics, parameters, known)
    related = relation.relations(statements, topics, parameters, folder)
    leveled = tuple(levels.leveled(one, lambda rung: _condition(rung, here)) for one in ladders)
    countable = (*conditions, *made, *joined, *related, *leveled)
    above = hearing.built(
        [s for s in statements if isinstance(s, hearing.Hears)],
        countable,
        lambda one, made: _hearing(one, made, known, folder),
    )
    muted = mute.muted(_all(Mute, statements), (*countable, *above))
    declared = _unique("case", _all(Case, statements), lambda s: s.name)
    cases = tuple(_case(case, topics, (*countable, *above)) for case in declared)
    warnings = [
        caution
        for statement, condition in (
            *zip(subscriptions, conditions, strict=True),
            *(
                pair
                for a, b in zip(ladders, leveled, strict=True)
                for pair in zip(a.rungs, b.rungs, strict=True)
            ),
        )
        for caution in _cautions(statement, condition, known)
    ]
    by_name = {one.name: one for one in made}
    warnings += [caution for one in detectors for caution in component.cautions(one, by_name)]
    for statement, checked in zip(correlates, joined, strict=True):
        warnings += correlation.cautions(statement, checked, cases, known)
    for told, one in zip(relates, related, strict=True):
        warnings += relation.cautions(told, one)
    warnings += [
        Caution(f"no region is named '{given.place}'", given.at, did_you_mean(given.place, known.by_name))
        for case in cases
        for given in case.given
        if known.regions and given.place is not None and given.place not in known.by_name
    ]
    plain = tuple(one for one in conditions if isinstance(one, Condition))
    others = tuple(one for one in conditions if isinstance(one, Guarded))
    return Checked(
        topics,
        plain,
        cases,
        tuple(warnings),
        made,
        joined,
        related,
        others,
        leveled,
        tuple(one for one in above if isinstance(one, Tallied)),
        muted,
        tuple(one for one in above if isinstance(one, Aligned)),
        tuple(one for one in above if isinstance(one, Folded)),
    )


def _hearing(
    statement: hearing.Hears, made: Mapping[str, hearing.Heard], known: Gazetteer, folder: Folder
) -> hearing.Heard:
    match statement:
        case Tally():
            return count.tallied(statement, made, known, folder)
        case Align():
            return states.aligned(statement, made)
        case Fold():
            return fold.folded(statement, made, known)


def _collide(statements: Iterable[Statement]) -> Function:
    """What readings of one cell become, for every component."""
    said = _all(Collide, statements)
    if len(said) > 1:
        raise DefinitionError("'collide' is given twice", said[1].at)
    return said[0].function if said else "avg"


def _all(kind: type[S], statements: Iterable[Statement]) -> list[S]:
    return [s for s in statements if isinstance(s, kind)]


def _unique(what: str, statements: list[S], name: Callable[[S], str]) -> list[S]:
    """The statements, if no two have one name."""
    first: dict[str, S] = {}
    for statement in statements:
        other = first.setdefault(name(statement), statement)
        if other is not statement:
            where = f"; the first one is in line {other.at.line}" if other.at else ""
            raise DefinitionError(
                f"{what} '{name(statement)}' is declared twice{where}",
                statement.at,
                hint="Rename one of them.",
            )
    return statements


# --- topics and parameters ---------------------------------------------------------------------


def _topics(declared: Iterable[DeclareTopic]) -> tuple[Topic, ...]:
    return tuple(_topic(s.topic, s.at) for s in declared)


def _topic(topic: Topic, at: Place | None) -> Topic:
    seen: set[str] = set()
    for attribute in topic.attributes:
        at = place_of(attribute.name, at)
        named = f"attribute '{attribute.name}' of topic '{topic.name}'"
        if attribute.name in RESERVED:
            raise DefinitionError(
                f"'{attribute.name}' is part of every event; topic '{topic.name}' cannot declare it",
                at,
                hint="Leave it out, or name the attribute otherwise.",
            )
        if attribute.name in seen:
            raise DefinitionError(f"{named} is declared twice", at)
        if attribute.kind not in KINDS:
            raise DefinitionError(f"{named} has the unknown kind '{attribute.kind}'", at)
        if attribute.unit is not None and attribute.unit not in UNITS:
            message = f"{named} has the unknown unit '{attribute.unit}'"
            raise DefinitionError(message, at, hint=nearest(attribute.unit))
        if attribute.unit is not None and attribute.kind in ("text", "bool"):
            raise DefinitionError(f"{named} is a {attribute.kind} and cannot have a unit", at)
        seen.add(attribute.name)
    return Topic(topic.name, tuple(replace(a, name=str(a.name)) for a in topic.attributes))


def _parameters(declared: Iterable[Let], lets: Mapping[str, Literal]) -> Parameters:
    if not isinstance(lets, Mapping):
        raise UsageError(f"lets are parameters by name, such as {{'high': 26}}, not {lets!r:.60}")
    found: dict[str, Typed] = {}
    for let in declared:
        value = typed(let.value, Scope(None, found))
        found[let.name] = _overridden(let.name, value, lets[let.name]) if let.name in lets else value
    for name in lets:
        if name not in found:
            has = f"it has {', '.join(found)}" if found else "it has none"
            hint = did_you_mean(name, found)
            raise UsageError(f"the definition has no parameter '{name}'; {has}. {hint or ''}".rstrip())
    return found


def _overridden(name: str, declared: Typed, value: Literal) -> Typed:
    """The parameter with another value of the same kind; a bare number keeps the declared unit."""
    if not isinstance(value, (bool, int, float, str)):
        raise UsageError(f"parameter '{name}' cannot be {value!r:.60}: it is neither number, text nor truth")
    try:
        given = typed(_literal(value, declared), Scope(None, {}))
    except DefinitionError as error:
        raise UsageError(f"parameter '{name}' cannot be {value!r}: {error.message}") from None
    if type(given) is not type(declared):
        raise UsageError(f"parameter '{name}' cannot be {value!r}: it is of another kind")
    if isinstance(given, Quantity) and isinstance(declared, Quantity):
        if given.bare:
            return replace(given, unit=declared.unit, bare=declared.bare)
        if declared.unit is None or given.unit is None or declared.unit.dimension != given.unit.dimension:
            raise UsageError(f"parameter '{name}' cannot be {value!r}: its unit is of another dimension")
    return given


def _literal(value: Literal, declared: Typed) -> Expression:
    from .parse import parse_expression

    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, str):
        return Text(value) if isinstance(declared, Words) else parse_expression(value)
    return Number(value)


# --- subscriptions -----------------------------------------------------------------------------


class _Known(NamedTuple):
    """What subscriptions may name, and where files are looked for."""

    topics: Sequence[Topic]
    parameters: Parameters
    regions: Gazetteer
    folder: Folder
    tables: Mapping[str, Table]


def _condition(statement: Subscribe, known: _Known) -> Condition | Guarded:
    try:
        topic = _topic_of(statement, known.topics, known.parameters)
        scope = Scope(topic, known.parameters, tables.members(known.tables))
        _require_late(statement)
        condition = Condition(
            statement.name,
            topic,
            predicate(statement.enter, scope),
            predicate(statement.exit, scope),
            _keys(statement, scope),
            scopes.forest(statement.scope, known.regions, statement.at),
            statement.delivery,
        )
        condition = tables.looking_up(statement, condition, known.tables)
        return guarded(statement, condition, known.regions, known.folder, known.tables)
    except DefinitionError as error:
        if error.place is not None:
            raise
        raise DefinitionError(f"in '{statement.name}': {error.message}", hint=error.hint) from None


def _require_late(statement: Subscribe) -> None:
    """Refuse what cannot be said of late events."""
    wait, late = statement.delivery.wait, statement.delivery.late
    if wait is None and late != "drop":
        word = "correct" if isinstance(late, Correct) else late
        raise DefinitionError(
            f"'late {word}' needs 'ordered': without it nothing is ever late",
            statement.at,
            hint="Add how long to wait, such as: ordered 30 s",
        )
    care = statement.care
    if isinstance(late, Correct) and care != Care(care.enter, care.exit):
        raise DefinitionError(
            f"'{statement.name}' has 'late correct', which goes with guards ('for'), and not with 'unknown "
            "after', 'forget after', 'initially' or a roster",
            statement.at,
            hint="Leave out one of the two.",
        )


def _topic_of(statement: Subscribe, topics: Sequence[Topic], known: Parameters) -> Topic:
    if statement.topic is None:
        return topic_of(statement, topics, known)
    return _topic_named(statement.topic, topics, place_of(statement.topic, statement.at))


def _topic_named(name: str, topics: Sequence[Topic], at: Place | None) -> Topic:
    by_name = {topic.name: topic for topic in topics}
    if name not in by_name:
        has = f"declared: {', '.join(by_name)}" if by_name else "none is declared"
        hint = did_you_mean(name, by_name) or f"Declare it: topic {name} (value float)"
        raise DefinitionError(f"unknown topic '{name}'; {has}", at, hint=hint)
    return by_name[name]


def _keys(statement: Subscribe, scope: Scope) -> tuple[tuple[str, ...], ...]:
    assert scope.topic is not None
    seen: set[str] = set()
    for name in (name for level in statement.per for name in level):
        at = place_of(name, statement.at)
        if name not in scope.topic.by_name:
            raise unknown_attribute(name, Scope(scope.topic, {}), at)
        if name in seen:
            raise DefinitionError(f"'per' names '{name}' twice", at)
        seen.add(name)
    return tuple(tuple(str(name) for name in level) for level in statement.per)


def _cautions(statement: Subscribe, condition: Condition | Guarded, regions: Gazetteer) -> list[Caution]:
    found = [] if condition.tables else reason.cautions(statement, condition)
    if statement.scope and not regions.regions:
        names = ", ".join(name for level in statement.scope for name in level)
        message = f"no region is declared, so {names} stands for the events whose place has that name"
        found.append(Caution(f"'{statement.name}': {message}", statement.at))
    return found


# --- cases -------------------------------------------------------------------------------------


def _case(case: Case, topics: Sequence[Topic], conditions: Sequence[hearing.Heard]) -> Case:
    """The case with whole rows, in the units and kinds of the attributes."""
    given = tuple(_given(given, topics) for given in case.given)
    if not case.expect:
        raise DefinitionError(
            f'the case "{case.name}" expects nothing to be checked', case.at, hint="Add: expect NAME: nothing"
        )
    for expect in case.expect:
        _expect(expect, conditions)
    return replace(case, given=given)


def _given(given: Given, topics: Sequence[Topic]) -> Given:
    topic = _topic_named(given.topic, topics, given.at)
    return replace(given, rows=tuple(_row(row, topic, given.at) for row in given.rows))


Cell = Number | Text | Truth | None


def _row(row: tuple[Cell, ...], topic: Topic, at: Place | None) -> tuple[Cell, ...]:
    if len(row) > len(topic.attributes):
        has = len(topic.attributes)
        raise DefinitionError(
            f"a row has {len(row)} values, but topic '{topic.name}' has {has} attribute{'s' * (has != 1)}",
            next((cell.at for cell in row[has:] if cell), at),
        )
    missing = (None,) * (len(topic.attributes) - len(row))
    return tuple(_cell(cell, topic, i) for i, cell in enumerate(row + missing))


def _cell(cell: Cell, topic: Topic, index: int) -> Cell:
    attribute = topic.attributes[index]
    if cell is None:
        return None
    wanted, found = of_attribute(attribute), typed(cell, Scope(None, {}))
    if type(wanted) is not type(found):
        raise DefinitionError(f"'{attribute.name}' of topic '{topic.name}' is {attribute.kind}", cell.at)
    if not isinstance(found, Quantity) or not isinstance(wanted, Quantity):
        return cell
    value = in_unit_of(found, wanted, cell, attribute.name)
    if attribute.kind == "float":
        return Number(float(value), at=cell.at)
    if not isinstance(value, int):
        raise DefinitionError(f"'{attribute.name}' of topic '{topic.name}' is int", cell.at)
    return Number(value, at=cell.at)


def _expect(expect: Expect, conditions: Sequence[hearing.Heard]) -> None:
    names = [c.name for c in conditions]
    if expect.subscription not in names:
        raise DefinitionError(
            f"unknown subscription '{expect.subscription}'",
            expect.at,
            hint=did_you_mean(expect.subscription, names),
        )
    condition = conditions[names.index(expect.subscription)]
    first = condition.rungs[0] if isinstance(condition, Leveled) else condition
    forest = first.forest if isinstance(first, (Condition, Guarded, Tallied)) else None
    if forest is None or expect.scope is None:
        return
    outermost = [r.name for r, parent in zip(forest.regions, forest.parents, strict=True) if parent < 0]
    if expect.scope not in outermost:
        some = ", ".join(outermost[:8])
        raise DefinitionError(
            f"'{expect.subscription}' has no outermost scope '{expect.scope}'; it has {some}",
            expect.at,
            hint=did_you_mean(expect.scope, outermost),
        )
