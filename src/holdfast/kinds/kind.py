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
"""Converts the conditions of a kind, given the topics of readings, to operators."""


class BrokerForm(NamedTuple):
    """A condition as every broker on the path evaluates it, from single events."""

    machine: Machine[Any]
    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    chain: Callable[[Event], tuple[str | None, ...] | None]
    """The keys of the scopes that contain an event, innermost first; ``None`` if none does."""
    scope_attributes: frozenset[str]
    """The attributes that determine the scope of an event."""
    forest: Forest | None
    """The regions of its scopes."""
    bits: Callable[[Any], Collection[str]]
    """The keys of the active scopes in a state of the machine."""
    uncertain_bits: Callable[[Any], Collection[str]]
    """The keys of active scopes whose end may be lost."""
    mark_uncertain: Callable[[Any, Callable[[str], bool]], tuple[Any, list[tuple[str | None, Instant]]]]
    """Marks active scopes of which events may be lost; returns the state, and the outermost ones with their
    start."""
    progress: Callable[[Any], tuple[Instant, Instant, Duration, tuple[Instant, ...]] | None]
    """The progress of a condition that corrects its notifications: the time before which starts were
    reported, the time before which everything is final, how far that is before the latest event, and the
    starts of active scopes."""


class FilterSql(NamedTuple):
    """The predicates of a filter in SQL; `exit` is `None` for a momentary one."""

    enter: str
    exit: str | None


class WindowQuery(NamedTuple):
    """A query that finds the transitions of filters with the same scopes: each row that satisfies a predicate
    and differs from the row before.

    `where` selects events that satisfy a predicate of some filter, `apart` are the columns that partition by
    scope, and `scope` is the expression for the label of a scope: null if an event is in no scope, `None` if
    all events share one scope.
    """

    where: str
    apart: tuple[str, ...]
    scope: str | None
    filters: tuple[FilterSql, ...]


class WindowForm(NamedTuple):
    """Conditions as a window query of a database, without Python."""

    reason_against: Callable[[Conditions, Sequence[Topic]], str | None]
    """The reason why conditions with the same scopes cannot run as such a query, given all output topics."""
    query: Callable[[Conditions, Naming], WindowQuery]
    """The query of conditions for which there is no such reason."""


@dataclass(frozen=True)
class Kind:
    """One kind of condition. `registry.py` has a line for each; nothing else asks for a kind by its name.

    The first fields are syntax and checks, in the order in which they are called. Then follow its operators
    and what is printed of them, then traits and optional forms, which not every kind has.
    """

    name: str
    statements: tuple[type[Statement], ...]
    """The statements that belong to it."""
    rules: Rules
    """Parsers of its grammar rules, which return such statements."""
    show: Callable[[Any, Notation], str]
    """The text of such a statement."""
    check: Callable[[Any, Context], Collection[Condition]]
    """Checks all its statements of a definition, given the context."""
    operators: Compile
    """The operators for one process."""
    meaning: Callable[[Any], str]
    """A digest that is equal for conditions with equal meaning, whatever their names."""
    describe: Callable[[Any], dict[str, str]]
    """Descriptions of the parts of a condition, for the comparison of revisions."""
    explain: Callable[[Conditions], Iterable[str]]
    """The plan of its conditions in words, one text for each."""
    revision: Revision
    """How its conditions continue when their definition changes."""
    explain_on_spark: Callable[[Conditions, Sequence[Topic]], Iterable[Iterable[str]]] | None = None
    """The plan on Spark, line by line, if it differs."""
    cautions: Callable[[Any, Context], Iterable[Caution]] = lambda _statements, _context: ()
    """Warnings about its statements."""
    implicit_topics: Callable[[Any, Parameters], Sequence[Topic]] = lambda _statements, _parameters: ()
    """The topics of a definition that declares none."""
    sharded: Compile | None = None
    """The operators on Spark, where scopes are spread over shards, if they differ."""
    shares_machines: bool = False
    """Whether conditions with one key run in one machine, and a new one joins it."""
    builds_on_conditions: bool = False
    """Whether its conditions consume the derived events of others, of any kind."""
    sql: Callable[[Any, Topic, Naming], list[str] | None] | None = None
    """SQL tests of which one is true for every relevant event of a topic; ``None`` if there are none."""
    window: WindowForm | None = None
    """Its conditions as a window query, if some of them have that form."""

    on_broker: Callable[[Any], BrokerForm | None] = lambda _condition: None
    """The form of a condition for all brokers on a path; ``None``: one broker evaluates it."""
    starts_silently: Callable[[Any], bool] = lambda _condition: False
    """Whether a scope of a condition may become active without a notification."""
    tables: Callable[[Any], Iterable[str]] = lambda _statement: ()
    """The tables that a statement names."""
    reads_file: Callable[[Any], bool] = lambda _statement: False
    """Whether a statement reads expected sources from a file."""
    with_rows: Callable[[Any, Folder], Statement] = lambda statement, _folder: statement
    """The statement with the rows of a file in the place of its name."""
    with_topic: Callable[[Any, Sequence[str]], Statement] = lambda statement, _topics: statement
    """The statement with its topic, given those that it consumes, if its notation has none."""
    shorter: Callable[[Any], Statement | None] | None = None
    """A shorter statement for the same condition, if there is one."""

    def of(self, conditions: Iterable[Condition]) -> tuple[Any, ...]:
        """Select the conditions of this kind."""
        return tuple(condition for condition in conditions if condition.kind == self.name)

    def compile(self, conditions: Conditions, topics: Sequence[Topic], *, sharded: bool) -> list[Operator]:
        """The operators of conditions of this kind, for one process or (`sharded`) for the shards of a Spark
        job.
        """
        return (self.sharded if sharded and self.sharded else self.operators)(conditions, topics)


def describe_delivery(delivery: Delivery) -> str:
    """Describe the order in which events are processed, for the comparison of revisions."""
    return "timely" if delivery.wait is None else f"ordered {delivery.wait} µs, late {delivery.late}"


# --- kinds that treat each statement or condition by itself ------------------------------------------


def check_each(check: Callable[[Any, Context], Condition]) -> Callable[[Any, Context], list[Condition]]:
    """A function that checks all statements of a kind, given the function that checks one."""
    return lambda statements, context: [check(statement, context) for statement in statements]


def caution_each(
    cautions: Callable[[Any, Any, Context], Iterable[Caution]],
) -> Callable[[Any, Context], Iterator[Caution]]:
    """A function that warns about all conditions of a kind, given the function for one statement and its
    checked condition. Statements that define no condition are skipped.
    """

    def all_cautions(statements: Sequence[Statement], context: Context) -> Iterator[Caution]:
        for statement in statements:
            if isinstance(statement, ConditionStatement):
                yield from cautions(statement, context.conditions[statement.name], context)

    return all_cautions


def compile_each(operator: Callable[[Any], Operator]) -> Compile:
    """A function that converts each condition to an operator of its own."""
    return lambda conditions, _topics: [operator(condition) for condition in conditions]


def explain_each(plan: Callable[[Any], Iterable[str]]) -> Callable[[Conditions], Iterator[str]]:
    """A function that explains each condition in a text, given the function for the lines of one."""
    return lambda conditions: ("\n".join(plan(condition)) for condition in conditions)
