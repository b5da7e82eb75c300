"""Checked components become the machine of :mod:`holdfast.machines.detector`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...lang.condition import Component, Rule
from ...lang.evaluate import alike, computed, kleene
from ...lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    Expression,
    Member,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Spot,
    Text,
    Truth,
)
from ...lang.rewrite import COMPARED, both, either, parts
from ...machines.detector.component import Id
from ...machines.detector.detector import Detector
from ...machines.detector.knowledge import Knowledge
from ...machines.detector.rows import Coded, Rows
from ...machines.detector.smc import Context, Input, Smc
from ...machines.detector.smc import Rule as SmcRule
from ...model.batch import AXES
from ...model.scope import listed
from ...model.topic import Topic
from ..columns import keyed
from ..keys import joined, key_text, values_of
from ..operator import digest
from .screens import LAST, screened

_ONE_BY_ONE = ("time", "topic", "status")
"""Keys that are found for one reading at a time."""

Compute = Callable[[Context], Any]


def detector(components: Sequence[Component], topics: Iterable[Topic]) -> Detector:
    """The machine of components, which build on one another and on topics of readings."""
    listened = {topic for component in components for topic in component.listens}
    readings = {topic.name: topic for topic in topics if topic in listened}
    made = [screened(one, components) for one in components]
    plans = tuple(None if isinstance(one, str) else one.plan for one in made)
    return Detector(tuple(map(smc, components)), readings, scope, plans)


def smc(component: Component) -> Smc:
    """The State Maintenance Component of a checked one."""
    inputs = {
        name: Input(query, key(query.separate), coded(query.separate)) for name, query in component.inputs
    }
    names = [name for name, _ in component.inputs]
    timely = component.delivery.wait is None
    return Smc(
        component.name,
        inputs,
        rule(component.enter, names),
        None if component.momentary else rule(component.exit, names),
        tuple(a.name for a in component.topic.attributes),
        frozenset(a.name for a in component.topic.attributes if a.kind == "float"),
        component.here if not isinstance(component.here, str) else str(component.here),
        component.tick,
        component.delivery.wait or 0,
        "apply" if timely else component.delivery.late,
        component.collide,
    )


# --- keys --------------------------------------------------------------------------------------


def key(names: Sequence[str]) -> Callable[[Knowledge], str | None] | None:
    """The key of knowledge by what is kept apart; ``None`` where something of it is missing."""
    if not names:
        return None
    getters = [member(str(name)) for name in names]

    def find(known: Knowledge) -> str | None:
        parts = [text for get in getters for text in _texts(get(known))]
        return None if None in parts else joined(None, parts)

    return find


def coded(names: Sequence[str]) -> Callable[[Rows], Coded] | None:
    """The same of many readings at once; ``None`` where it takes one after another."""
    if not names or set(names) & set(_ONE_BY_ONE):
        return None

    def find(rows: Rows) -> Coded:
        first, *others = [_named(rows, str(name)) for name in names]
        codes, paths = first
        for further, values in others:  # compacted each time: the product of many would not fit 64 bits
            present = (codes >= 0) & (further >= 0)
            pairs, mixed = np.unique(codes[present] * len(values) + further[present], return_inverse=True)
            paths = [paths[p // len(values)] + values[p % len(values)] for p in pairs.tolist()]
            codes = np.full(len(rows), -1)
            codes[present] = mixed
        keys: dict[str, int] = {}
        table = [keys.setdefault(text, len(keys)) for text in _joined(paths)]
        return Coded(np.array([*table, -1])[codes], list(keys))

    return find


def _joined(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The text of each key; one value without separators is its own."""
    if paths and all(len(path) == 1 for path in paths):
        texts = [text for (text,) in paths]
        if joined(None, ["".join(texts)]) == "".join(texts):
            return texts
    return [joined(None, path) for path in paths]


def _named(rows: Rows, name: str) -> Coded:
    """The texts of what is kept apart."""
    if name == "location":
        return _places(rows)
    return _coordinates(rows, AXES.index(name)) if name in AXES else _words(rows, name)


def _coordinates(rows: Rows, axis: int) -> Coded:
    """A coordinate of where each reading was made; at a place, or nowhere, it has none."""
    texts: dict[str, int] = {}
    table = []
    for kind, point, _ in rows.standings.values:
        text = key_text(point[axis]) if kind == 0 and axis < len(point) else None
        table.append(-1 if text is None else texts.setdefault(text, len(texts)))
    return Coded(np.array([*table, -1])[rows.standings.codes], [(text,) for text in texts])


def _places(rows: Rows) -> Coded:
    """Where each reading was made, as texts; without a location, nowhere."""
    texts = [
        tuple(map(key_text, point)) if kind == 0 else (text,) for kind, point, text in rows.standings.values
    ]
    elsewhere = np.array([*(kind == 2 for kind, _, _ in rows.standings.values), False])
    codes = rows.standings.codes
    return Coded(np.where(elsewhere[codes], -1, codes), texts)


def _words(rows: Rows, name: str) -> Coded:
    """The texts of an attribute."""
    batch = rows.batch
    codes, keys = keyed(batch.column(name) if name in batch.schema.names else None, len(batch))
    return Coded(codes.astype(np.int64), [(text,) for text in keys.to_pylist()])


def _texts(value: Any) -> Iterator[str | None]:
    """The texts of a value; of a point, those of its coordinates."""
    yield from map(key_text, value) if isinstance(value, tuple) else [key_text(value)]


def scope(id: Id) -> str | None:
    """A replica and its key as people read them."""
    return listed([value for part in id if part for value in values_of(part)] or [""]) or None


# --- rules -------------------------------------------------------------------------------------


def rule(core: Rule, names: Sequence[str]) -> SmcRule:
    """A predicate and computations as plain functions.

    Before a component's first event every atom that mentions ``last`` holds, but ``last.valid`` is false.
    """
    at_first, later = (value(remembering(core.when, exists=exists)) for exists in (False, True))
    inside = list(_members(core.when))
    needed = {one.owner for one in inside if one.otherwise is None}
    return SmcRule(
        lambda context: (at_first if context.last is None else later)(context) is True,
        tuple(name for name in names if any(one.owner == name for one in inside)),
        tuple((name, value(op)) for name, op in core.sets),
        core.hold,
        optional=frozenset(one.owner for one in inside) - needed,
        timeless=not any(one.owner == LAST or one.name == "valid" for one in inside)
        and not _names(core.when),
    )


def remembering(op: Expression, *, exists: bool) -> Expression:
    """A core predicate when there is a last event, and when there is none yet."""
    match op:
        case And(left, right):
            return both(remembering(left, exists=exists), remembering(right, exists=exists))
        case Or(left, right):
            return either(remembering(left, exists=exists), remembering(right, exists=exists))
        case Member(owner, "valid") if owner == LAST:
            return Truth(exists)
        case Not(Member(owner, "valid")) if owner == LAST:
            return Truth(not exists)
        case _ if not exists and any(one.owner == LAST and one.otherwise is None for one in _members(op)):
            return Truth(True)
    return op


def _members(op: Expression) -> Iterator[Member]:
    if isinstance(op, Member):
        yield op
    for part in parts(op):
        yield from _members(part)


def _names(op: Expression) -> list[str]:
    return [op.name] if isinstance(op, Name) else [name for part in parts(op) for name in _names(part)]


# --- values ------------------------------------------------------------------------------------


def value(op: Expression) -> Compute:
    """What a core expression of a component computes; ``None`` is missing or unknown."""
    match op:
        case Number(constant) | Text(constant) | Truth(constant) | Spot(constant):
            return lambda _context: constant
        case Name("now"):
            return lambda context: context.now
        case Name("here"):
            return lambda context: context.here
        case Member(owner, name, _, None):
            return _of(owner, member(name))
        case Member(owner, name, _, Number(default) | Text(default) | Truth(default)):
            found = _of(owner, member(name))
            return lambda context: default if _is_missing(known := found(context)) else known
        case Arithmetic(sign, left, right):
            a, b = value(left), value(right)
            return lambda context: _arithmetic(sign, a(context), b(context))
        case Negative(arg):
            inner = value(arg)
            return lambda context: _arithmetic("-", 0, inner(context))
        case Absolute(arg):
            inner = value(arg)
            return lambda context: _absolute(inner(context))
        case Compare(sign, left, right):
            a, b, holds = value(left), value(right), COMPARED[sign]
            return lambda context: _compared(holds, a(context), b(context))
        case And(left, right):
            a, b = value(left), value(right)
            return lambda context: kleene(a(context), b(context), decides=False)
        case Or(left, right):
            a, b = value(left), value(right)
            return lambda context: kleene(a(context), b(context), decides=True)
        case Not(arg):
            inner = value(arg)
            return lambda context: None if (truth := inner(context)) is None else not truth
    raise AssertionError(f"not a core expression of a component: {op}")


def _of(owner: str, get: Callable[[Knowledge], Any]) -> Compute:
    if owner == LAST:
        return lambda context: None if context.last is None else get(context.last)
    return lambda context: None if (known := context.known.get(owner)) is None else get(known)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def member(name: str) -> Callable[[Knowledge], Any]:
    """Something of knowledge by its name: its own attribute, or what all knowledge has."""
    if name in ("x", "y", "z"):
        axis = "xyz".index(name)
        return lambda known: known.at[axis] if known.at is not None and len(known.at) > axis else None
    if name in ("time", "location", "source", "place", "topic"):
        return lambda known: getattr(known, name)
    if name in ("status", "valid", "count"):
        return lambda known: known.attributes[name] if name in known.attributes else getattr(known, name)
    return lambda known: known.attributes.get(name)


def _arithmetic(sign: str, left: Any, right: Any) -> Any:
    if isinstance(left, tuple) or isinstance(right, tuple):
        same = isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right)
        return tuple(a - b for a, b in zip(left, right, strict=True)) if same else None
    if isinstance(left, str) or isinstance(right, str):  # a place is no distance from itself
        return (0.0,) if left == right else None
    return computed(sign, left, right)


def _absolute(number: Any) -> Any:
    if isinstance(number, tuple):
        return math.hypot(*number)
    return computed("-", 0, number) if number is not None and number < 0 else number


def _compared(holds: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else holds(*alike(a, b))


# --- meaning -----------------------------------------------------------------------------------


def meaning(component: Component) -> str:
    """Equal for components of a name that mean the same; others may build on the name."""
    return digest(
        (
            component.name,
            [
                (name, query, [(t.name, t.attributes) for t in component.listens])
                for name, query in component.inputs
            ],
            component.enter,
            component.exit,
            component.here,
            component.tick,
            component.delivery,
            component.collide,
        )
    )
