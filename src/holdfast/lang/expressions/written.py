"""Generated Python functions that evaluate many predicates on one event.

Closures cost a call for each part of a predicate. Here all comparisons of floats, which are nearly all parts
of predicates, become one function that reads each attribute once. For anything else that function calls the
closure of ``event``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...model.event import Event
from ...model.table import Table
from ...model.topic import FIXED, Topic
from ..ops import Absolute, And, Arithmetic, Compare, Expression, Name, Negative, Number, Or, Truth
from ..rewrite import names
from . import event as scalar
from .tables import add_table_values, rows_of

Marks = Callable[[Event], int]


def marks(predicates: Iterable[tuple[Expression, int]], topic: Topic, tables: Sequence[Table] = ()) -> Marks:
    """Return a function from an event to the union of the marks of all core predicates that are true."""
    writer = _Writer(topic, tables)
    tests = []
    for op, mark in predicates:
        if op != Truth(False):
            test = writer.predicate(op) or writer.call_predicate(op)
            tests.append(f"    if {test}: held |= {mark}" if op != Truth(True) else f"    held |= {mark}")
    lines = ["def marks(event):", *writer.reading, "    held = 0", *tests, "    return held"]
    exec("\n".join(lines), writer.known)
    written: Marks = writer.known["marks"]
    return written


class _Writer:
    """Generates Python source for predicates.

    ``reading`` has the lines before the predicates, ``known`` the global names that the source uses.
    """

    def __init__(self, topic: Topic, tables: Sequence[Table]) -> None:
        self._topic, self._tables = topic, {table.name: table for table in tables}
        self._join = add_table_values(tables)
        self._variables: dict[str, str] = {}
        self.known: dict[str, Any] = {"nan": math.nan}
        self.reading = ["    own = event.attributes.get"]

    def call_predicate(self, op: Expression) -> str:
        """Return source that calls the closure of a predicate."""
        test, join = scalar.predicate(op, self._topic), self._join
        looks_up = any("." in name for name in names(op))
        return self._bound("test", (lambda event: test(join(event))) if looks_up else test) + "(event)"

    def _bound(self, word: str, value: Any) -> str:
        name = f"{word}{len(self.known)}"
        self.known[name] = value
        return name

    def predicate(self, op: Expression) -> str | None:
        """Return source for a predicate; ``None`` if it contains anything but comparisons of floats."""
        match op:
            case And(left, right) | Or(left, right):
                a, b = self.predicate(left), self.predicate(right)
                sign = "and" if isinstance(op, And) else "or"
                return None if a is None or b is None else f"({a} {sign} {b})"
            case Compare(sign, left, right) if (
                sign != "!="
            ):  # != is true for NaN in Python, but a missing value satisfies nothing
                if {scalar.kind(left, self._topic), scalar.kind(right, self._topic)} in ({"int"}, {"text"}):
                    return None
                a, b = self._number(left), self._number(right)
                return None if a is None or b is None else f"{a} {sign} {b}"
            case _:
                return None

    def _number(self, op: Expression) -> str | None:
        match op:
            case Name(name) if name not in FIXED:
                return self._variable(name)
            case Number(value):
                return self._bound("number", float(value))
            case _ if scalar.kind(op, self._topic) == "int":  # exact, and missing beyond 64 bits
                return None
            case Negative(arg):
                return None if (inner := self._number(arg)) is None else f"(-{inner})"
            case Absolute(arg):
                return None if (inner := self._number(arg)) is None else f"abs({inner})"
            case Arithmetic(sign, left, right) if sign != "/":
                a, b = self._number(left), self._number(right)
                return None if a is None or b is None else f"({a} {sign} {b})"
            case _:
                return None

    def _variable(self, name: str) -> str:
        """Return the variable of an attribute, which is read once; NaN if it is missing."""
        if name not in self._variables:
            table, dot, _ = name.partition(".")
            found = f"{self._row(table)}[{name!r}]" if dot else f"own({name!r})"
            variable = self._variables[name] = f"value{len(self._variables)}"
            self.reading.append(f"    {variable} = {found}")
            self.reading.append(f"    {variable} = nan if {variable} is None else float({variable})")
        return self._variables[name]

    def _row(self, table: str) -> str:
        """Return the variable of an event's row in a table, which is looked up once."""
        if table not in self._variables:
            row = self._variables[table] = f"row{len(self._variables)}"
            rows = self._bound("rows", rows_of(self._tables[table]).of_one)
            self.reading.append(f"    {row} = {rows}(event)")
        return self._variables[table]
