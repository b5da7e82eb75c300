"""The parts of a kind of condition, and adapters for kinds that treat each condition by itself.

To add a property that other code needs of every kind, add a field to `Kind`. The package of a kind fills the
fields in its `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..engine.machine import Machine
from ..engine.operator import Operator
from ..lang.condition import Caution, Condition
from ..lang.context import Context
from ..lang.expressions.sql import Naming
from ..lang.ops import ConditionStatement, Notation, Statement
from ..lang.tree import Rules
from ..lang.typed import Parameters
from ..model.event import Event
from ..model.folder import Folder
from ..model.instant import Duration, Instant
from ..model.qos import Delivery
from ..model.space import Forest
from ..model.topic import Topic
from .revision import Revision

Conditions = Sequence[Any]
"""Checked conditions of one kind."""

Compile = Callable[[Conditions, Sequence[Topic]], list[Operator]]
"""A function that converts the conditions of a kind to operators, given the topics of readings."""


class BrokerForm(NamedTuple):
    """A condition in the form in which every broker on a path evaluates it, from single events."""

    machine: Machine[Any]
    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    chain: Callable[[Event], tuple[str | None, ...] | None]
    """The keys of the scopes that contain an event, innermost first; ``None`` if none does."""
    scope_attributes: frozenset[str]
    """The attributes that determine the scope of an event."""
    forest: Forest | None
    """The regions of the condition's scopes; ``None`` if no scope is a region."""
    bits: Callable[[Any], Collection[str]]
    """The keys of the active scopes in a state of the machine."""
    uncertain_bits: Callable[[Any], Collection[str]]
    """The keys of active scopes whose end may be lost."""
    mark_uncertain: Callable[[Any, Callable[[str], bool]], tuple[Any, list[tuple[str | None, Instant]]]]
    """Marks active scopes of which events may be lost.

    Returns the state, and the outermost newly uncertain scopes with their starts.
    """
    progress: Callable[[Any], tuple[Instant, Instant, Duration, tuple[Instant, ...]] | None]
    """Returns the progress of a condition that corrects its notifications; ``None`` for other conditions.

    The progress has four parts: the time before which starts were reported, and the time before which
    everything is final. Then follow the distance of the latter from the latest event, and the starts of
    active scopes.
    """


class FilterSql(NamedTuple):
    """The predicates of a filter in SQL; `exit` is `None` for a momentary filter."""

    enter: str
    exit: str | None


class WindowQuery(NamedTuple):
    """A query that finds the transitions of filters with the same scopes.

    A transition is a row that satisfies a predicate and differs from the row before. `where` selects events
    that satisfy a predicate of some filter. `apart` are the columns that partition by scope. `scope` is the
    expression for the label of a scope, which is null if an event is in no scope. It is `None` if all events
    share one scope.
    """

    where: str
    apart: tuple[str, ...]
    scope: str | None
    filters: tuple[FilterSql, ...]


class WindowForm(NamedTuple):
    """The functions that convert conditions to a window query of a database, without Python."""

    reason_against: Callable[[Conditions, Sequence[Topic]], str | None]
    """Returns the reason why conditions with the same scopes cannot run as such a query, or `None`.

    It receives all output topics.
    """
    query: Callable[[Conditions, Naming], WindowQuery]
    """Returns the query of conditions for which there is no such reason."""


@dataclass(frozen=True)
class Kind:
    """The parts of one kind of condition. `registry.py` lists the kinds; no other code tests the name of a
    kind.

    The first fields are syntax and checks, in the order in which they are called. Operators and explanations
    follow, then traits and optional forms, which not every kind has.
    """

    name: str
    statements: tuple[type[Statement], ...]
    """The classes of the kind's statements."""
    rules: Rules
    """Parsers of the kind's grammar rules, which return such statements."""
    show: Callable[[Any, Notation], str]
    """Returns a statement as text, in one of the notations."""
    check: Callable[[Any, Context], Collection[Condition]]
    """Checks all statements of the kind in a definition, and returns the conditions that they define."""
    operators: Compile
    """Returns the operators for one process."""
    meaning: Callable[[Any], str]
    """Returns a digest that is equal for conditions with equal meaning. Most kinds ignore the name."""
    describe: Callable[[Any], dict[str, str]]
    """Returns the parts of a condition as text, by name, for the comparison of revisions."""
    explain: Callable[[Conditions], Iterable[str]]
    """Returns the plan of conditions as text, with one text for each machine or condition."""
    revision: Revision
    """The functions that decide how conditions continue when their definition changes."""
    explain_on_spark: Callable[[Conditions, Sequence[Topic]], Iterable[Iterable[str]]] | None = None
    """Returns the plan on Spark, line by line; ``None`` if it is the same as `explain`."""
    cautions: Callable[[Any, Context], Iterable[Caution]] = lambda _statements, _context: ()
    """Returns warnings about the kind's statements."""
    implicit_topics: Callable[[Any, Parameters], Sequence[Topic]] = lambda _statements, _parameters: ()
    """Returns the topics of a definition that declares none."""
    sharded: Compile | None = None
    """Returns the operators on Spark, where scopes are spread over shards; ``None`` if they are the same."""
    shares_machines: bool = False
    """Whether conditions with one key run in one machine, which a new condition joins."""
    builds_on_conditions: bool = False
    """Whether conditions of this kind consume the derived events of other conditions."""
    sql: Callable[[Any, Topic, Naming], list[str] | None] | None = None
    """Returns SQL tests of which at least one is true for every relevant event of a topic; ``None`` if there
    are none."""
    window: WindowForm | None = None
    """The conversion of conditions to a window query; ``None`` if the kind has no such form."""

    on_broker: Callable[[Any], BrokerForm | None] = lambda _condition: None
    """Returns the form of a condition for all brokers on a path; ``None`` if a single broker must evaluate
    it."""
    starts_silently: Callable[[Any], bool] = lambda _condition: False
    """Whether a scope of a condition may become active without a notification."""
    tables: Callable[[Any], Iterable[str]] = lambda _statement: ()
    """Returns the names of the tables that a statement uses."""
    reads_file: Callable[[Any], bool] = lambda _statement: False
    """Whether a statement reads expected sources from a file."""
    with_rows: Callable[[Any, Folder], Statement] = lambda statement, _folder: statement
    """Returns a statement in which the rows of a file replace the file name."""
    with_topic: Callable[[Any, Sequence[str]], Statement] = lambda statement, _topics: statement
    """Returns a statement with its topic, given the consumed topics, if its notation omits the topic."""
    shorter: Callable[[Any], Statement | None] | None = None
    """Returns a shorter statement for the same condition, or ``None``."""

    def of(self, conditions: Iterable[Condition]) -> tuple[Any, ...]:
        """Return the conditions of this kind."""
        return tuple(condition for condition in conditions if condition.kind == self.name)

    def compile(self, conditions: Conditions, topics: Sequence[Topic], *, sharded: bool) -> list[Operator]:
        """Return the operators of conditions of this kind.

        With `sharded`, they are for the shards of a Spark job, otherwise for one process.
        """
        return (self.sharded if sharded and self.sharded else self.operators)(conditions, topics)


def describe_delivery(delivery: Delivery) -> str:
    """Return the delivery of a condition as text, for the comparison of revisions."""
    return "timely" if delivery.wait is None else f"ordered {delivery.wait} µs, late {delivery.late}"


# --- kinds that treat each statement or condition by itself ------------------------------------------


def check_each(check: Callable[[Any, Context], Condition]) -> Callable[[Any, Context], list[Condition]]:
    """Return a function that checks all statements of a kind, given the function that checks a single
    statement."""
    return lambda statements, context: [check(statement, context) for statement in statements]


def caution_each(
    cautions: Callable[[Any, Any, Context], Iterable[Caution]],
) -> Callable[[Any, Context], Iterator[Caution]]:
    """Return a function that yields warnings about all conditions of a kind.

    `cautions` yields the warnings about a single statement and its checked condition. Statements that define
    no condition are skipped.
    """

    def all_cautions(statements: Sequence[Statement], context: Context) -> Iterator[Caution]:
        for statement in statements:
            if isinstance(statement, ConditionStatement):
                yield from cautions(statement, context.conditions[statement.name], context)

    return all_cautions


def compile_each(operator: Callable[[Any], Operator]) -> Compile:
    """Return a function that converts each condition to an operator of its own."""
    return lambda conditions, _topics: [operator(condition) for condition in conditions]


def explain_each(plan: Callable[[Any], Iterable[str]]) -> Callable[[Conditions], Iterator[str]]:
    """Return a function that yields one text per condition, given the function that yields the lines of a
    text."""
    return lambda conditions: ("\n".join(plan(condition)) for condition in conditions)
