"""Counts over states become operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import DefinitionError
from ...model.count import UNKNOWN
from ..nodes import as_token, as_tree, label_of, one_of, parts_of, place, signed, text_of, word_of
from ..ops import Number, Tally

if TYPE_CHECKING:
    from lark import Token, Tree

_WORDS = {"half": Number(50, "%"), "all": Number(100, "%"), "any": Number(1), "one": Number(1)}


def tally(parts: list[Any]) -> Tally:
    """``state Fire = at least 2 of Smoke …``."""
    name, quota, over, *clauses = parts
    said: dict[str, Any] = {}
    for node in clauses:
        word, value = _clause(node)
        if word in said:
            raise DefinitionError(
                f"'{'until fewer than' if word == 'fewer' else word}' is given twice", place(node)
            )
        said[word] = value
    return Tally(label_of(name), word_of(over), _quota(quota), **said, at=place(name))


def _quota(node: Tree[Token]) -> Number:
    (part,) = parts_of(node)
    return _share(part) if hasattr(part, "children") else _WORDS[str(part)]


def _share(node: Any) -> Number:
    return signed([None, as_tree(node).children[0]])


def _clause(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case ("within" | "scope") as word, [level]:
            return word, tuple(word_of(as_token(name)) for name in parts_of(level))
        case "fewer", [share]:
            return "fewer", _share(share)
        case "joined", []:
            return "joined", True
        case "roster", [path]:
            return "roster", text_of(as_token(path))
        case "dead", [word]:
            return "unknown", one_of(as_token(word), UNKNOWN, "what becomes of members that are unknown")
        case other:
            raise AssertionError(other)
