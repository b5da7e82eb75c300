"""Checking of definitions: resolve names, compare types and units, nest scopes.

The result has core expressions.

Every error raises a `DefinitionError` at its place. A probable mistake becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DefinitionError, Place, UsageError, did_you_mean
from ..kinds.kind import Kind
from ..kinds.registry import KINDS as CONDITION_KINDS
from ..kinds.registry import kind_of
from ..lang import scopes, tables
from ..lang.condition import Caution, Checked, Condition
from ..lang.context import Context, topic_named
from ..lang.ops import (
    Case,
    ConditionStatement,
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    DerivedStatement,
    Expect,
    Expression,
    Given,
    Let,
    Number,
    Statement,
    Text,
    Truth,
    place_of,
)
from ..lang.typed import NameScope, Parameters, Typed, TypedQuantity, Words
from ..lang.types import in_unit_of, of_attribute, type_of
from ..lang.upstream import check_in_order
from ..model.folder import Folder
from ..model.topic import KINDS, RESERVED, Topic
from ..model.unit import UNITS, nearest
from .regions import require_places

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
    """Check a definition and return the result. Raises the first error.

    ``base`` is the folder of relative paths. ``lets`` replaces the values of parameters. ``tables`` has Arrow
    tables or data frames that replace the files of tables.
    """
    folder = base or (Path(app.file).parent if app.file else Path())
    try:
        found = _check_statements(app.statements, folder, lets or {}, tables or {})
    except DefinitionError as error:
        if app.text is None or error.text is not None:
            raise
        raise error.located(app.text, app.file) from None
    except RecursionError:
        raise DefinitionError("an expression is nested too deeply", text=app.text, file=app.file) from None
    cautions = tuple(replace(caution, text=app.text, file=app.file) for caution in found.warnings)
    return replace(found, warnings=cautions)


def require_final(app: App, where: str) -> None:
    """Refuse conditions that correct their notifications.

    `where` names the output that cannot take back notifications.
    """
    for statement in correcting(app):
        raise DefinitionError(
            f"'{statement.name}' corrects what it has told ('late correct'): "
            f"{where} cannot take anything back",
            statement.at,
            hint="It is late drop, or late apply.",
        ).located(app.text or "", app.file)


def correcting(app: App) -> list[ConditionStatement]:
    """Return the conditions that correct their notifications."""
    return [
        statement
        for statement in app.statements
        if isinstance(statement, ConditionStatement) and statement.corrects
    ]


def _check_statements(
    statements: Sequence[Statement],
    folder: Folder,
    lets: Mapping[str, Literal],
    given: Mapping[str, Any],
) -> Checked:
    topics = _topics(_unique("topic", _all(DeclareTopic, statements), lambda s: s.topic.name))
    _unique("region", _all(DeclareRegion, statements), lambda s: s.name)
    definitions = [s for s in statements if isinstance(s, ConditionStatement)]
    defined = {s.name for s in _unique("subscription", definitions, lambda s: s.name)}
    parameters = _parameters(_unique("parameter", _all(Let, statements), lambda s: s.name), lets)
    regions = scopes.gazetteer(statements, folder)
    require_places(statements, regions, parameters)
    by_kind = [(kind, [s for s in statements if kind_of(s) is kind]) for kind in CONDITION_KINDS.values()]
    implicit = (kind.implicit_topics(statements_of_kind, parameters) for kind, statements_of_kind in by_kind)
    topics = topics or next((tuple(found) for found in implicit if found), ())
    declared = _unique("table", _all(DeclareTable, statements), lambda s: s.name)
    known = tables.tables(declared, folder, given)
    context = Context(statements, topics, parameters, regions, folder, known)
    conditions = _conditions(by_kind, context)
    cases = tuple(
        _case(case, topics, [condition for condition in conditions if condition.name in defined])
        for case in _unique("case", _all(Case, statements), lambda s: s.name)
    )
    context = replace(
        context, conditions={condition.name: condition for condition in conditions}, cases=cases
    )
    warnings = [
        caution
        for kind, statements_of_kind in by_kind
        for caution in kind.cautions(statements_of_kind, context)
    ]
    warnings += [
        Caution(f"no region is named '{given.place}'", given.at, did_you_mean(given.place, regions.by_name))
        for case in cases
        for given in case.given
        if regions.regions and given.place is not None and given.place not in regions.by_name
    ]
    return Checked(topics, tuple(conditions), cases, tuple(warnings))


def _conditions(by_kind: Sequence[tuple[Kind, list[Statement]]], context: Context) -> list[Condition]:
    """Check the conditions of all kinds, and return them in the order of the registry.

    Conditions over readings are checked first, then conditions over conditions, each after its upstreams,
    then mutes.
    """
    known: dict[str, Condition] = {}
    derived = [statement for statement in context.statements if isinstance(statement, DerivedStatement)]

    def check(kind: Kind, statements: Sequence[Statement], below: Mapping[str, Condition]) -> list[Condition]:
        return list(kind.check(statements, replace(context, conditions=below)))

    def check_one(statement: DerivedStatement, below: Mapping[str, Condition]) -> Condition:
        kind = kind_of(statement)
        assert kind is not None
        (condition,) = check(kind, [statement], below)
        return condition

    for kind, statements in by_kind:
        if not kind.builds_on_conditions:
            known |= {condition.name: condition for condition in check(kind, statements, known)}
    known |= {condition.name: condition for condition in check_in_order(derived, known.values(), check_one)}
    for kind, statements in by_kind:
        if kind.builds_on_conditions and not any(
            isinstance(statement, DerivedStatement) for statement in statements
        ):
            known |= {condition.name: condition for condition in check(kind, statements, known)}
    return [condition for kind in CONDITION_KINDS.values() for condition in kind.of(known.values())]


def _all(kind: type[S], statements: Iterable[Statement]) -> list[S]:
    return [s for s in statements if isinstance(s, kind)]


def _unique(what: str, statements: list[S], name: Callable[[S], str]) -> list[S]:
    """Return the statements. Raises an error if two of them have the same name."""
    first: dict[str, S] = {}
    for statement in statements:
        earlier = first.setdefault(name(statement), statement)
        if earlier is not statement:
            where = f"; the first one is in line {earlier.at.line}" if earlier.at else ""
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
        value = type_of(let.value, NameScope(None, found))
        found[let.name] = _override(let.name, value, lets[let.name]) if let.name in lets else value
    for name in lets:
        if name not in found:
            has = f"it has {', '.join(found)}" if found else "it has none"
            hint = did_you_mean(name, found)
            raise UsageError(f"the definition has no parameter '{name}'; {has}. {hint or ''}".rstrip())
    return found


def _override(name: str, declared: Typed, value: Literal) -> Typed:
    """Return a parameter with another value of the same type. A bare number has the declared unit."""
    if not isinstance(value, (bool, int, float, str)):
        raise UsageError(f"parameter '{name}' cannot be {value!r:.60}: it is neither number, text nor truth")
    try:
        given = type_of(_literal(value, declared), NameScope(None, {}))
    except DefinitionError as error:
        raise UsageError(f"parameter '{name}' cannot be {value!r}: {error.message}") from None
    if type(given) is not type(declared):
        raise UsageError(f"parameter '{name}' cannot be {value!r}: it is of another kind")
    if isinstance(given, TypedQuantity) and isinstance(declared, TypedQuantity):
        if given.bare:
            return replace(given, unit=declared.unit, bare=declared.bare)
        if declared.unit is None or given.unit is None or declared.unit.dimension != given.unit.dimension:
            raise UsageError(f"parameter '{name}' cannot be {value!r}: its unit is of another dimension")
    return given


def _literal(value: Literal, declared: Typed) -> Expression:
    from ..lang.grammar import parse_expression

    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, str):
        return Text(value) if isinstance(declared, Words) else parse_expression(value)
    return Number(value)


# --- subscriptions -----------------------------------------------------------------------------


# --- cases -------------------------------------------------------------------------------------


def _case(case: Case, topics: Sequence[Topic], conditions: Sequence[Condition]) -> Case:
    """Return a test case with complete rows, in the units and types of the attributes."""
    given = tuple(_check_given(given, topics) for given in case.given)
    if not case.expect:
        raise DefinitionError(
            f'the case "{case.name}" expects nothing to be checked', case.at, hint="Add: expect NAME: nothing"
        )
    for expect in case.expect:
        _expect(expect, conditions)
    return replace(case, given=given)


def _check_given(given: Given, topics: Sequence[Topic]) -> Given:
    topic = topic_named(given.topic, topics, given.at)
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
    wanted, found = of_attribute(attribute), type_of(cell, NameScope(None, {}))
    if type(wanted) is not type(found):
        raise DefinitionError(f"'{attribute.name}' of topic '{topic.name}' is {attribute.kind}", cell.at)
    if not isinstance(found, TypedQuantity) or not isinstance(wanted, TypedQuantity):
        return cell
    value = in_unit_of(found, wanted, cell, attribute.name)
    if attribute.kind == "float":
        return Number(float(value), at=cell.at)
    if not isinstance(value, int):
        raise DefinitionError(f"'{attribute.name}' of topic '{topic.name}' is int", cell.at)
    return Number(value, at=cell.at)


def _expect(expect: Expect, conditions: Sequence[Condition]) -> None:
    names = [c.name for c in conditions]
    if expect.subscription not in names:
        raise DefinitionError(
            f"unknown subscription '{expect.subscription}'",
            expect.at,
            hint=did_you_mean(expect.subscription, names),
        )
    condition = conditions[names.index(expect.subscription)]
    _, forest = condition.outer_scopes
    if forest is None or expect.scope is None:
        return
    outermost = [r.name for r, parent in zip(forest.regions, forest.parents, strict=True) if parent < 0]
    if expect.scope not in outermost:
        listed = ", ".join(outermost[:8])
        raise DefinitionError(
            f"'{expect.subscription}' has no outermost scope '{expect.scope}'; it has {listed}",
            expect.at,
            hint=did_you_mean(expect.scope, outermost),
        )
