"""Covering among the states of a definition, determined from their predicates alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..kinds.state.condition import StateCondition
from ..kinds.state.reason import alternatives
from ..lang.condition import Checked
from ..lang.linear import MIRRORED
from ..lang.ops import Compare, Expression, Name, Not, Number, Text, Truth
from ..network.protocols.cbps.content import Constraint, Filter, Op
from ..network.protocols.cbps.states import MOST_TOGETHER, EnterLeave, Region, covers_state


def nested_states(checked: Checked) -> list[str]:
    """Return a sentence for each state that is active only while other states are active."""
    states = [(one, state) for one in checked.of(StateCondition) if (state := _state(one)) is not None]
    sentences = []
    for one, state in states:
        around = [(other.name, its) for other, its in states if other is not one and _meet(one, other)]
        alone = [name for name, its in around if covers_state(its, state)]
        if alone:
            sentences.append(f"{one.name} holds only while {_join_names(alone, 'and')} {_do(alone)}")
        elif together := _together(around, state):
            sentences.append(f"{one.name} holds only while {_join_names(together, 'or')} does")
    return sentences


def _together(around: Sequence[tuple[str, EnterLeave]], state: EnterLeave) -> list[str]:
    """Return the states that together cover a state. None of them is redundant."""
    if len(around) > MOST_TOGETHER or not covers_state([its for _, its in around], state):
        return []
    needed = list(around)
    for one in around:
        rest = [other for other in needed if other is not one]
        needed = rest if covers_state([its for _, its in rest], state) else needed
    return [name for name, _ in needed]


def _meet(one: StateCondition, other: StateCondition) -> bool:
    """Whether two states consume the same events of each scope, in the same order."""
    return (one.topic, one.keys, one.forest, one.delivery) == (
        other.topic,
        other.keys,
        other.forest,
        other.delivery,
    )


def _join_names(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _do(names: Sequence[str]) -> str:
    return "does" if len(names) == 1 else "do"


def _state(condition: StateCondition) -> EnterLeave | None:
    """Return a state as boxes of values; ``None`` if its predicates have no such form."""
    if condition.momentary or condition.tables or condition.forest or len(condition.keys) > 1:
        return None  # of nested scopes the outer one hears what the inner one says
    enter, leave = _region(condition.enter), _region(condition.exit)
    return None if enter is None or leave is None else EnterLeave(enter, leave)


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
    """Return a comparison as a constraint; ``None`` if it has no such form."""
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
