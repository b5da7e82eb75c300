"""Translation of alerts in Kapacitor's TICKscripts.

It covers levels with their reset expressions, durations, and deadmen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..kernels.functions import AGGREGATES
from .translation import Translation, Untranslatable, duration, valid_name

LEVELS = ("info", "warn", "crit")
_FUNCTIONS: dict[str, str] = {"mean": "avg", **{name: name for name in AGGREGATES if name != "avg"}}
_TOLD = (
    "id", "message", "details", "log", "slack", "email", "topic", "post", "exec", "pagerDuty", "pagerDuty2",
    "opsGenie", "opsGenie2", "victorOps", "telegram", "hipChat", "sensu", "snmpTrap", "tcp", "mqtt", "kafka",
    "alerta", "category", "inhibit", "levelTag", "levelField", "idTag", "idField", "messageField",
    "durationField", "teams", "discord",
)  # fmt: skip
_SILENT = ("stateChangesOnly", "history", "noRecoveries", "all", "flapping", "inhibit")
_IGNORED = ("from", "window", "barrier", "log", "stream", "default", "where", "groupBy")
_VAR = re.compile(r"var\s+(\w+)\s*=\s*")
_STRING = re.compile(r"'''.*?'''|'(?:\\'|[^'])*'", re.DOTALL)


class ScriptCall(NamedTuple):
    """``|alert()`` or ``.crit(…)``: a node of the pipeline, or a property of the node before."""

    kind: str
    name: str
    arguments: str
    line: int


@dataclass
class Alert:
    """An alert under translation, with the settings of the nodes before it."""

    into: Translation
    variables: dict[str, str]
    name: str
    line: int
    topic: str = ""
    per: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    window: str | None = None
    function: tuple[str, str, str] | None = None
    """A function over the window: its name here, the field, and the name of its result."""
    held: tuple[str, str, str] | None = None
    """A predicate with a duration or count: its text, the unit, and the name of its length."""


def translate(text: str, name: str = "alert") -> Translation:
    """Translate the alerts of a script. A script with syntax errors gives only a note."""
    into = Translation()
    try:
        _translate(into, text, name)
    except Untranslatable as error:
        into.note(1, valid_name(name), f"not translated: {error}")
    return into


def _translate(into: Translation, text: str, name: str) -> None:
    script = re.sub(r"(?m)//[^\n]*", lambda found: " " * len(found[0]), text)
    variables = dict(_literals(script))
    chains: dict[str, list[ScriptCall]] = {}
    count = 0
    for variable, start, calls in _pipelines(script, variables, chains):
        if variable is not None:
            chains[variable] = calls
        elif start is None and not calls:
            continue
        found = [i for i, call in enumerate(calls) if call.kind == "|" and call.name in ("alert", "deadman")]
        for at in found:
            if calls[at] in (call for name, some in chains.items() if name != variable for call in some):
                continue  # told where it was named
            count += 1
            own = valid_name(name) if count == 1 else f"{valid_name(name)}_{count}"
            try:
                _alert(into, own, calls, at, variables)
            except Untranslatable as error:
                into.note(calls[at].line, own, f"not translated: {error}")
    if not count:
        into.note(1, valid_name(name), "there is no alert in it")


# --- the script --------------------------------------------------------------------------------------


def _literals(script: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of a script that are values or predicates."""
    for found in _VAR.finditer(script):
        rest = script[found.end() :]
        if re.match(r"(stream|batch)\b|\w+\s*\n?\s*[|@]", rest):
            continue
        end = re.search(r"\n\s*(?=var\s|\w+\s*(?:\n\s*)?[|@]|stream\b|batch\b)|\Z", rest)
        yield found[1], rest[: end.start() if end else None].strip()


def _pipelines(
    script: str, variables: dict[str, str], chains: dict[str, list[ScriptCall]]
) -> Iterator[tuple[str | None, str | None, list[ScriptCall]]]:
    """Yield each pipeline: its variable, its start, and its nodes from the first on."""
    for found in re.finditer(r"(?m)^[ \t]*(?:var\s+(\w+)\s*=\s*)?(\w+)(?=\s*[|@])", script):
        variable, start = found[1], found[2]
        if start in variables:
            continue
        calls = _calls(script, found.end())
        if start == "batch":
            calls.insert(0, ScriptCall("|", "batch", "", script.count("\n", 0, found.start()) + 1))
        yield variable, start, [*chains.get(start, ()), *calls]


def _calls(script: str, at: int) -> list[ScriptCall]:
    """Return the nodes of the pipeline at an offset, with their properties."""
    found: list[ScriptCall] = []
    while match := re.compile(r"\s*([|.@])\s*(\w+)\s*\(").match(script, at):
        end = _closing(script, match.end())
        line = script.count("\n", 0, match.start(2)) + 1
        found.append(ScriptCall(match[1], match[2], script[match.end() : end].strip(), line))
        at = end + 1
    return found


def _closing(script: str, at: int) -> int:
    """Return the offset of the parenthesis that closes the one before ``at``."""
    depth = 1
    while at < len(script):
        if string := _STRING.match(script, at):
            at = string.end()
            continue
        if script[at] == '"' and (at := script.find('"', at + 1)) < 0:
            raise Untranslatable("a quotation mark is not closed")
        depth += {"(": 1, ")": -1}.get(script[at], 0)
        if not depth:
            return at
        at += 1
    raise Untranslatable("a parenthesis is not closed")


# --- alerts ------------------------------------------------------------------------------------------


def _alert(into: Translation, name: str, calls: list[ScriptCall], at: int, variables: dict[str, str]) -> None:
    known, node = Alert(into, variables, name, calls[at].line), ""
    for call in calls[:at]:
        node = call.name if call.kind == "|" else node
        _before(known, node, call)
    if not known.topic:
        raise Untranslatable("it does not say its measurement")
    for tag in known.per:
        into.attribute(known.topic, tag, "text")
    if calls[at].name == "deadman":
        threshold, _, interval = calls[at].arguments.partition(",")
        if _value(threshold, variables) not in ("0.0", "0"):
            raise Untranslatable("deadman counts readings; only where it waits for one (0.0) is that silence")
        length = duration(_value(interval.split(",")[0].strip(), variables))
        if not into.topics.get(known.topic):
            into.attribute(known.topic, "value")
        into.add(known.line, name, f"state {name} on {known.topic} [silent {length}] per {_per(known)}")
        return
    properties = {}
    for call in calls[at + 1 :]:
        if call.kind == "|":
            break
        properties[call.name] = call
    _add_levels(known, properties)


def _before(known: Alert, node: str, call: ScriptCall) -> None:
    """Apply the settings of a node before the alert."""
    variables = known.variables
    match node, call.name:
        case "batch", _:
            raise Untranslatable("a batch task queries a database; publish what it reads")
        case ("from", "measurement"):
            known.topic = valid_name(_value(call.arguments, variables).strip("'"))
        case ("from" | "groupBy", "groupBy"):
            tags = [tag.strip().strip("'") for tag in call.arguments.split(",")]
            known.per = [valid_name(tag) for tag in tags if tag not in ("*", "")]
        case (("from" | "where"), "where"):
            known.where.append(_value(call.arguments, variables))
        case "window", ("period"):
            known.window = duration(_value(call.arguments, variables))
        case name, same if name == same and name in _FUNCTIONS:
            column = call.arguments.split(",")[0].strip().strip("'")
            known.function = (_FUNCTIONS[name], column, name)
        case name, "as" if name in _FUNCTIONS and known.function is not None:
            known.function = (*known.function[:2], call.arguments.strip("'"))
        case (("stateDuration" | "stateCount") as name, same) if name == same:
            held = _value(call.arguments, variables).removeprefix("lambda:").strip()
            by_count = held, "readings", "state_count"
            known.held = by_count if name == "stateCount" else (held, "1 s", "state_duration")
        case "stateDuration", "unit" if known.held is not None:
            known.held = (known.held[0], duration(_value(call.arguments, variables)), known.held[2])
        case (("stateDuration" | "stateCount"), "as") if known.held is not None:
            known.held = (*known.held[:2], call.arguments.strip("'"))
        case name, _ if name not in _IGNORED and name not in _FUNCTIONS:
            raise Untranslatable(f"|{name}() has no like here")


def _per(known: Alert) -> str:
    return ", ".join(known.per) or "source"


def _add_levels(known: Alert, properties: dict[str, ScriptCall]) -> None:
    rungs = []
    for level in LEVELS:
        if level in properties:
            enter = _predicate(known, properties[level].arguments)
            reset = properties.get(f"{level}Reset")
            leave = _predicate(known, reset.arguments) if reset else None
            rungs.append(Rung(level, *_thresholds(known, enter, leave)))
    if not rungs:
        raise Untranslatable("it has neither info nor warn nor crit")
    _add(known, rungs)
    for word, call in properties.items():
        if (message := _left_out(word, call)) is not None:
            known.into.note(call.line, known.name, message)
    if len(rungs) > 1 and any(f"{one}Reset" in properties for one in LEVELS):
        message = "every level keeps a bit of its own here; there only the level that is held latches"
        known.into.note(known.line, known.name, message)


def _left_out(word: str, call: ScriptCall) -> str | None:
    """Return the note for a property that is not translated, or ``None``."""
    if word in _TOLD:
        return f".{word}() is left to the sink that tells people"
    if word == "flapping":
        return ".flapping() is not translated: a band or a guard does it"
    if word == "stateChangesOnly" and call.arguments:
        return "reminders are not translated: a change is told once"
    is_known = word in (*LEVELS, *(f"{one}Reset" for one in LEVELS), *_SILENT)
    return None if is_known else f".{word}() is not translated"


class Rung(NamedTuple):
    """One level of an alert: its enter and exit predicates, and the minimum duration of its entrance."""

    level: str
    enter: str
    leave: str
    hold: str


def _thresholds(known: Alert, enter: str, leave: str | None) -> tuple[str, str, str]:
    """Return the enter predicate, the exit predicate, and the minimum duration of a level."""
    if known.held is None:
        return enter, leave or f"!({enter})", ""
    text, unit, called = known.held
    found = re.fullmatch(rf"{valid_name(called)}\s*>=?\s*([\d.]+)", enter)
    if found is None:
        raise Untranslatable(f"'{enter}' is not a comparison of {called} alone")
    known.into.topics[known.topic].pop(valid_name(called), None)
    held = _predicate(known, text)
    if unit == "readings":
        return held, leave or f"!({held})", f" for {int(float(found[1]))} readings"
    number, _, word = unit.partition(" ")
    return held, leave or f"!({held})", f" for {float(number) * float(found[1]):g} {word}"


def _add(known: Alert, rungs: list[Rung]) -> None:
    where = [_predicate(known, text) for text in known.where]
    if known.window is not None and known.function is not None:
        if where:
            raise Untranslatable("a function over some of a topic's readings has no like here")
        for rung in rungs:
            own = known.name if len(rungs) == 1 else f"{known.name}_{rung.level}"
            known.into.add(known.line, own, _add_window(known, own, rung))
        return
    if known.window is not None or known.function is not None:
        raise Untranslatable("a window needs a function, and a function a window")
    conditions = "".join(f"({one}) && " for one in where)
    pairs = [f"[{conditions}({rung.enter}){rung.hold}; {conditions}({rung.leave})]" for rung in rungs]
    if len(pairs) == 1:
        text = f"state {known.name} on {known.topic} {pairs[0]}"
    else:
        each = ", ".join(f"{rung.level} {pair}" for rung, pair in zip(rungs, pairs, strict=True))
        text = f"levels {known.name} on {known.topic}: {each}"
    known.into.add(known.line, known.name, f"{text} per {_per(known)}")


def _add_window(known: Alert, name: str, rung: Rung) -> str:
    assert known.function is not None
    function, column, called = known.function
    known.into.topics[known.topic].pop(valid_name(called), None)
    known.into.attribute(known.topic, valid_name(column))
    value = f"A.{valid_name(column)}"
    enter, leave = (re.sub(rf"\b{valid_name(called)}\b", value, text) for text in (rung.enter, rung.leave))
    query = f"{function} {known.topic} over {known.window} each {_per(known)}"
    return f"state {name}\n  A = {query}\n  enter {enter}{rung.hold}\n  exit {leave}"


# --- predicates --------------------------------------------------------------------------------------


def _value(text: str, variables: dict[str, str]) -> str:
    return variables.get(text.strip(), text).strip()


def _predicate(known: Alert, text: str) -> str:
    """Translate a lambda. The fields that it names become attributes."""
    into, topic, variables = known.into, known.topic, known.variables
    text = _value(text, variables).removeprefix("lambda:").strip()
    if found := re.search(r"[=!]~", text):
        raise Untranslatable(f"a pattern ({found[0]}) has no like here")
    text = re.sub(r'isPresent\(\s*"[^"]*"\s*\)', "true", text)
    text = re.sub(r"\b(?:float|int)\(([^()]*)\)", r"\1", text)
    strings = re.findall(r'"([^"]+)"\s*[=!]=\s*\'', text) + re.findall(r'\'\s*[=!]=\s*"([^"]+)"', text)
    for name in re.findall(r'"([^"]+)"', text):
        is_text = name in strings or into.topics.get(topic, {}).get(valid_name(name)) == "text"
        into.attribute(topic, valid_name(name), "text" if is_text else "float")
    text = re.sub(r'"([^"]+)"', lambda found: f"\0{valid_name(found[1])}\0", text)
    text = re.sub(r"'([^']*)'", r'"\1"', text)
    for name, value in variables.items():
        text = re.sub(rf"(?<![\w\0]){name}(?![\w\0])", value.strip(), text)
    if found := re.search(r"(?<!\0)\b(\w+)\(", text):
        raise Untranslatable(f"{found[1]}() has no like here")
    text = re.sub(r"\bAND\b", "&&", re.sub(r"\bOR\b", "||", text)).replace("\0", "")
    text = re.sub(r"\bTRUE\b", "true", re.sub(r"\bFALSE\b", "false", text))
    return re.sub(r"\s+", " ", text).strip()
