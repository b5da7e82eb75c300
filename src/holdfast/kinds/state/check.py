"""Checking of states and filters: topic, predicates, scopes, tables, minimum durations, expected sources."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import DefinitionError, Place, did_you_mean
from ...lang import scopes, tables
from ...lang.condition import Caution
from ...lang.context import Context, topic_named
from ...lang.ops import place_of
from ...lang.rewrite import names, silences
from ...lang.tables import Row, distinct_rows
from ...lang.typed import NameScope, Parameters
from ...lang.types import predicate, unknown_attribute
from ...model.folder import Folder
from ...model.guard import PLAIN, Care
from ...model.qos import Correct
from ...model.space import Gazetteer
from ...model.table import Table
from ...model.topic import Topic
from . import reason
from .condition import DurationCondition, StateCondition
from .infer import implicit_topic, topic_of
from .syntax import DefineState


def check(statements: Sequence[DefineState], context: Context) -> list[StateCondition | DurationCondition]:
    """Check the states and filters that statements define: those without minimum durations first."""
    conditions = [check_state(statement, context) for statement in statements]
    return sorted(conditions, key=lambda condition: isinstance(condition, DurationCondition))


def check_state(statement: DefineState, known: Context) -> StateCondition | DurationCondition:
    """Check one state or filter."""
    try:
        topic = _topic_of(statement, known.topics, known.parameters)
        scope = NameScope(topic, known.parameters, tables.members(known.tables))
        _require_late(statement)
        condition = StateCondition(
            statement.name,
            topic,
            predicate(statement.enter, scope),
            predicate(statement.exit, scope),
            _keys(statement, scope),
            scopes.forest(statement.scope, known.regions, statement.at),
            statement.delivery,
        )
        condition = add_table_columns(statement, condition, known.tables)
        return _with_durations(statement, condition, known.regions, known.folder, known.tables)
    except DefinitionError as error:
        if error.place is not None:
            raise
        raise DefinitionError(f"in '{statement.name}': {error.message}", hint=error.hint) from None


def _require_late(statement: DefineState) -> None:
    """Refuse clauses about late events that the condition cannot honour."""
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


def _topic_of(statement: DefineState, topics: Sequence[Topic], known: Parameters) -> Topic:
    if statement.topic is None:
        return topic_of(statement, topics, known)
    return topic_named(statement.topic, topics, place_of(statement.topic, statement.at))


def _keys(statement: DefineState, scope: NameScope) -> tuple[tuple[str, ...], ...]:
    assert scope.topic is not None
    seen: set[str] = set()
    for name in (name for level in statement.per for name in level):
        at = place_of(name, statement.at)
        if name not in scope.topic.by_name:
            raise unknown_attribute(name, NameScope(scope.topic, {}), at)
        if name in seen:
            raise DefinitionError(f"'per' names '{name}' twice", at)
        seen.add(name)
    return tuple(tuple(str(name) for name in level) for level in statement.per)


def state_cautions(
    statement: DefineState, condition: StateCondition | DurationCondition, regions: Gazetteer
) -> list[Caution]:
    """Warn about a state that is probably a mistake."""
    found = [] if condition.tables else reason.cautions(statement, condition)
    if statement.scope and not regions.regions:
        names = ", ".join(name for level in statement.scope for name in level)
        message = f"no region is declared, so {names} stands for the events whose place has that name"
        found.append(Caution(f"'{statement.name}': {message}", statement.at))
    return found


MOST_SILENCES = 7
"""The maximal number of durations in the ``silent`` predicates of one state."""


def _with_durations(
    statement: DefineState,
    checked: StateCondition,
    known: Gazetteer,
    folder: Folder,
    tables: Mapping[str, Table],
) -> StateCondition | DurationCondition:
    """Add minimum durations, no-data clauses, initial values and expected sources to a checked condition, if
    the statement has any.
    """
    lengths = {*silences(checked.enter), *silences(checked.exit)}
    if statement.care == PLAIN and not lengths:
        return checked
    _require_sense(statement, checked)
    if len(lengths) > MOST_SILENCES:
        message = f"'{statement.name}' tells {len(lengths)} silences apart; {MOST_SILENCES} are possible"
        raise DefinitionError(message, statement.at)
    return DurationCondition(
        checked.name,
        checked.topic,
        checked.enter,
        checked.exit,
        checked.keys,
        checked.forest,
        checked.delivery,
        statement.care,
        _roster(statement, checked, known, folder, tables),
        checked.tables,
    )


def _require_sense(statement: DefineState, checked: StateCondition) -> None:
    """Refuse combinations of clauses that have no meaning."""
    care = statement.care
    if checked.momentary:
        raise DefinitionError(
            f"'{statement.name}' is over as it starts: guards and silence are of states that last",
            statement.exit.at or statement.at,
            hint="Give it an exit, as in [value > 25 for 5 min; value < 22]",
        )
    if len(checked.keys) + (checked.forest.depth if checked.forest else 0) > 1:
        raise DefinitionError(
            f"'{statement.name}' has scopes within scopes: guards and silence are of one level",
            statement.at,
            hint=_instead(statement.name, checked),
        )
    if care.forget is not None and care.unknown is not None and care.forget < care.unknown:
        raise DefinitionError(
            f"'{statement.name}' would forget a scope before it is unknown",
            statement.at,
            hint="Let 'forget after' be the longer one.",
        )


def _instead(name: str, checked: StateCondition) -> str:
    """The hint for minimum durations in nested scopes. Timers of an inner scope have no place in the order of
    readings, so the outer scopes would have to wait for the watermark; a count over the inner state does
    that.
    """
    inner, above = "its innermost scopes", "scope …"
    if len(checked.keys) > 1:
        inner = f"'per {', '.join((*checked.keys[0], *checked.keys[1]))}'"
        above = f"within {', '.join(checked.keys[1])}"
    return (
        f"Define '{name}Inner' with them for {inner}, and count it: "
        f"'state {name} = at least 1 of {name}Inner {above}', which ends with the last of them."
    )


def _roster(
    statement: DefineState,
    checked: StateCondition,
    known: Gazetteer,
    folder: Folder,
    tables: Mapping[str, Table],
) -> tuple[Row, ...]:
    """The key values of the expected scopes."""
    roster = statement.care.roster
    if roster is None:
        return ()
    if not checked.keys and checked.forest is None:
        raise DefinitionError(
            f"'{statement.name}' has one scope for everything, so there is nobody to expect",
            statement.at,
            hint="Add 'per source' to have one for each source.",
        )
    columns = checked.keys[0] if checked.keys else ("place",)
    if roster.table is not None:
        rows = tuple(distinct_rows(roster.table, columns, tables, place_of(roster.table, statement.at)))
    elif roster.path is None:
        rows = _of_gazetteer(statement, checked, columns, known)
    else:
        rows = _of_file(statement, columns, folder / roster.path)
    if checked.forest is not None:
        names = [region.name for region in checked.forest.regions]
        for (name,) in rows:
            if name not in names:
                message = f"the roster of '{statement.name}' names '{name}', which is no scope of it"
                raise DefinitionError(message, statement.at, hint=did_you_mean(name, names))
    return rows


def _of_gazetteer(
    statement: DefineState, checked: StateCondition, columns: Row, known: Gazetteer
) -> tuple[Row, ...]:
    if checked.forest is not None:
        return tuple((region.name,) for region in checked.forest.regions)
    listed: dict[Row, dict[str, None]] = {
        ("source",): dict.fromkeys(source for region in known.regions for source in region.sources),
        ("place",): dict.fromkeys(known.by_name),
    }
    found = listed.get(columns)
    if not found:
        problem = "lists no sources" if columns == ("source",) else f"knows nothing of {', '.join(columns)}"
        message = f"the gazetteer {problem}, so '{statement.name}' has no roster there"
        raise DefinitionError(message, statement.at, hint='Give it a file: roster "sensors.csv"')
    return tuple((name,) for name in found)


def _of_file(statement: DefineState, columns: Row, path: Path) -> tuple[Row, ...]:
    """The rows of a CSV file: the columns named like the keys, or its only column."""

    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        return DefinitionError(f'roster "{path.name}": {message}', statement.at, hint=hint)

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise wrong(f"cannot be read: {reason}") from None
    header = [name.strip() for name in header]
    if missing := [name for name in columns if name not in header]:
        has = ", ".join(header) or "nothing"
        raise wrong(f"has no column '{missing[0]}'; it has {has}", did_you_mean(missing[0], header))
    at = [header.index(name) for name in columns]
    found: list[Row] = []
    for number, row in enumerate(rows, 2):
        cells = tuple(row[i].strip() if i < len(row) else "" for i in at)
        if not all(cells):
            raise wrong(f"row {number} has no {columns[cells.index('')]}")
        found.append(cells)
    if twice := [row for row, times in Counter(found).items() if times > 1]:
        raise wrong(f"'{', '.join(twice[0])}' stands there twice")
    return tuple(found)


def add_table_columns(
    statement: DefineState, condition: StateCondition, known: Mapping[str, Table]
) -> StateCondition:
    """The condition with the tables that its predicates and minimum durations name."""
    columns = [hold.column for hold in (statement.care.enter, statement.care.exit) if hold.column]
    for column in columns:
        _require_duration(column, known, place_of(column, statement.at))
    mentioned = (*names(condition.enter), *names(condition.exit), *columns)
    used = dict.fromkeys(name.partition(".")[0] for name in mentioned if "." in name)
    for table in (known[name] for name in used):
        for name in table.by:
            if name not in condition.topic.by_name:
                raise DefinitionError(
                    f"table '{table.name}' is looked up by '{name}', which topic '{condition.topic.name}' "
                    "does not have",
                    statement.at,
                    hint=did_you_mean(name, condition.topic.by_name),
                )
    return replace(condition, tables=tuple(known[name] for name in used)) if used else condition


def _require_duration(column: str, known: Mapping[str, Table], at: Place | None) -> None:
    """Refuse a minimum duration whose column is missing or has another type."""
    owner, _, name = column.partition(".")
    if owner not in known:
        raise DefinitionError(f"there is no table '{owner}'", at, hint=did_you_mean(owner, known))
    table = known[owner]
    if name not in table.durations:
        has = [attribute.name for attribute in table.columns]
        problem = (
            f"'{column}' is not a duration" if name in has else f"table '{owner}' has no column '{name}'"
        )
        hint = f"Declare it: table {owner} (…, {name} duration)" if name in has else did_you_mean(name, has)
        raise DefinitionError(problem, at, hint=hint)


def cautions(statements: Sequence[DefineState], context: Context) -> Iterator[Caution]:
    """Warn about states of a definition that are probably mistakes."""
    for statement in statements:
        condition = context.conditions[statement.name]
        assert isinstance(condition, StateCondition | DurationCondition)
        yield from state_cautions(statement, condition, context.regions)


def implicit_topics(statements: Sequence[DefineState], parameters: Parameters) -> tuple[Topic, ...]:
    """The topic of a definition in short notation that declares none."""
    short = [statement for statement in statements if statement.topic is None]
    return (implicit_topic(short, parameters),) if short else ()
