"""The result of translating a rule file: statements, and notes on parts without equivalent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ..definition.app import App
from ..definition.check import check
from ..definition.parse import parse
from ..definition.show import show
from ..errors import DefinitionError
from ..lang.grammar import parse_expression
from ..lang.ops import DeclareTopic, Expression, Name, Statement
from ..lang.rewrite import parts
from ..model.topic import Attribute, Kind, Topic


class Untranslatable(Exception):
    """Raised when a rule or part of it has no equivalent. The message states the reason."""


@dataclass(frozen=True)
class TranslationNote:
    """A note on a part of a rule that was left out or changed, with its line."""

    line: int
    rule: str
    message: str

    def format(self, path: str) -> str:
        """Return the note in the format of compiler messages."""
        return f"{path}:{self.line}: {self.rule}: {self.message}"


@dataclass
class Translation:
    """The statements in the order of the rules, and the notes."""

    statements: list[Statement] = field(default_factory=list)
    notes: list[TranslationNote] = field(default_factory=list)
    topics: dict[str, dict[str, Kind]] = field(default_factory=dict)
    translated: int = 0

    def attribute(self, topic: str, name: str, kind: Kind = "float") -> str:
        """Declare an attribute of a topic, and return its name."""
        known = self.topics.setdefault(topic, {})
        if name not in ("source", "place"):
            known[name] = kind
        return name

    def note(self, line: int, rule: str, message: str) -> None:
        self.notes.append(TranslationNote(line, rule, message))

    def add(self, line: int, rule: str, text: str) -> None:
        """Add a statement if it is valid together with the others. Otherwise add a note."""
        try:
            made = parse(text).statements
            check(App([*self._topics(), *self.statements, *made]))
        except DefinitionError as error:
            self.note(line, rule, f"not translated: {error.message}")
            return
        self.statements += made
        self.translated += 1

    def _topics(self) -> list[DeclareTopic]:
        return [
            DeclareTopic(Topic(name, tuple(Attribute(a, kind) for a, kind in attributes.items())))
            for name, attributes in self.topics.items()
        ]

    def text(self) -> str:
        """Return the text of the definition, without topics that no statement uses."""
        used = {getattr(one, "topic", None) for one in self.statements}
        reported = "".join(show(one) + "\n" for one in self.statements)
        topics = [one for one in self._topics() if one.topic.name in used or one.topic.name in reported]
        return show(App(topics)) + ("\n" if topics else "") + reported


def valid_name(text: str) -> str:
    """Return a valid name that is as similar as possible to a text."""
    name = re.sub(r"\W+", "_", text).strip("_") or "rule"
    return f"_{name}" if name[0].isdigit() else name


def with_names(text: str, known: dict[str, str]) -> Expression:
    """Parse an expression and replace some of its names."""
    return _rename(parse_expression(text), known)


def _rename(op: Expression, known: dict[str, str]) -> Expression:
    if isinstance(op, Name):
        return replace(op, name=known.get(op.name, op.name))
    changed: dict[str, Any] = {
        name: _rename(getattr(op, name), known)
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
    """Translate a duration such as ``1h30m``. A bare number is in seconds."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return f"{text} s"
    found = _DURATION.findall(text)
    if not found or "".join(a + b for a, b in found) != text:
        raise Untranslatable(f"'{text}' is not a duration")
    if len(found) == 1 and found[0][1] in _UNITS:
        return f"{found[0][0]} {_UNITS[found[0][1]]}"
    return f"{sum(float(number) * _SECONDS[unit] for number, unit in found):.12g} s"
