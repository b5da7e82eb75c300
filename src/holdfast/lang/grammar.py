"""The parser of the language, generated from ``holdfast.lark`` and cached on disk.

To change the syntax, edit ``holdfast.lark`` and the function in ``tree`` or ``nodes`` that reads the changed
rule.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import DefinitionError
from ..kernels.functions import AGGREGATES
from ..model.instant import Duration
from ..model.unit import UNITS
from .nodes import coordinate_of, duration, expression, levels
from .ops import Expression, Levels

if TYPE_CHECKING:
    from lark import Lark

    from .nodes import Node


T = TypeVar("T")


@cache
def keywords() -> list[str]:
    """Return the keywords of the language, for editors."""
    found = re.findall(r"([a-z]{2,}(?:\|[a-z]+)*)\)?\(\?[!=]", _grammar())
    return sorted({word for words in found for word in words.split("|")})


def parse_expression(text: str) -> Expression:
    """Parse the text of an expression. Raises ``DefinitionError`` for a syntax error."""
    return read(text, None, "expression", expression)


def parse_levels(text: str) -> Levels:
    """Parse nested groups of names: ``room, sensor within floor``."""
    return read(text, None, "levels", levels)


def parse_duration(text: str) -> Duration:
    """Parse a duration such as ``30 s`` and return it in microseconds."""
    return read(text, None, "duration", duration)


def parse_length(text: str) -> float:
    """Parse a length such as ``500 m`` and return it in metres."""
    return read(text, None, "coordinate", coordinate_of)


@cache
def _grammar() -> str:
    """Return the text of the grammar with the names of aggregate functions.

    The names of units are still missing.
    """
    grammar = files(__package__).joinpath("holdfast.lark").read_text(encoding="utf-8")
    return grammar.replace("<FUNCTIONS>", "|".join(AGGREGATES))


@cache
def parser() -> Lark:
    """Return the parser. Its tables are loaded from the cache, or generated and stored there."""
    from lark import Lark

    units = "|".join(re.escape(name).replace("/", r"\/") for name in sorted(UNITS, key=len, reverse=True))
    grammar = _grammar().replace("<UNITS>", units)
    if (tables := _tables(grammar)) is not None:
        with suppress(Exception), tables.open("rb") as file:  # the file is missing or damaged
            return Lark.load(file)
    made = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=["file", "expression", "levels", "duration", "select", "match", "coordinate"],
        propagate_positions=True,
        maybe_placeholders=True,
    )
    if tables is not None:
        _keep(made, tables)
    return made


def _keep(parser: Lark, path: Path) -> None:
    """Store the tables of a parser in a file. Without space on the disk there is no file."""
    part = path.with_name(f"{path.name}-{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            parser.save(file)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _tables(grammar: str) -> Path | None:
    """Return the path for the parser's tables, or ``None`` if no folder is suitable.

    Generating the tables takes longer than parsing most definitions. Only this user may write the folder,
    because the file is trusted.
    """
    from lark import __version__

    try:
        said = Path(os.environ.get("XDG_CACHE_HOME") or "")
        folder = (said if said.is_absolute() else Path.home() / ".cache") / "holdfast" / "language"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):  # no rights, no room, no home
        return None
    if found.st_mode & 0o022 or found.st_uid != os.getuid():
        return None
    made_by = f"{__version__} {sys.version_info[:2]} {grammar}"
    return folder / blake2b(made_by.encode(), digest_size=8).hexdigest()


def read(text: str, file: str | None, start: str, build: Callable[[Node], T]) -> T:
    """Parse a text from the rule ``start``, and build the result from the tree.

    Errors have their place in the text.
    """
    from lark.exceptions import UnexpectedInput

    from .mistakes import explain

    try:
        return build(parser().parse(text, start=start))
    except UnexpectedInput as error:
        raise explain(error, parser(), text, start).located(text, file) from None
    except DefinitionError as error:
        raise error.located(text, file) from None
