"""Comparisons with the name of a region: ``place`` is the text that an event carries, not where it lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import DefinitionError
from ..model.space import Gazetteer, Rectangle, Region
from .kinds import Parameters, Words
from .ops import Compare, Defined, Detect, Expression, Member, Name, Statement, Text

WHERE = ("place", "location")
AXES = ("x", "y", "z")


def require_places(statements: Sequence[Statement], known: Gazetteer, parameters: Parameters) -> None:
    """Refuse a comparison of a place with a region that may contain events of another place, or of none: it
    would never be true of them."""
    wide = {region.name: region for region in known.regions if _is_wide(region, known)}
    for statement in statements if wide else ():
        if not isinstance(statement, Defined):
            continue
        for compared in _comparisons(statement):
            place, name = _named(compared, parameters)
            if name in wide:
                raise DefinitionError(
                    f"'place' is the text that an event carries; that it lies in region '{name}' is said "
                    "otherwise",
                    place.at,
                    hint=_hint(wide[name], place, is_component=isinstance(statement, Detect)),
                )


def _is_wide(region: Region, known: Gazetteer) -> bool:
    is_parent = any(other.parent == region.name for other in known.regions)
    return region.shape is not None or bool(region.sources) or is_parent


def _comparisons(node: Any) -> Iterator[Compare]:
    if isinstance(node, Compare):
        yield node
    if isinstance(node, tuple | list):
        for part in node:
            yield from _comparisons(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _comparisons(getattr(node, field.name))


def _named(compared: Compare, parameters: Parameters) -> tuple[Name | Member, str | None]:
    """A place, and the text with which it is compared."""
    for one, other in ((compared.left, compared.right), (compared.right, compared.left)):
        if isinstance(one, Name | Member) and one.name in WHERE:
            return one, _text(other, parameters)
    return Name(""), None


def _text(op: Expression, parameters: Parameters) -> str | None:
    value = parameters.get(op.name) if isinstance(op, Name) else op
    core = value.core if isinstance(value, Words) else value
    return core.value if isinstance(core, Text) else None


def _hint(region: Region, place: Name | Member, *, is_component: bool) -> str:
    scope = f'Leave it out, and write at the end: scope "{region.name}".'
    owner = f"{place.owner}." if isinstance(place, Member) and place.owner else ""
    if not isinstance(region.shape, Rectangle):
        return f"Compare coordinates, such as: {owner}x in [0, 10]." if is_component else scope
    bounds = zip(AXES, region.shape.low, region.shape.high, strict=False)
    inside = " && ".join(f"{owner}{axis} in [{low:g}, {high:g}]" for axis, low, high in bounds)
    return f"Write: {inside}." if is_component else f"{scope} Or compare coordinates: {inside}."
