"""Which states of a definition hold only while others do, decided from their predicates alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..lang.condition import Checked, Condition
from ..lang.linear import MIRRORED
from ..lang.ops import Compare, Expression, Name, Not, Number, Text, Truth
from ..lang.reason import alternatives
from ..protocols.cbps.content import Constraint, Filter, Op
from ..protocols.cbps.states import MOST_TOGETHER, Region, State, covers


def enclosed(checked: Checked) -> list[str]:
    """What of a definition holds only while something else of it does."""
    states = [(one, state) for one in checked.conditions if (state := _state(one)) is not None]
    said = []
    for one, state in states:
        around = [(other.name, its) for other, its in states if other is not one and _meet(one, other)]
        alone = [name for name, its in around if covers(its, state)]
        if alone:
            said.append(f"{one.name} holds only while {_listed(alone, 'and')} {_do(alone)}")
        elif together := _together(around, state):
            said.append(f"{one.name} holds only while {_listed(together, 'or')} does")
    return said


def _together(around: Sequence[tuple[str, State]], state: State) -> list[str]:
    """Those of several that together cover a state, and none that is not needed for it."""
    if len(around) > MOST_TOGETHER or not covers([its for _, its in around], state):
        return []
    needed = list(around)
    for one in around:
        rest = [other for other in needed if other is not one]
        needed = rest if covers([its for _, its in rest], state) else needed
    return [name for name, _ in needed]


def _meet(one: Condition, other: Condition) -> bool:
    """Whether both look at the same events of each scope, in the same order."""
    return (one.topic, one.keys, one.forest, one.delivery) == (
        other.topic,
        other.keys,
        other.forest,
        other.delivery,
    )


def _listed(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _do(names: Sequence[str]) -> str:
    return "does" if len(names) == 1 else "do"


def _state(condition: Condition) -> State | None:
    """A state as boxes of values, if it is one and its predicates are such."""
    if condition.momentary or condition.tables or condition.forest or len(condition.keys) > 1:
        return None  # of nested scopes the outer one hears what the inner one says
    enter, leave = _region(condition.enter), _region(condition.exit)
    return None if enter is None or leave is None else State(enter, leave)


def _region(op: Expression) -> Region | None:
    options = alternatives(op)
    if options is None:
        return None
    found = [_filter(option) for option in options if Truth(False) not in option]
    return None if None in found else tuple(one for one in found if one is not None)


def _filter(option: Sequence[Expression]) -> Filter | None:
    constraints = [_constraint(atom) for atom in option if atom != Truth(True)]
    return None if None in constraints else Filter(tuple(one for one in constraints if one is not None))


_OPS: dict[str, Op] = {"<": "<", "<=": "<=", "==": "=", "!=": "!=", ">=": ">=", ">": ">"}


def _constraint(atom: Expression) -> Constraint | None:
    """What one comparison asks of one attribute."""
    match atom:
        case Name(name):
            return Constraint(name, "bool", "=", True)
        case Not(Name(name)):
            return Constraint(name, "bool", "=", False)
        case Compare(sign, Name(name), Number(value)) if float(value) == value:
            return Constraint(name, "double", _OPS[sign], float(value))
        case Compare(sign, Number(value), Name(name)) if float(value) == value:
            return Constraint(name, "double", _OPS[MIRRORED[sign]], float(value))
        case Compare(sign, Name(name), Text(value)):
            return Constraint(name, "text", _OPS[sign], value)
        case Compare(sign, Text(value), Name(name)):
            return Constraint(name, "text", _OPS[MIRRORED[sign]], value)
        case _:
            return None
