"""Checks of comparisons of ``place`` with the name of a region.

``place`` is text of the event, not its location, so such a comparison can be a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import DefinitionError
from ..lang.ops import Compare, ConditionStatement, Expression, MemberAttribute, Name, Statement, Text
from ..lang.typed import Parameters, Words
from ..model.space import Gazetteer, Rectangle, Region

WHERE = ("place", "location")
AXES = ("x", "y", "z")


def require_places(statements: Sequence[Statement], known: Gazetteer, parameters: Parameters) -> None:
    """Refuse a comparison of a place with a region that contains other places or shapes.

    It would never be true for the events of these places and shapes.
    """
    wide = {region.name: region for region in known.regions if _is_wide(region, known)}
    for statement in statements if wide else ():
        if not isinstance(statement, ConditionStatement):
            continue
        for compared in _comparisons(statement):
            place, name = _place_and_name(compared, parameters)
            if name in wide:
                raise DefinitionError(
                    f"'place' is the text that an event carries; that it lies in region '{name}' is said "
                    "otherwise",
                    place.at,
                    hint=_hint(wide[name], place, has_scopes=statement.has_scopes),
                )


def _is_wide(region: Region, known: Gazetteer) -> bool:
    is_parent = any(ancestor.parent == region.name for ancestor in known.regions)
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


def _place_and_name(compared: Compare, parameters: Parameters) -> tuple[Name | MemberAttribute, str | None]:
    """Return the place and the text of a comparison."""
    for left, right in ((compared.left, compared.right), (compared.right, compared.left)):
        if isinstance(left, Name | MemberAttribute) and left.name in WHERE:
            return left, _text(right, parameters)
    return Name(""), None


def _text(op: Expression, parameters: Parameters) -> str | None:
    value = parameters.get(op.name) if isinstance(op, Name) else op
    core = value.core if isinstance(value, Words) else value
    return core.value if isinstance(core, Text) else None


def _hint(region: Region, place: Name | MemberAttribute, *, has_scopes: bool) -> str:
    scope = f'Leave it out, and write at the end: scope "{region.name}".'
    owner = f"{place.owner}." if isinstance(place, MemberAttribute) and place.owner else ""
    if not isinstance(region.shape, Rectangle):
        return f"Compare coordinates, such as: {owner}x in [0, 10]." if not has_scopes else scope
    bounds = zip(AXES, region.shape.low, region.shape.high, strict=False)
    inside = " && ".join(f"{owner}{axis} in [{low:g}, {high:g}]" for axis, low, high in bounds)
    return f"Write: {inside}." if not has_scopes else f"{scope} Or compare coordinates: {inside}."
