"""The statement of mutes: its classes, parser and printer. A new cause needs a class and a case in parser and
printer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import Place
from ...lang.literal import write_text
from ...lang.nodes import as_token, duration, number_of, parts_of, place, text_of, word_of
from ...lang.ops import Number, Statement
from ...lang.show import label, show_expression
from ...model.instant import Duration, show_duration

if TYPE_CHECKING:
    from lark import Token, Tree


@dataclass(frozen=True, slots=True)
class During:
    """The cause ``during "Sat 00:00 – Mon 06:00" in "Europe/Berlin"``: a schedule."""

    spans: str
    zone: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While:
    """The cause ``while Parent``: another condition is active."""

    parent: str


@dataclass(frozen=True, slots=True)
class Beyond:
    """The cause ``beyond 5 within floor``: more than 5 scopes of a floor are active."""

    most: Number
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefineMute(Statement):
    """The statement ``mute Child while Parent ordered 30 s``. It withholds the notifications of a
    condition."""

    target: str
    cause: During | While | Beyond
    wait: Duration = 0
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def subject(self) -> str:
        return f"mute {self.target}"

    @property
    def mutes(self) -> str:
        return self.target

    @property
    def upstreams(self) -> tuple[str, ...]:
        return (self.cause.parent,) if isinstance(self.cause, While) else ()


def show_mute(mute: DefineMute) -> str:
    """Return a mute, such as ``mute Child while Parent``, as text."""
    wait = f" ordered {show_duration(mute.wait)}" if mute.wait else ""
    return f"mute {label(mute.target)} {_show_cause(mute.cause)}{wait}"


def _show_cause(cause: During | While | Beyond) -> str:
    match cause:
        case During(spans, zone):
            return f"during {write_text(spans)}" + ("" if zone is None else f" in {write_text(zone)}")
        case While(parent):
            return f"while {label(parent)}"
        case Beyond(most, within):
            siblings = f" within {', '.join(map(label, within))}" if within else ""
            return f"beyond {show_expression(most)}{siblings}"


def read_mute(parts: list[Any]) -> DefineMute:
    """Parse a mute: ``mute Warm during …``, ``mute Child while Parent``, or ``mute Warm beyond 5 within
    floor``."""
    target, cause, wait = parts
    return DefineMute(word_of(target), _cause(cause), 0 if wait is None else duration(wait), place(target))


def _cause(node: Tree[Token]) -> During | While | Beyond:
    match node.data, list(node.children):
        case "during", [spans, zone]:
            at = place(spans)
            return During(text_of(as_token(spans)), None if zone is None else text_of(as_token(zone)), at)
        case "whilst", [parent]:
            return While(word_of(as_token(parent)))
        case "beyond", [most, level]:
            names = () if level is None else tuple(word_of(as_token(name)) for name in parts_of(level))
            return Beyond(number_of([None, most]), names)
        case other:
            raise AssertionError(other)
