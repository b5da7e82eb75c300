"""Many predicates over one event: a Python function that is written for them.

A closure for each part of a predicate costs a call for each; here what compares floats, which is nearly all
of it, stands in one function that reads an attribute once.  The rest it asks of ``scalar``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    Expression,
    Name,
    Negative,
    Number,
    Or,
    Truth,
)
from ..lang.rewrite import names
from ..model.event import Event
from ..model.table import Table
from ..model.topic import FIXED, Topic
from . import scalar
from .tables import looked_up, looking_up_one

Marks = Callable[[Event], int]


def marks(predicates: Iterable[tuple[Expression, int]], topic: Topic, tables: Sequence[Table] = ()) -> Marks:
    """The marks, set together, of all core predicates that hold at an event."""
    writer = _Writer(topic, tables)
    tests = []
    for op, mark in predicates:
        if op != Truth(False):
            test = writer.predicate(op) or writer.asked(op)
            tests.append(f"    if {test}: held |= {mark}" if op != Truth(True) else f"    held |= {mark}")
    lines = ["def marks(event):", *writer.reading, "    held = 0", *tests, "    return held"]
    exec("\n".join(lines), writer.known)
    written: Marks = writer.known["marks"]
    return written


class _Writer:
    """Writes what it can of predicates; ``reading`` are the lines before them, ``known`` the names there."""

    def __init__(self, topic: Topic, tables: Sequence[Table]) -> None:
        self._topic, self._tables = topic, {table.name: table for table in tables}
        self._join = looking_up_one(tables)
        self._variables: dict[str, str] = {}
        self.known: dict[str, Any] = {"nan": math.nan}
        self.reading = ["    own = event.attributes.get"]

    def asked(self, op: Expression) -> str:
        """A predicate that is not written out."""
        test, join = scalar.predicate(op, self._topic), self._join
        looks_up = any("." in name for name in names(op))
        return self._bound("test", (lambda event: test(join(event))) if looks_up else test) + "(event)"

    def _bound(self, word: str, value: Any) -> str:
        name = f"{word}{len(self.known)}"
        self.known[name] = value
        return name

    def predicate(self, op: Expression) -> str | None:
        """A predicate as Python has it; ``None`` if it needs more than comparisons of floats."""
        match op:
            case And(left, right) | Or(left, right):
                a, b = self.predicate(left), self.predicate(right)
                sign = "and" if isinstance(op, And) else "or"
                return None if a is None or b is None else f"({a} {sign} {b})"
            case Compare(sign, left, right) if sign != "!=":  # of what is missing nothing is equal
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
            case _ if scalar.kind(op, self._topic) == "int":  # exact, and missing where it is too large
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
        """An attribute, read once; NaN if it is missing."""
        if name not in self._variables:
            table, dot, _ = name.partition(".")
            found = f"{self._row(table)}[{name!r}]" if dot else f"own({name!r})"
            variable = self._variables[name] = f"value{len(self._variables)}"
            self.reading.append(f"    {variable} = {found}")
            self.reading.append(f"    {variable} = nan if {variable} is None else float({variable})")
        return self._variables[name]

    def _row(self, table: str) -> str:
        """The row of an event in a table, looked up once."""
        if table not in self._variables:
            row = self._variables[table] = f"row{len(self._variables)}"
            rows = self._bound("rows", looked_up(self._tables[table]).of_one)
            self.reading.append(f"    {row} = {rows}(event)")
        return self._variables[table]
