"""Conversion of definitions to text.

The text is canonical, with as few parentheses as possible: ``parse(show(x)) == x``.
"""

from __future__ import annotations

from ..kinds.registry import kind_of
from ..lang.ops import Expression, Notation, Statement
from ..lang.show import show_expression
from ..lang.show import show_statement as show_core
from .app import App


def show(what: App | Statement | Expression, notation: Notation = "readable") -> str:
    """Return the text of a definition, a statement or an expression.

    With another ``notation``, components are shown as the tables of the thesis.

    >>> from holdfast.lang.ops import Compare, Name, Number
    >>> show(Compare(">", Name("value"), Number(25, "°C")))
    'value > 25 °C'
    """
    if isinstance(what, Statement):
        return show_statement(what, notation)
    if isinstance(what, Expression):
        return show_expression(what)
    return "".join(show_statement(statement, notation) + "\n" for statement in what.statements)


def show_statement(statement: Statement, notation: Notation = "readable") -> str:
    """Return the text of one statement, of any kind."""
    kind = kind_of(statement)
    return show_core(statement) if kind is None else kind.show(statement, notation)
