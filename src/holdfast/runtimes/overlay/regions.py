"""The regions of a network, which a broker knows for subscribers that have none of their own."""

from __future__ import annotations

from pathlib import Path

from ...errors import UsageError
from ...lang.app import App
from ...lang.ops import DeclareRegion, UseGazetteer
from ...lang.parse import parse
from ...lang.scopes import in_themselves
from ...lang.show import show
from .conditions import LONGEST

REGIONS = "regions"
"""What a broker is asked about."""


def regions(path: Path) -> str:
    """The regions of a gazetteer, as they travel."""
    text = show(App(in_themselves([UseGazetteer(path.name)], path.parent)))
    if len(text) > LONGEST:
        raise UsageError(
            f"{path}: its regions have {len(text):,} characters, and a definition that travels "
            f"{LONGEST:,} at most"
        )
    return text


def among(app: App, regions: str) -> App:
    """An app with the regions of a network, for one that names such and has none of its own.  [S6]"""
    known = [statement for statement in parse(regions).statements if isinstance(statement, DeclareRegion)]
    return App([*known, *app.statements], file=app.file)
