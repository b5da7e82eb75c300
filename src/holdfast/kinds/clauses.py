"""Parsers of clauses that several kinds share. A clause of one kind stays in the package of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lang.nodes import as_token, duration, late_of

if TYPE_CHECKING:
    from lark import Token, Tree


def delivery_clause(node: Tree[Token], *, corrects: bool = False) -> tuple[str, object]:
    """Parse ``timely``, ``ordered 30 s`` or ``late apply``; with ``corrects`` also ``late correct``."""
    match node.data, list(node.children):
        case "timely", []:
            return "wait", None
        case "ordered", [wait]:
            return "wait", duration(wait)
        case "late", [word, within]:
            return "late", late_of(as_token(word), within, corrects=corrects)
        case other:
            raise AssertionError(other)
