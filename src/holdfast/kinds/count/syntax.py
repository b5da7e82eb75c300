"""The statement of counts: its class, parser and printer. A new clause needs a line in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import Place
from ...lang.literal import write_text
from ...lang.nodes import (
    as_token,
    as_tree,
    is_tree,
    label_of,
    number_of,
    one_of,
    parts_of,
    place,
    read_clauses,
    text_of,
    word_of,
)
from ...lang.ops import DerivedStatement, Levels, Number
from ...lang.show import label, show_expression
from ...model.count import UNKNOWN, Unknown

if TYPE_CHECKING:
    from lark import Token, Tree


@dataclass(frozen=True, slots=True)
class DefineCount(DerivedStatement):
    """The statement ``state Fire = at least 2 of Smoke within room until fewer than 1``.

    It defines a count of active scopes of a condition. ``least`` and ``fewer`` are numbers, or percentages of
    the roster.
    """

    name: str
    over: str
    least: Number
    within: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    fewer: Number | None = None
    joined: bool = False
    roster: str | None = None
    unknown: Unknown = "left"
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def upstreams(self) -> tuple[str, ...]:
        return (self.over,)

    @property
    def scopes(self) -> Levels:
        return (self.scope,)

    def map_scopes(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> DefineCount:
        return replace(self, scope=change(self.scope))


_SHARES = {Number(50, "%"): "half", Number(100, "%"): "all"}


def show_count(tally: DefineCount) -> str:
    """Return ``state Fire = at least 2 of Smoke within room`` as text."""
    quota = _SHARES.get(tally.least) or f"at least {show_expression(tally.least)}"
    return " ".join([f"state {label(tally.name)} = {quota} of {label(tally.over)}", *_tallying(tally)])


def _tallying(tally: DefineCount) -> Iterator[str]:
    """Yield the clauses of a count as text."""
    if tally.within:
        yield f"within {', '.join(map(label, tally.within))}"
    if tally.scope:
        yield f"scope {', '.join(map(label, tally.scope))}"
    if tally.fewer is not None:
        yield f"until fewer than {show_expression(tally.fewer)}"
    if tally.joined:
        yield "joined"
    if tally.roster is not None:
        yield f"roster {write_text(tally.roster)}"
    if tally.unknown != "left":
        yield f"unknown {tally.unknown}"


_WORDS = {"half": Number(50, "%"), "all": Number(100, "%"), "any": Number(1), "one": Number(1)}


def read_count(parts: list[Any]) -> DefineCount:
    """Parse ``state Fire = at least 2 of Smoke …``."""
    name, quota, over, *clauses = parts
    (amount,) = parts_of(quota)
    least = _share(amount) if is_tree(amount) else _WORDS[str(amount)]
    values = read_clauses(clauses, _clause, notation={"fewer": "until fewer than"})
    return DefineCount(label_of(name), word_of(over), least, **values, at=place(name))


def _share(node: Any) -> Number:
    return number_of([None, as_tree(node).children[0]])


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
