"""Translation of Zabbix triggers, with problem and recovery expressions, from templates in YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..kernels.functions import AGGREGATES
from .documents import Mapped, as_list, documents
from .expressions import ExpressionParser, QuerySeries
from .state import TranslatedRule, state
from .translation import Translation, Untranslatable, duration, valid_name

_SIGNS = {"=": "==", "<>": "!=", ">": ">", "<": "<", ">=": ">=", "<=": "<="}
_CALL = re.compile(r"(\w+)\(/([^/]*)/((?:[^,()\[\]]|\[[^\]]*\])+)((?:,[^()]*)?)\)")
_OLD = re.compile(r"\{([^:{}]+):((?:[^\[\]{}.]|\.(?!\w+\()|\[[^\]]*\])+)\.(\w+)\(([^)]*)\)\}")
_NODATA = re.compile(r"\s*nodata\(/([^/]*)/((?:[^,()\[\]]|\[[^\]]*\])+),\s*([\w.]+)\s*\)\s*=\s*1\s*")
_MACRO = re.compile(r"\{\$[^{}]+\}")


def translate(text: str) -> Translation:
    """Translate the triggers of an exported template."""
    into = Translation()
    for document in documents(text):
        macros = {str(one["macro"]): str(one.get("value", "")) for one in _all(document, "macro")}
        triggers = [one for one in _all(document, "expression") if "name" in one or "description" in one]
        known: dict[str, str] = {}
        for trigger in triggers:
            before = into.translated
            _trigger(into, trigger, macros)
            if into.translated > before:
                known[_title(trigger)] = valid_name(_title(trigger))
        for trigger in triggers:
            _dependencies(into, trigger, known)
    return into


def _all(node: Any, key: str) -> Iterator[Mapped]:
    """Yield the mappings of a document that have a key, in the order of the text."""
    if isinstance(node, Mapped):
        if key in node:
            yield node
        for name, value in node.items():
            if name != "dependencies":
                yield from _all(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _all(value, key)


def _title(trigger: Mapped) -> str:
    return str(trigger.get("name") or trigger.get("description"))


def _trigger(into: Translation, trigger: Mapped, macros: dict[str, str]) -> None:
    name, line = valid_name(_title(trigger)), trigger.lines["expression"]
    try:
        expression = _expand_macros(into, trigger, "expression", macros)
        if found := _NODATA.fullmatch(expression):
            topic, length = valid_name(found[2]), duration(found[3])
            into.attribute(topic, "value")
            into.add(line, name, f"state {name} on {topic} [silent {length}] per source")
        else:
            state(into, line, _condition(into, trigger, name, expression, macros))
    except Untranslatable as error:
        into.note(line, name, f"not translated: {error}")
        return
    for word in ("priority", "manual_close", "tags", "opdata", "url"):
        if trigger.get(word):
            into.note(trigger.lines[word], name, f"{word} is left to the sink that tells people")


def _condition(
    into: Translation, trigger: Mapped, name: str, expression: str, macros: dict[str, str]
) -> TranslatedRule:
    problem = ExpressionParser(expression, _Calls().read, _SIGNS)
    enter = problem.expression()
    mode = str(trigger.get("recovery_mode", "EXPRESSION"))
    leave: str | None = None
    if mode in ("NONE", "2"):
        leave = "false"
    elif mode in ("RECOVERY_EXPRESSION", "1"):
        text = _expand_macros(into, trigger, "recovery_expression", macros)
        recovery = ExpressionParser(text, _Calls().read, _SIGNS)
        recovery.found = problem.found
        leave = f"({recovery.expression()}) && !({enter})"  # both are asked for there
    return TranslatedRule(name, enter, leave, tuple(problem.found))


def _expand_macros(into: Translation, trigger: Mapped, word: str, macros: dict[str, str]) -> str:
    """Return an expression of a trigger with its macros replaced by their values."""
    text = str(trigger.get(word, ""))
    if "{#" in text:
        raise Untranslatable("a prototype stands for triggers that a discovery finds; use 'per' and a table")
    for macro in dict.fromkeys(_MACRO.findall(text)):
        if macro not in macros:
            raise Untranslatable(f"nothing says what {macro} is")
        message = f"{macro} is {macros[macro]}, its default"
        into.note(trigger.lines[word], valid_name(_title(trigger)), message)
        text = text.replace(macro, macros[macro])
    if "{TRIGGER.VALUE}" in text:
        raise Untranslatable("{TRIGGER.VALUE} is hysteresis by hand; write the exit as a recovery expression")
    return text


def _dependencies(into: Translation, trigger: Mapped, known: dict[str, str]) -> None:
    for other in (one for one in as_list(trigger.get("dependencies")) if isinstance(one, Mapped)):
        child, parent = valid_name(_title(trigger)), str(other.get("name"))
        if _title(trigger) in known and parent in known:
            into.add(other.line, child, f"mute {child} while {known[parent]}")
        else:
            into.note(other.line, child, f"not translated: it depends on '{parent}', which is not here")


class _Calls:
    """A parser of functions of items. All items must be of one host."""

    def __init__(self) -> None:
        self._host: str | None = None

    def read(self, text: str, at: int) -> tuple[QuerySeries | str, int] | None:
        """Parse a function at an offset.

        Return it with the offset after it, or ``None`` if there is no function.
        """
        if found := _CALL.match(text, at):
            function, host, key, rest = found[1], found[2], found[3], found[4].lstrip(",").strip()
        elif found := _OLD.match(text, at):
            host, key, function, rest = found[1], found[2], found[3], found[4].strip()
        else:
            return None
        if self._host not in (None, host):
            raise Untranslatable("it compares items of several hosts")
        self._host = host
        return self._series(function, valid_name(key), rest), found.end()

    @staticmethod
    def _series(function: str, topic: str, rest: str) -> QuerySeries:
        if function == "last" and rest in ("", "#1", "0"):
            return QuerySeries(topic)
        if function in AGGREGATES and re.fullmatch(r"[^#,:][^,:]*", rest):
            return QuerySeries(topic, (), function, duration(rest))
        call = f"{function}(…{',' + rest if rest else ''})"
        if rest.startswith("#"):
            raise Untranslatable(f"{call} counts values; a state has: for 3 readings")
        raise Untranslatable(f"{call} has no like here")
