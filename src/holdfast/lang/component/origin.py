"""The thesis writes ``0^r`` for now and for here; which is meant follows from what it meets."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

from ...errors import DefinitionError
from ..ops import Between, Compare, Expression, Member, Name
from ..rewrite import parts

ORIGIN = "0^r"
NOW, HERE = "now", "here"
_MEANS = {"time": NOW, "location": HERE}


def resolved(op: Expression, target: str | None = None) -> Expression:
    """The expression with ``now`` or ``here`` for ``0^r``; ``target`` is what it is assigned to."""
    means = _MEANS.get(target or "")
    if isinstance(op, (Compare, Between)):
        means = next((_MEANS[name] for name in _members(op) if name in _MEANS), None)
    if isinstance(op, Name) and op.name == ORIGIN:
        raise DefinitionError(
            "whether 0^r is a time or a location is not clear here",
            op.at,
            hint="Write now or here; or compare it with a time or a location.",
        )
    return _replaced(op, means) if means else _map(op, resolved)


def in_thesis(op: Expression, target: str | None = None) -> Expression:
    """The expression with ``0^r`` for now and here, where that would be understood."""
    shorter = _shortened(op)
    try:
        return shorter if resolved(shorter, target) == op else op
    except DefinitionError:
        return op


def _shortened(op: Expression) -> Expression:
    if isinstance(op, Name) and op.name in (NOW, HERE):
        return replace(op, name=ORIGIN)
    return _map(op, _shortened)


def _members(op: Expression) -> list[str]:
    return [op.name] if isinstance(op, Member) else [n for part in parts(op) for n in _members(part)]


def _replaced(op: Expression, means: str) -> Expression:
    if isinstance(op, Name) and op.name == ORIGIN:
        return replace(op, name=means)
    return _map(op, partial(_replaced, means=means))


def _map(op: Expression, change: Any) -> Expression:
    """The expression with each of its parts changed."""
    changes: dict[str, Any] = {}
    for f in fields(op):  # a loop: a comprehension would be one more call for each level
        if isinstance(part := getattr(op, f.name), Expression):
            changes[f.name] = change(part)
    return replace(op, **changes) if changes else op
