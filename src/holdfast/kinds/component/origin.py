"""The symbol `0^r` of the thesis, which stands for now or for here depending on its operand."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

from ...errors import DefinitionError
from ...lang.ops import Between, Compare, Expression, Name
from .members import members_in

ORIGIN = "0^r"
NOW, HERE = "now", "here"
_MEANS = {"time": NOW, "location": HERE}


def resolve_origin(op: Expression, target: str | None = None) -> Expression:
    """Replace `0^r` by `now` or `here`.

    `target` is the attribute to which the expression is assigned. Raise a `DefinitionError` if neither target
    nor operand decides.
    """
    means = _MEANS.get(target or "")
    if isinstance(op, (Compare, Between)):
        means = next((_MEANS[member.name] for member in members_in(op) if member.name in _MEANS), None)
    if isinstance(op, Name) and op.name == ORIGIN:
        hint = "Write now or here; or compare it with a time or a location."
        raise DefinitionError("whether 0^r is a time or a location is not clear here", op.at, hint=hint)
    return _replace_origin(op, means) if means else _map(op, resolve_origin)


def in_thesis_notation(op: Expression, target: str | None = None) -> Expression:
    """Replace `now` and `here` by `0^r` if `resolve_origin` can restore them."""
    shorter = _shorten(op)
    try:
        return shorter if resolve_origin(shorter, target) == op else op
    except DefinitionError:
        return op


def _shorten(op: Expression) -> Expression:
    if isinstance(op, Name) and op.name in (NOW, HERE):
        return replace(op, name=ORIGIN)
    return _map(op, _shorten)


def _replace_origin(op: Expression, means: str) -> Expression:
    if isinstance(op, Name) and op.name == ORIGIN:
        return replace(op, name=means)
    return _map(op, partial(_replace_origin, means=means))


def _map(op: Expression, change: Any) -> Expression:
    """Return an expression with a function applied to each of its parts."""
    changes: dict[str, Any] = {}
    for f in fields(op):  # a loop: a comprehension would be one more call for each level
        if isinstance(part := getattr(op, f.name), Expression):
            changes[f.name] = change(part)
    return replace(op, **changes) if changes else op
