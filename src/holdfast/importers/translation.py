"""What becomes of a rule file: statements, and notes on what was left out, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DefinitionError
from ..lang.app import App
from ..lang.check import check
from ..lang.ops import DeclareTopic, Expression, Name, Statement
from ..lang.parse import parse, parse_expression
from ..lang.rewrite import parts
from ..lang.show import show
from ..model.topic import Attribute, Kind, Topic


class Untranslatable(Exception):
    """A rule, or part of one, that has no like here; the message says why."""


@dataclass(frozen=True)
class Note:
    """What was left out or changed, and in which line it stood."""

    line: int
    rule: str
    message: str

    def shown(self, path: str) -> str:
        """As a compiler would say it."""
        return f"{path}:{self.line}: {self.rule}: {self.message}"


@dataclass
class Translation:
    """Statements as they were found, and notes."""

    statements: list[Statement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    topics: dict[str, dict[str, Kind]] = field(default_factory=dict)
    translated: int = 0

    def attribute(self, topic: str, name: str, kind: Kind = "float") -> str:
        """Note that a topic has an attribute; the names of both as they may be written."""
        known = self.topics.setdefault(topic, {})
        if name not in ("source", "place"):
            known[name] = kind
        return name

    def note(self, line: int, rule: str, message: str) -> None:
        self.notes.append(Note(line, rule, message))

    def add(self, line: int, rule: str, text: str) -> None:
        """Add a statement, if it is right together with what is there; else say why it is not."""
        try:
            made = parse(text).statements
            check(App([*self._declared(), *self.statements, *made]))
        except DefinitionError as error:
            self.note(line, rule, f"not translated: {error.message}")
            return
        self.statements += made
        self.translated += 1

    def _declared(self) -> list[DeclareTopic]:
        return [
            DeclareTopic(Topic(name, tuple(Attribute(a, kind) for a, kind in attributes.items())))
            for name, attributes in self.topics.items()
        ]

    def text(self) -> str:
        """The definition; topics that nothing is left of are left out."""
        used = {getattr(one, "topic", None) for one in self.statements}
        told = "".join(show(one) + "\n" for one in self.statements)
        topics = [one for one in self._declared() if one.topic.name in used or one.topic.name in told]
        return show(App(topics)) + ("\n" if topics else "") + told


def named(text: str) -> str:
    """A name that can be written, as near as possible to a text."""
    name = re.sub(r"\W+", "_", text).strip("_") or "rule"
    return f"_{name}" if name[0].isdigit() else name


def with_names(text: str, known: dict[str, str]) -> Expression:
    """An expression in which some names stand for others."""
    return _renamed(parse_expression(text), known)


def _renamed(op: Expression, known: dict[str, str]) -> Expression:
    if isinstance(op, Name):
        return replace(op, name=known.get(op.name, op.name))
    changed: dict[str, Any] = {
        name: _renamed(getattr(op, name), known)
        for name in ("left", "right", "arg", "low", "high")
        if getattr(op, name, None) in parts(op)
    }
    return replace(op, **changed) if changed else op


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y|u|µ)")
_UNITS = {"ms": "ms", "s": "s", "m": "min", "h": "h"}
_SECONDS = {
    "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000, "u": 1e-6, "µ": 1e-6,
}  # fmt: skip


def duration(text: str) -> str:
    """``1h30m`` as it is written here; a bare number is in seconds."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return f"{text} s"
    found = _DURATION.findall(text)
    if not found or "".join(a + b for a, b in found) != text:
        raise Untranslatable(f"'{text}' is not a duration")
    if len(found) == 1 and found[0][1] in _UNITS:
        return f"{found[0][0]} {_UNITS[found[0][1]]}"
    return f"{sum(float(number) * _SECONDS[unit] for number, unit in found):.12g} s"
