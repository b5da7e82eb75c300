"""Check states and filters: topic, predicates, scopes, tables, minimum durations, expected sources.

Every error has the place of the word that causes it. Checks that other kinds also need are in
`kinds/checks.py`.
"""

from __future__ import annotations

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
from ...lang.types import predicate
from ...model.guard import PLAIN, Care
from ...model.qos import Correct
from ...model.space import Gazetteer
from ...model.table import Table
from ...model.topic import Topic
from ..checks import naming, require_attributes, require_order, roster_rows
from . import reason
from .condition import AnyState, DurationCondition, StateCondition
from .infer import implicit_topic, topic_of
from .syntax import DefineState


def check(statements: Sequence[DefineState], context: Context) -> list[AnyState]:
    """Check statements and return the states and filters that they define.

    States without minimum durations come first.
    """
    conditions = [check_state(statement, context) for statement in statements]
    return sorted(conditions, key=lambda condition: isinstance(condition, DurationCondition))


def check_state(statement: DefineState, known: Context) -> AnyState:
    """Check one state or filter. Raise a `DefinitionError` if it has a mistake."""
    with naming(statement.name):
        if statement.topic is None:
            topic = topic_of(statement, known.topics, known.parameters)
        else:
            topic = topic_named(statement.topic, known.topics, place_of(statement.topic, statement.at))
        scope = NameScope(topic, known.parameters, tables.members(known.tables))
        _require_late(statement)
        condition = StateCondition(
            statement.name,
            topic,
            predicate(statement.enter, scope),
            predicate(statement.exit, scope),
            _keys(statement, topic),
            scopes.forest(statement.scope, known.regions, statement.at),
            statement.delivery,
        )
        condition = add_table_columns(statement, condition, known.tables)
        return _with_durations(statement, condition, known)


def _require_late(statement: DefineState) -> None:
    """Raise a `DefinitionError` for a clause about late events that the condition cannot honour."""
    require_order(statement.delivery, statement.at)
    care = statement.care
    if isinstance(statement.delivery.late, Correct) and care != Care(care.enter, care.exit):
        raise DefinitionError(
            f"'{statement.name}' has 'late correct', which goes with guards ('for'), and not with 'unknown "
            "after', 'forget after', 'initially' or a roster",
            statement.at,
            hint="Leave out one of the two.",
        )


def _keys(statement: DefineState, topic: Topic) -> tuple[tuple[str, ...], ...]:
    """Return the keys of the scopes, level by level. Each key must be an attribute that is named once."""
    seen: set[str] = set()
    for name in (name for level in statement.per for name in level):
        require_attributes((name,), topic, statement.at)
        if name in seen:
            raise DefinitionError(f"'per' names '{name}' twice", place_of(name, statement.at))
        seen.add(name)
    return tuple(tuple(str(name) for name in level) for level in statement.per)


def cautions(statement: DefineState, condition: AnyState, context: Context) -> Iterator[Caution]:
    """Yield warnings about a state that is probably a mistake."""
    if not condition.tables:
        yield from reason.cautions(statement, condition)
    if statement.scope and not context.regions.regions:
        names = ", ".join(name for level in statement.scope for name in level)
        message = f"no region is declared, so {names} stands for the events whose place has that name"
        yield Caution(f"'{statement.name}': {message}", statement.at)


MOST_SILENCES = 7
"""The maximal number of durations in the ``silent`` predicates of one state."""


def _with_durations(statement: DefineState, checked: StateCondition, known: Context) -> AnyState:
    """Return the condition with minimum durations, no-data clauses, initial values and expected sources.

    If the statement has none of these, return the condition unchanged.
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
        _roster(statement, checked, known),
        checked.tables,
    )


def _require_sense(statement: DefineState, checked: StateCondition) -> None:
    """Raise a `DefinitionError` for a combination of clauses that has no meaning."""
    care = statement.care
    if checked.momentary:
        message = f"'{statement.name}' is over as it starts: guards and silence are of states that last"
        hint = "Give it an exit, as in [value > 25 for 5 min; value < 22]"
        raise DefinitionError(message, statement.exit.at or statement.at, hint=hint)
    if len(checked.keys) + (checked.forest.depth if checked.forest else 0) > 1:
        message = f"'{statement.name}' has scopes within scopes: guards and silence are of one level"
        raise DefinitionError(message, statement.at, hint=_instead(statement.name, checked))
    if care.forget is not None and care.unknown is not None and care.forget < care.unknown:
        message = f"'{statement.name}' would forget a scope before it is unknown"
        raise DefinitionError(message, statement.at, hint="Let 'forget after' be the longer one.")


def _instead(name: str, checked: StateCondition) -> str:
    """Return the hint for minimum durations in nested scopes, which are not supported.

    Timers of an inner scope have no place in the order of readings, so the outer scopes would have to wait
    for the watermark. A count over the inner state does that.
    """
    inner, above = "its innermost scopes", "scope …"
    if len(checked.keys) > 1:
        inner = f"'per {', '.join((*checked.keys[0], *checked.keys[1]))}'"
        above = f"within {', '.join(checked.keys[1])}"
    return (
        f"Define '{name}Inner' with them for {inner}, and count it: "
        f"'state {name} = at least 1 of {name}Inner {above}', which ends with the last of them."
    )


def _roster(statement: DefineState, checked: StateCondition, known: Context) -> tuple[Row, ...]:
    """Return the key values of the expected scopes; none without a roster."""
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
        rows = tuple(distinct_rows(roster.table, columns, known.tables, place_of(roster.table, statement.at)))
    elif roster.path is None:
        rows = _of_gazetteer(statement, checked, columns, known.regions)
    else:
        rows = _of_file(statement, columns, known.folder / roster.path)
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
    """Return the key values of the regions, sources or places that the gazetteer lists."""
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
    """Return the rows of a CSV file, in the columns that have the names of the keys."""

    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        return DefinitionError(f'roster "{path.name}": {message}', statement.at, hint=hint)

    found = [cells for _, cells in roster_rows(path, columns, wrong)]
    if twice := [row for row, times in Counter(found).items() if times > 1]:
        raise wrong(f"'{', '.join(twice[0])}' stands there twice")
    return tuple(found)


Tables = Mapping[str, Table]


def add_table_columns(statement: DefineState, condition: StateCondition, known: Tables) -> StateCondition:
    """Return the condition with the tables that its predicates and minimum durations name."""
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


def _require_duration(column: str, known: Tables, at: Place | None) -> None:
    """Raise a `DefinitionError` if a column of a minimum duration is missing or has another type."""
    owner, _, name = column.partition(".")
    if owner not in known:
        raise DefinitionError(f"there is no table '{owner}'", at, hint=did_you_mean(owner, known))
    table = known[owner]
    if name not in table.durations:
        has = [attribute.name for attribute in table.columns]
        problem, hint = f"table '{owner}' has no column '{name}'", did_you_mean(name, has)
        if name in has:
            problem, hint = f"'{column}' is not a duration", f"Declare it: table {owner} (…, {name} duration)"
        raise DefinitionError(problem, at, hint=hint)


def implicit_topics(statements: Sequence[DefineState], parameters: Parameters) -> tuple[Topic, ...]:
    """Return the topic of a definition in short notation that declares none."""
    short = [statement for statement in statements if statement.topic is None]
    return (implicit_topic(short, parameters),) if short else ()
