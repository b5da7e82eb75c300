"""The regions of a definition, and the nesting of a condition's scopes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from ..errors import DefinitionError, Place, Unsupported, UsageError, did_you_mean
from ..model.folder import Folder
from ..model.space import Forest, Gazetteer, PartialOverlap, Region, load_gazetteer, nest
from .ops import ConditionStatement, DeclareRegion, Levels, Statement, UseGazetteer, place_of

INNERMOST = "regions"
"""The level of all regions that contain no other, unless a level has that name.  [S6]"""


def lacks_regions(statements: Sequence[Statement]) -> bool:
    """Whether scopes name every innermost region although the definition has no regions."""
    if any(isinstance(s, DeclareRegion | UseGazetteer) for s in statements):
        return False
    return any(
        INNERMOST in level for s in statements if isinstance(s, ConditionStatement) for level in s.scopes
    )


def gazetteer(statements: Sequence[Statement], base: Folder) -> Gazetteer:
    """Return the gazetteer of the files that a definition uses and of the regions that it declares."""
    regions: list[Region] = []
    for use in statements:
        if isinstance(use, UseGazetteer):
            try:
                regions += load_gazetteer(base / use.path).regions
                Gazetteer(tuple(regions))
            except UsageError as error:
                raise DefinitionError(str(error), use.at) from None
    declared = [s for s in statements if isinstance(s, DeclareRegion)]
    levels = {region.level for region in regions}
    known = {region.name for region in regions} | {d.name for d in declared}
    for declare in declared:
        if declare.parent is not None and declare.parent not in known:
            raise DefinitionError(
                f"region '{declare.name}' is in '{declare.parent}', which is not declared",
                declare.at,
                hint=did_you_mean(declare.parent, known - {declare.name}),
            )
        if declare.name in levels:
            raise DefinitionError(f"'{declare.name}' is already a level of the gazetteer", declare.at)
    regions += [Region(d.name, d.shape, d.parent) for d in declared]
    try:
        return Gazetteer(tuple(regions))
    except UsageError as error:
        raise DefinitionError(str(error), _place_of_region(str(error), declared)) from None


def in_themselves(statements: Sequence[Statement], base: Folder) -> list[Statement]:
    """Return the statements with gazetteer files replaced by declarations of their regions.

    The resulting statements need no gazetteer file.
    """
    files = [s for s in statements if isinstance(s, UseGazetteer)]
    known = gazetteer(files, base)
    if listing := next((region for region in known.regions if region.sources), None):
        raise Unsupported(
            f"region '{listing.name}' of the gazetteer lists its sources, which a definition that travels "
            "cannot; give it a shape, or let events say their place"
        )
    regions = [DeclareRegion(region.name, region.shape, region.parent) for region in known.regions]
    rest = (statement for statement in statements if not isinstance(statement, UseGazetteer))
    names = partial(_regions, known=known)
    return [
        *regions,
        *(
            statement.map_scopes(names) if isinstance(statement, ConditionStatement) else statement
            for statement in rest
        ),
    ]


def _regions(names: tuple[str, ...], known: Gazetteer) -> tuple[str, ...]:
    levels = known.levels
    return tuple(
        found for name in names for found in ([r.name for r in levels[name]] if name in levels else [name])
    )


def _place_of_region(message: str, declared: Sequence[DeclareRegion]) -> Place | None:
    found = re.search(r"'([^']*)'", message)
    return next((d.at for d in declared if found and d.name == found[1]), None)


def forest(levels: Levels, known: Gazetteer, at: Place | None) -> Forest | None:
    """Return the regions that ``scope`` names, as trees; ``None`` without names.

    In a definition without a gazetteer or regions, each name is a region of its own: an event belongs to the
    region that its place names.
    """
    if not levels:
        return None
    if not known.regions:
        if everything := next((name for level in levels for name in level if name == INNERMOST), None):
            raise DefinitionError(
                f"'{INNERMOST}' stands for every region, and there is none",
                place_of(everything, at),
                hint='Declare some, or name a file of them: gazetteer "house.toml". '
                "A subscriber on an overlay may have those of its broker (broker --regions).",
            )
        known = Gazetteer(
            tuple(Region(str(name)) for name in dict.fromkeys(n for level in levels for n in level))
        )
    try:
        rings = [[region for name in level for region in _regions_named(name, known, at)] for level in levels]
        chosen = [region for ring in rings for region in ring]
        names = [region.name for region in chosen]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DefinitionError(f"the scope names region '{twice}' twice", at)
        found = nest(chosen, known)
    except PartialOverlap as error:
        raise DefinitionError(str(error), place_of(levels[0][0], at)) from None
    for i, (inner, outer) in enumerate(pairwise(rings)):
        for region in inner:
            around = {found.regions[j].name for j in found.chains[names.index(region.name)]}
            if not around & {r.name for r in outer}:
                raise DefinitionError(
                    f"region '{region.name}' does not lie inside any of {', '.join(levels[i + 1])}",
                    place_of(levels[i][0], at),
                    hint="The innermost comes first, as in: scope rooms within floors",
                )
    return found


def _regions_named(name: str, known: Gazetteer, at: Place | None) -> tuple[Region, ...]:
    regions = known.regions_named(name)
    if regions is None and name == INNERMOST:
        return known.innermost
    if regions is None:
        names = [*known.levels, *known.by_name]
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise DefinitionError(
            f"unknown region or level '{name}'; declared: {listed}",
            place_of(name, at),
            hint=did_you_mean(name, names),
        )
    return regions
