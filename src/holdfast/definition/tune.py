"""The tunable numbers of a state: the thresholds of its entrance and exit, and its minimum duration.

The threshold of a predicate is its comparison with a constant, anywhere in the predicate. A state with other
numbers is written with as little change to the text as possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DefinitionError, Place, UsageError, did_you_mean
from ..kinds.state.condition import DurationCondition, StateCondition
from ..kinds.state.syntax import DefineState
from ..lang.condition import Checked
from ..lang.linear import MIRRORED
from ..lang.ops import Between, Compare, ComparisonSign, Expression, Name, Number, Truth
from ..lang.rewrite import names, parts, silences, within
from ..model.guard import Care, Hold
from ..model.instant import Duration, show_duration
from .app import App
from .check import check
from .parse import parse
from .show import show

ORDERED = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Threshold:
    """A comparison ``of sign value`` somewhere in a core predicate."""

    of: Expression
    sign: ComparisonSign
    value: float | int
    written: Compare

    @property
    def rises(self) -> bool:
        """Whether greater values satisfy the comparison, as with ``>``."""
        return self.sign in (">", ">=")

    @property
    def is_closed(self) -> bool:
        """Whether the threshold itself satisfies the comparison, as with ``>=``."""
        return self.sign in ("<=", ">=")

    def put(self, predicate: Expression, holds: bool) -> Expression:
        """Return the predicate with the comparison replaced by its outcome."""
        return replace_part(predicate, self.written, Truth(holds))

    def at(self, predicate: Expression, value: float | int) -> Expression:
        """Return the predicate with another threshold."""
        left, right = (Number(value) if isinstance(side, Number) else side for side in parts(self.written))
        return replace_part(predicate, self.written, Compare(self.written.sign, left, right))


@dataclass(frozen=True)
class Tunable:
    """A state whose numbers can be tuned. A predicate without a threshold does not change."""

    condition: StateCondition | DurationCondition
    enter: Threshold | None
    exit: Threshold | None

    @property
    def care(self) -> Care:
        return self.condition.care if isinstance(self.condition, DurationCondition) else Care()

    @property
    def guard(self) -> Duration:
        """The minimum duration of the entrance, in microseconds."""
        return self.care.enter.length

    def excludes(self, enter: float | None, exit: float | None) -> bool:
        """Whether no reading can both start and end the state. Only thresholds of one value are compared."""
        a, b = self.enter, self.exit
        if a is None or b is None or enter is None or exit is None:
            return True
        return a.of != b.of or a.rises == b.rises or _apart(a, b, enter, exit)


def tunable(checked: Checked, name: str, of: str | None = None) -> Tunable:
    """Return the tunable numbers of a state. Raises ``UsageError`` if it has none.

    If predicates have several thresholds, those of attribute ``of`` are used that keep entrance and exit
    apart.
    """
    plain = _states(checked)
    if name not in plain:
        hint = did_you_mean(name, plain) or f"There is {', '.join(plain) or 'none'}."
        raise UsageError(f"--subscription {name}: there is no such state over readings. {hint}")
    condition = plain[name]
    _require_band(condition)
    enters, exits = (
        [threshold for threshold in _thresholds(predicate) if of is None or of in names(threshold.of)]
        for predicate in (condition.enter, condition.exit)
    )
    if not enters and not exits:
        what = "nothing" if of is None else f"no {of}"
        hint = "Compare an attribute with a number, as in [value > 25; value < 22]."
        raise UsageError(f"'{name}' compares {what} with a number, so there is no band to advise. {hint}")
    if len(enters) < 2 and len(exits) < 2:
        return Tunable(condition, enters[0] if enters else None, exits[0] if exits else None)
    bands = [Tunable(condition, a, b) for a in enters for b in exits if _is_band(a, b)]
    if len(bands) == 1:
        return bands[0]
    every = dict.fromkeys(show(enter.written) for enter in (*enters, *exits))
    found = list(dict.fromkeys(n for enter in (*enters, *exits) for n in names(enter.of)))
    remedy = f"Say which with --of {found[0]}" if len(found) > 1 else "Leave one in each predicate"
    raise UsageError(f"'{name}' has several thresholds: {', '.join(every)}.  {remedy}")


def _states(checked: Checked) -> dict[str, StateCondition | DurationCondition]:
    return {
        condition.name: condition
        for condition in checked.conditions
        if isinstance(condition, StateCondition | DurationCondition)
    }


def _is_band(enter: Threshold, exit: Threshold) -> bool:
    """Whether two thresholds of one value keep entrance and exit apart."""
    return enter.of == exit.of and enter.rises != exit.rises and _apart(enter, exit, enter.value, exit.value)


def _apart(a: Threshold, b: Threshold, enter: float, exit: float) -> bool:
    if enter == exit:
        return not (a.is_closed and b.is_closed)
    return exit < enter if a.rises else exit > enter


def _require_band(condition: StateCondition | DurationCondition) -> None:
    """Refuse a state that has more numbers than two thresholds and minimum durations."""
    name = condition.name
    if condition.momentary:
        raise UsageError(f"'{name}' is over as it starts: it has no band, and cannot flap")
    if len(condition.keys) + (condition.forest.depth if condition.forest else 0) > 1:
        raise UsageError(f"'{name}' has scopes within scopes; advise a state of the inner ones alone")
    if isinstance(condition, DurationCondition):
        care = condition.care
        if silences(condition.enter) or silences(condition.exit):
            raise UsageError(f"'{name}' looks at silence, which is not tuned; take it out to be advised")
        if care.enter.readings or care.exit.readings:
            raise UsageError(f"'{name}' has a guard of readings; advice is on guards of time: for 5 min")
        if care != Care(enter=care.enter, exit=care.exit):
            raise UsageError(
                f"'{name}' says how scopes begin, or when they are unknown or forgotten, which is not tuned; "
                "take it out to be advised"
            )


def _thresholds(predicate: Expression) -> Iterator[Threshold]:
    for op in within(predicate):
        match op:
            case Compare(sign, of, Number(value)) if sign in ORDERED:
                yield Threshold(of, sign, value, op)
            case Compare(sign, Number(value), of) if sign in ORDERED:
                yield Threshold(of, MIRRORED[sign], value, op)


def replace_part(op: Expression, old: Expression, new: Expression) -> Expression:
    """Return an expression with one part replaced. The part is found by identity."""
    if op is old:
        return new
    fields: dict[str, Any] = {
        name: replace_part(value, old, new)
        for name in ("arg", "left", "right", "low", "high")
        if (value := getattr(op, name, None)) is not None
    }
    return replace(op, **fields) if fields else op


# --- a state with other numbers ----------------------------------------------------------------------


@dataclass(frozen=True)
class _TextEdit:
    at: Place
    text: str


Numbers = tuple[float | None, float | None, Duration]
"""Entrance, exit and minimum duration; ``None`` for a predicate without threshold."""


def tune(app: App, found: Tunable, numbers: Numbers, lets: Mapping[str, Any] | None = None) -> App:
    """Return the definition with other numbers for a state.

    The rest of the text and its comments stay, if possible.
    """
    name, (enter, exit, guard) = found.condition.name, numbers
    statement = next(s for s in app.statements if isinstance(s, DefineState) and s.name == name)
    edits: list[_TextEdit] = []

    def replace_threshold(which: str, threshold: Threshold | None, value: float | None) -> Expression:
        predicate: Expression = getattr(statement, which)
        if threshold is None or value is None or value == threshold.value:
            return predicate
        core = threshold.at(getattr(found.condition, which), value)
        for slot, number in _slots(predicate, value, threshold, found):
            candidate = replace_part(predicate, slot, number)
            written: dict[str, Any] = {which: candidate}
            if _core(app, replace(statement, **written), which, lets) == core:
                if slot.at is not None:
                    edits.append(_TextEdit(slot.at, show(number)))
                return candidate
        raise UsageError(f"the {which} of '{name}' cannot be written with {value}; change it by hand")

    care = replace(statement.care, enter=Hold(guard))
    new = replace(
        statement,
        enter=replace_threshold("enter", found.enter, enter),
        exit=replace_threshold("exit", found.exit, exit),
        care=care,
    )
    whole = App((new if s is statement else s for s in app.statements), file=app.file)
    edited = _edit_text(app.text, statement, edits, guard)
    if edited is not None:
        try:
            read = parse(edited, app.file)
        except DefinitionError:
            return whole
        if read == whole:
            return read
    return whole


def _slots(
    predicate: Expression, value: float, threshold: Threshold, found: Tunable
) -> Iterator[tuple[Expression, Number]]:
    """Yield the literals that may express a threshold, each with its replacement.

    A replacement is a plain number, or a number in the attribute's unit.
    """
    units: list[str | None] = [None]
    if isinstance(threshold.of, Name):
        unit = found.condition.topic_with_rows.by_name[threshold.of.name].unit
        units = [unit, None] if unit else [None]
    value = int(value) if float(value).is_integer() else value
    for op in within(predicate):
        if isinstance(op, Compare | Between):
            for slot in parts(op):
                for unit in units:
                    yield slot, Number(value, unit)


def _core(app: App, statement: DefineState, which: str, lets: Mapping[str, Any] | None) -> Expression | None:
    """Return the core of a predicate of the rewritten statement; ``None`` if the statement is invalid."""
    statements = (
        statement if isinstance(s, DefineState) and s.name == statement.name else s for s in app.statements
    )
    try:
        checked = check(App(statements, file=app.file), lets=lets)
    except DefinitionError:
        return None
    core: Expression | None = getattr(_states(checked).get(statement.name), which, None)
    return core


_GUARD = re.compile(r"\s+for\s+[\d.]+\s*\w+\s*$")


def _edit_text(
    text: str | None, statement: DefineState, edits: list[_TextEdit], guard: Duration
) -> str | None:
    """Return the text with some numbers replaced.

    The minimum duration is inserted before the semicolon of the band.
    """
    if text is None or statement.enter.at is None:
        return None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    place: Callable[[Place], int] = lambda at: starts[at.line - 1] + at.column - 1  # noqa: E731
    begin = place(statement.enter.at)
    semicolon = text.find(";", begin + statement.enter.at.width)
    changes = [(place(e.at), place(e.at) + e.at.width, e.text) for e in edits]
    if semicolon >= 0 and guard != statement.care.enter.length:
        written = _GUARD.search(text, begin, semicolon)
        at = written.start() if written else semicolon
        changes.append((at, semicolon, f" for {show_duration(guard)}" if guard else ""))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text
