"""Translation of Prometheus alerting rules: ``expr``, ``for``, ``keep_firing_for``."""

from __future__ import annotations

import re
from typing import Any

from .documents import Mapped, as_list, documents
from .expressions import ExpressionParser, QuerySeries
from .state import TranslatedRule, state
from .translation import Translation, Untranslatable, duration, valid_name

_SIGNS = {sign: sign for sign in ("==", "!=", ">", "<", ">=", "<=")}
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
_OVER_TIME = re.compile(r"(avg|min|max|sum|count|stddev|last)_over_time$")
_ABSENT = re.compile(r"absent(?:_over_time)?$")
_MATCHER = re.compile(r"""\s*(\w+)\s*(=~|!~|!=|=)\s*(?:"([^"]*)"|'([^']*)')\s*(?:,|$)""")
_RANGE = re.compile(r"\[([\w.]+)\]")
_WORDS = {"and", "or", "unless", "bool", "on", "ignoring", "by", "without", "group_left", "group_right"}
STALE = "5 min"
"""Prometheus treats a series as absent after this time without a sample."""


def translate(text: str) -> Translation:
    """Translate the alerts of a rule file."""
    into = Translation()
    for document in documents(text):
        groups = as_list(document.get("groups")) if isinstance(document, Mapped) else []
        for rule in (r for group in groups if isinstance(group, Mapped) for r in as_list(group.get("rules"))):
            if isinstance(rule, Mapped):
                _rule(into, rule)
            else:
                into.note(1, "rule", f"not translated: {rule!r:.40} is no rule")
    return into


def _rule(into: Translation, rule: Mapped) -> None:
    if "record" in rule:
        why = "not translated: a recording rule computes a series"
        into.note(rule.lines["record"], str(rule["record"]), why)
        return
    name, line = valid_name(str(rule.get("alert", "rule"))), rule.lines.get("expr", rule.line)
    try:
        text = re.sub(r"#[^\n]*", "", str(rule.get("expr", "")))
        reading = ExpressionParser(text, _Selectors(into).read, _SIGNS)
        enter = reading.expression()
        hold, keep = (_length(rule, word) for word in ("for", "keep_firing_for"))
        state(into, line, TranslatedRule(name, enter, None, tuple(reading.found), hold, keep))
    except Untranslatable as error:
        into.note(line, name, f"not translated: {error}")
        return
    for word in ("labels", "annotations"):
        if rule.get(word):
            format = ", ".join(map(str, rule[word]))
            into.note(rule.lines[word], name, f"{word} ({format}) are left to the sink that tells people")


def _length(rule: Mapped, word: str) -> str | None:
    value = str(rule.get(word) or "")
    return None if not value.strip("0smh") else duration(value)


class _Selectors:
    """A parser of selectors, and of functions over a range of them."""

    def __init__(self, into: Translation) -> None:
        self._into = into

    def read(self, text: str, at: int) -> tuple[QuerySeries | str, int] | None:
        """Parse a series at an offset.

        Return it with the offset after it, or ``None`` if there is no series.
        """
        found = _NAME.match(text, at)
        if found is None:
            return None
        name, end = found[0], found.end()
        if name in _WORDS:
            raise Untranslatable(f"'{name}' joins series, which has no like here")
        if name in _REASONS and re.match(r"\s*(by|without)\b", text[end:]):
            raise Untranslatable(f"{name}() {_REASONS[name]}")
        if re.match(r"\s*\(", text[end:]):
            return self._function(name, text, end)
        series, end, window = self._selector(text, at)
        if window is not None:
            raise Untranslatable("a range of samples stands where one value is meant")
        return series, end

    def _function(self, name: str, text: str, end: int) -> tuple[QuerySeries | str, int]:
        opening = text.index("(", end)
        if found := _OVER_TIME.match(name):
            series, end, window = self._selector(text, opening + 1)
            end = self._closing(text, end)
            if window is None:
                raise Untranslatable(f"{name} has no range")
            if found[1] == "last":
                return series, end
            return QuerySeries(series.topic, series.where, found[1], duration(window)), end
        if _ABSENT.match(name):
            series, end, window = self._selector(text, opening + 1)
            raise Untranslatable(
                f"nobody can say whose silence {name} is; write: state {valid_name(series.topic)}_silent on "
                f"{series.topic} [silent {STALE if window is None else duration(window)}] per source, "
                "with a roster of who must speak"
            )
        raise Untranslatable(f"{name}() {_REASONS.get(name, 'has no like here')}")

    def _selector(self, text: str, at: int) -> tuple[QuerySeries, int, str | None]:
        while text[at : at + 1].isspace():
            at += 1
        found = _NAME.match(text, at)
        if found is None:
            raise Untranslatable("a series without a name has no like here")
        topic, end = valid_name(found[0]), found.end()
        where: tuple[str, ...] = ()
        if text[end : end + 1] == "{":
            closing = text.index("}", end)
            where, end = self._matchers(topic, text[end + 1 : closing]), closing + 1
        window = _RANGE.match(text, end)
        if window is not None:
            end = window.end()
        if re.match(r"\s*(offset|@)\b", text[end:]):
            raise Untranslatable("'offset' looks at the past, which has no like in a state")
        return QuerySeries(topic, where), end, None if window is None else window[1]

    def _matchers(self, topic: str, text: str) -> tuple[str, ...]:
        found, at = [], 0
        while text[at:].strip():
            match = _MATCHER.match(text, at)
            if match is None:
                raise Untranslatable(f"'{text[at:].strip()}' is no matcher of labels")
            label, sign, value = match[1], match[2], match[3] if match[3] is not None else match[4]
            at = match.end()
            if label == "instance":
                label = "source"
            found.append(self._matcher(self._into.attribute(topic, label, "text"), sign, value))
        return tuple(found)

    @staticmethod
    def _matcher(label: str, sign: str, value: str) -> str:
        if sign in ("=", "!="):
            return f'{label} {"==" if sign == "=" else "!="} "{value}"'
        if re.search(r"[^\w|\- ]", value):
            raise Untranslatable(f"the pattern '{value}' has no like here")
        choices = " || ".join(f'{label} == "{one}"' for one in value.split("|"))
        return f"({choices})" if sign == "=~" else f"!({choices})"

    @staticmethod
    def _closing(text: str, end: int) -> int:
        found = re.match(r"\s*\)", text[end:])
        if found is None:
            raise Untranslatable("a function has more than one series")
        return end + found.end()


_REASONS: dict[str, Any] = {
    "rate": "computes a rate of a counter; publish the rate, or use the difference",
    "irate": "computes a rate of a counter; publish the rate",
    "increase": "computes the growth of a counter; publish the growth",
    "histogram_quantile": "computes a quantile; publish it as a topic of its own",
    "predict_linear": "looks into the future",
    "sum": "adds up over label sets; count the states instead: state … = at least 2 of …",
    "count": "counts label sets; count the states instead: state … = at least 2 of …",
    "avg": "averages over label sets; write a component with a query without 'each'",
    "max": "looks at several label sets; write a component with a query without 'each'",
    "min": "looks at several label sets; write a component with a query without 'each'",
}
