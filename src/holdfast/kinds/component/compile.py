"""Convert checked components to machines: keys, predicates and computations become functions.

A new member of queries needs a line in `member` here and one in `members.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...engine.operator import digest
from ...lang.expressions.batch import encode_keys
from ...lang.expressions.evaluate import compile_value
from ...lang.expressions.key_text import join_key, key_text
from ...lang.ops import (
    And,
    Expression,
    MemberAttribute,
    Name,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ...lang.rewrite import both, either
from ...lang.rewrite import names as op_names
from ...model.batch import AXES
from ...model.topic import Topic
from .condition import CheckedRule, ComponentCondition, Components
from .detector.knowledge import Knowledge
from .detector.rows import Coded, ReadingRows
from .detector.smc import EvaluationContext, Input, Smc
from .detector.smc import Rule as SmcRule
from .group import Component, ComponentGroup, Label, link_components, readable_scope
from .machine import upstream
from .members import members_in
from .plan_columns import LAST, plan_component
from .sites import delays

_ONE_BY_ONE = ("time", "topic", "status")
"""The keys that cannot be computed in columns. They are computed for each reading separately."""

Compute = Callable[[EvaluationContext], Any]
"""A function that computes a value in an evaluation context."""


def component_group(
    components: Components, topics: Iterable[Topic], every: Components = (), label: Label = readable_scope
) -> ComponentGroup:
    """Return the machine of components that run after the same shuffle.

    The components consume readings, each other's events, and events of components of earlier stages. `every`
    has all components of the definition. `label` converts signatures to scopes.
    """
    every = every or components
    listened = {topic for component in components for topic in component.listens}
    readings = {topic.name: topic for topic in topics if topic in listened}
    earlier = [below for below in every if below.topic in listened and below not in components]
    waits = delays(every)
    plans = [plan_component(component, every) for component in components]
    return link_components(
        [
            Component(smc(component), component.topic, None if isinstance(plan, str) else plan.plan)
            for component, plan in zip(components, plans, strict=True)
        ],
        readings,
        [upstream(below.topic, smc(below), waits[below.name]) for below in earlier],
        label,
    )


def smc(component: ComponentCondition) -> Smc:
    """Return the State Maintenance Component of a checked component."""
    queries = dict(component.inputs)
    inputs = {name: Input(q, key(q.separate), encode(q.separate)) for name, q in queries.items()}
    names = list(queries)
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
    """Return a function that computes the key of knowledge, or `None` without `names`.

    The function returns `None` if a part of the key is missing.
    """
    if not names:
        return None
    getters = [member(str(name)) for name in names]

    def find(known: Knowledge) -> str | None:
        parts: list[str | None] = []
        for get in getters:
            value = get(known)
            parts += map(key_text, value) if isinstance(value, tuple) else [key_text(value)]
        return None if None in parts else join_key(None, parts)

    return find


def encode(names: Sequence[str]) -> Callable[[ReadingRows], Coded] | None:
    """Return a function that computes the keys of many readings.

    Return `None` without `names`, and for keys that must be computed for one reading at a time.
    """
    if not names or set(names) & set(_ONE_BY_ONE):
        return None

    def find(rows: ReadingRows) -> Coded:
        """Return the key codes of many readings."""
        first, *others = [_key_texts(rows, str(name)) for name in names]
        codes, paths = first
        for further, values in others:  # compacted each time: the product of many would not fit 64 bits
            present = (codes >= 0) & (further >= 0)
            pairs, mixed = np.unique(codes[present] * len(values) + further[present], return_inverse=True)
            paths = [paths[p // len(values)] + values[p % len(values)] for p in pairs.tolist()]
            codes = np.full(len(rows), -1)
            codes[present] = mixed
        keys: dict[str, int] = {}
        table = [keys.setdefault(text, len(keys)) for text in _join(paths)]
        return Coded(np.array([*table, -1])[codes], list(keys))

    return find


def _join(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the text of each key, given its parts."""
    if paths and all(len(path) == 1 for path in paths):
        texts = [text for (text,) in paths]
        if join_key(None, ["".join(texts)]) == "".join(texts):
            return texts
    return [join_key(None, path) for path in paths]


def _key_texts(rows: ReadingRows, name: str) -> Coded:
    """Return the texts of one part of the key, encoded."""
    if name == "location":
        return _places(rows)
    if name in AXES:
        return _coordinates(rows, AXES.index(name))
    batch = rows.batch
    codes, keys = encode_keys(batch.column(name) if name in batch.schema.names else None, len(batch))
    return Coded(codes.astype(np.int64), [(text,) for text in keys.to_pylist()])


def _coordinates(rows: ReadingRows, axis: int) -> Coded:
    """Return the texts of a coordinate, encoded. Readings without this coordinate have no text."""
    texts: dict[str, int] = {}
    table = []
    for kind, point, _ in rows.standings.values:
        text = key_text(point[axis]) if kind == 0 and axis < len(point) else None
        table.append(-1 if text is None else texts.setdefault(text, len(texts)))
    return Coded(np.array([*table, -1])[rows.standings.codes], [(text,) for text in texts])


def _places(rows: ReadingRows) -> Coded:
    """Return the texts of locations, encoded. Readings without a location have no text."""
    codes, spots = rows.standings
    texts = [tuple(map(key_text, point)) if kind == 0 else (text,) for kind, point, text in spots]
    elsewhere = np.array([*(kind == 2 for kind, _, _ in spots), False])
    return Coded(np.where(elsewhere[codes], -1, codes), texts)


# --- rules -------------------------------------------------------------------------------------


def rule(core: CheckedRule, names: Sequence[str]) -> SmcRule:
    """Return a rule with its predicate and computations as functions.

    Before a component's first event, every comparison that mentions `last` is true, but `last.valid` is
    false.
    """
    at_first, later = (value(assume_last(core.when, exists=exists)) for exists in (False, True))
    inside = members_in(core.when)
    owners = frozenset(member.owner for member in inside)
    needed = {member.owner for member in inside if member.otherwise is None}
    return SmcRule(
        lambda context: (at_first if context.last is None else later)(context) is True,
        tuple(name for name in names if name in owners),
        tuple((name, value(op)) for name, op in core.sets),
        core.hold,
        optional=owners - needed,
        timeless=LAST not in owners and "valid" not in {m.name for m in inside} and not op_names(core.when),
    )


def assume_last(op: Expression, *, exists: bool) -> Expression:
    """Return a simplified predicate, given whether there is a last event (`exists`)."""
    match op:
        case And(left, right):
            return both(assume_last(left, exists=exists), assume_last(right, exists=exists))
        case Or(left, right):
            return either(assume_last(left, exists=exists), assume_last(right, exists=exists))
        case MemberAttribute(owner, "valid") if owner == LAST:
            return Truth(exists)
        case Not(MemberAttribute(owner, "valid")) if owner == LAST:
            return Truth(not exists)
        case _ if not exists and any(m.owner == LAST and m.otherwise is None for m in members_in(op)):
            return Truth(True)
    return op


# --- values ------------------------------------------------------------------------------------


def value(op: Expression) -> Compute:
    """Return the function that computes an expression. The function returns `None` for missing or unknown."""
    return compile_value(op, _leaf)


def _leaf(op: Expression) -> Compute | None:
    """Return the function of a name or a member; `None` for other expressions."""
    match op:
        case Name("now"):
            return lambda context: context.now
        case Name("here"):
            return lambda context: context.here
        case MemberAttribute(owner, name, _, None):
            return _of(owner, member(name))
        case MemberAttribute(owner, name, _, Number(default) | Text(default) | Truth(default)):
            found = _of(owner, member(name))

            def known_or_default(context: EvaluationContext) -> Any:
                known = found(context)
                return default if known is None or known != known else known

            return known_or_default
        case _:
            return None


def _of(owner: str, get: Callable[[Knowledge], Any]) -> Compute:
    """Return the function that reads a member of the query `owner`, or of the last event."""
    if owner == LAST:
        return lambda context: None if context.last is None else get(context.last)
    return lambda context: None if (known := context.known.get(owner)) is None else get(known)


def member(name: str) -> Callable[[Knowledge], Any]:
    """Return the function that reads a member of knowledge: an attribute of a reading, or a fixed member."""
    if name in ("x", "y", "z"):
        axis = "xyz".index(name)
        return lambda known: known.at[axis] if known.at is not None and len(known.at) > axis else None
    if name in ("time", "location", "source", "place", "topic"):
        return lambda known: getattr(known, name)
    if name in ("status", "valid", "count"):
        return lambda known: known.attributes[name] if name in known.attributes else getattr(known, name)
    return lambda known: known.attributes.get(name)


# --- meaning -----------------------------------------------------------------------------------


def meaning(component: ComponentCondition) -> str:
    """Return a digest that is equal for components with the same name and the same meaning.

    The name is part of the meaning, because other components may consume the topic of that name.
    """
    topics = [(topic.name, topic.attributes) for topic in component.listens]
    inputs = [(name, query, topics) for name, query in component.inputs]
    rules = component.enter, component.exit
    traits = component.here, component.tick, component.delivery, component.collide
    return digest((component.name, inputs, *rules, *traits))
