"""The regions of a network, which a broker stores for subscribers whose definitions have no regions."""

from __future__ import annotations

from pathlib import Path

from ...definition.app import App
from ...definition.parse import parse
from ...definition.show import show
from ...errors import UsageError
from ...lang.ops import DeclareRegion, UseGazetteer
from ...lang.scopes import in_themselves
from .conditions import LONGEST

REGIONS = "regions"
"""The key under which a broker returns the regions in an inquiry."""


def regions(path: Path) -> str:
    """Return the regions of a gazetteer as text."""
    text = show(App(in_themselves([UseGazetteer(path.name)], path.parent)))
    if len(text) > LONGEST:
        length = f"{len(text):,} characters, and a definition that travels {LONGEST:,} at most"
        raise UsageError(f"{path}: its regions have {length}")
    return text


def with_regions(app: App, regions: str) -> App:
    """Return an app with the regions of a network added, if it uses regions but defines none. [S6]"""
    known = [statement for statement in parse(regions).statements if isinstance(statement, DeclareRegion)]
    return App([*known, *app.statements], file=app.file)
