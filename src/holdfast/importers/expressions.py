"""Parsing of PromQL and Zabbix expressions that compare one series at a time.

One small parser reads both to `QuerySeries` in arithmetic, comparisons, ``and`` and ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .translation import Untranslatable

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?P<suffix>[KMGTsmhdw](?!\w))?)
  | (?P<sign>==|!=|<>|>=|<=|=~|!~|=|>|<|\+|-|\*|/|%|\^|\(|\)|,)
  | (?P<word>[A-Za-z_:][\w:]*)
)""",
    re.VERBOSE,
)
_SUFFIX = {
    "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800,
}  # fmt: skip


@dataclass(frozen=True)
class QuerySeries:
    """A time series in an expression.

    It has a topic, conditions on its attributes, and a function over a window.
    """

    topic: str
    where: tuple[str, ...] = ()
    function: str | None = None
    window: str | None = None


@dataclass
class ExpressionParser:
    """A recursive-descent parser of one expression.

    ``series`` parses a series at an offset of the text, and returns it with the offset after it.
    """

    text: str
    series: Callable[[str, int], tuple[QuerySeries | str, int] | None]
    signs: dict[str, str]
    at: int = 0

    def __post_init__(self) -> None:
        self.found: list[QuerySeries] = []

    def expression(self) -> str:
        """Parse the whole text. Return an expression in which A, B, … stand for the series."""
        made = self._disjunction()
        if self.text[self.at :].strip():
            raise Untranslatable(f"'{self.text[self.at :].strip()[:40]}' has no like here")
        return made

    def _disjunction(self) -> str:
        return self._join("or", "||", lambda: self._join("and", "&&", self._comparison))

    def _join(self, word: str, sign: str, part: Callable[[], str]) -> str:
        made = part()
        while self._take(word):
            made = f"({made}) {sign} ({part()})"
        return made

    def _comparison(self) -> str:
        if self._take("not"):
            return f"!({self._comparison()})"
        made = self._sum()
        while (sign := self._peek()) in self.signs:
            self._take(sign)
            if self._take("bool"):
                raise Untranslatable("'bool' makes a number of a comparison, which has no like here")
            made = f"{made} {self.signs[sign]} {self._sum()}"
        return made

    def _sum(self) -> str:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._atom))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], str]) -> str:
        made = part()
        while (sign := self._peek()) in signs:
            self._take(sign)
            made = f"{made} {sign} {part()}"
        return made

    def _atom(self) -> str:
        if self._take("("):
            inner = self._disjunction()
            if not self._take(")"):
                raise Untranslatable("a parenthesis is not closed")
            return f"({inner})"
        if self._take("-"):
            return f"-{self._atom()}"
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        read = self.series(self.text, self.at)
        if read is not None:
            series, self.at = read
            if isinstance(series, str):
                return series
            if series not in self.found:
                self.found.append(series)
            return chr(ord("A") + self.found.index(series))
        match = _TOKEN.match(self.text, self.at)
        if match is None or match["number"] is None:
            raise Untranslatable(f"'{self.text[self.at :].strip()[:40]}' has no like here")
        self.at = match.end()
        if match["suffix"]:
            return repr(float(match["number"][:-1]) * _SUFFIX[match["suffix"]]).removesuffix(".0")
        return match["number"]

    def _peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return "" if match is None else (match["sign"] or (match["word"] or "").lower())

    def _take(self, wanted: str) -> bool:
        if self._peek() != wanted or (match := _TOKEN.match(self.text, self.at)) is None:
            return False
        self.at = match.end()
        return True
