"""Text becomes operations, each with the place at which it stood.

`parse` reads a file; the other three read what the Python builders accept as text.  Names are not
resolved here, and types not checked: that is `check`.
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

from ..errors import DefinitionError, UsageError
from ..model.instant import Duration
from ..model.query import Query
from ..model.unit import UNITS
from .app import App
from .component.tree import select
from .correlation.tree import match_of
from .nodes import coordinate_of, duration, expression, levels
from .ops import Expression, Levels, Match
from .tree import statements

if TYPE_CHECKING:
    from lark import Lark

    from .nodes import Node

T = TypeVar("T")

_PATH = re.compile(r"\S+\.hf")


def parse(text: str, file: str | None = None) -> App:
    """The definitions that a text makes.

    >>> len(parse("topic T (value float)  filter Hot on T where value > 40").statements)
    2
    """
    text = text.removeprefix("\ufeff")
    return _read(text, file, "file", lambda tree: App(statements(tree), text=text, file=file))


def load(path: str | Path) -> App:
    """The app that a file defines; its gazetteers are looked for beside it."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a definition: it is not UTF-8 text") from error
    return parse(text, str(path))


def as_app(app: App | str) -> App:
    """The app that somebody gives: as it is, or by its text."""
    if isinstance(app, App):
        return app
    if isinstance(app, str) and not _PATH.fullmatch(app.strip()):
        return parse(app)
    if isinstance(app, (str, Path)):
        raise UsageError(f"'{app}' is the name of a file, not a definition; holdfast.load('{app}') reads it")
    raise UsageError(f"a definition is text, or the App that load and parse make of it, not {app!r:.60}")


@cache
def keywords() -> list[str]:
    """The words of the language, as an editor wants them."""
    grammar = files(__package__).joinpath("holdfast.lark").read_text(encoding="utf-8")
    found = re.findall(r"([a-z]{2,}(?:\|[a-z]+)*)\)?\(\?[!=]", grammar)
    return sorted({word for words in found for word in words.split("|")})


def parse_expression(text: str) -> Expression:
    """The expression that a text writes."""
    return _read(text, None, "expression", expression)


def parse_levels(text: str) -> Levels:
    """Nested groups of names: ``room, sensor within floor``."""
    return _read(text, None, "levels", levels)


def parse_duration(text: str) -> Duration:
    """A duration such as ``30 s``, in microseconds."""
    return _read(text, None, "duration", duration)


def parse_query(text: str) -> Query:
    """A query of a component, such as ``avg InductiveLoop over 30 s each location``."""
    return _read(text, None, "select", select)


def parse_match(text: str) -> Match:
    """A filter of a correlation, such as ``ambient_temp in [-5, 2]``."""
    return _read(text, None, "match", match_of)


def parse_length(text: str) -> float:
    """A length such as ``500 m``, in metres."""
    return _read(text, None, "coordinate", coordinate_of)


# --- text to tree ------------------------------------------------------------------------------


@cache
def _parser() -> Lark:
    from lark import Lark

    units = "|".join(re.escape(name).replace("/", r"\/") for name in sorted(UNITS, key=len, reverse=True))
    grammar = files(__package__).joinpath("holdfast.lark").read_text(encoding="utf-8")
    grammar = grammar.replace("<UNITS>", units)

    if (kept := _tables(grammar)) is not None:
        with suppress(Exception), kept.open("rb") as file:  # there are none, or they are damaged
            return Lark.load(file)
    parser = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=["file", "expression", "levels", "duration", "select", "match", "coordinate"],
        propagate_positions=True,
        maybe_placeholders=True,
    )
    if kept is not None:
        _keep(parser, kept)
    return parser


def _keep(parser: Lark, path: Path) -> None:
    """Keep the tables of a parser; they appear whole, or not at all where there is no room."""
    part = path.with_name(f"{path.name}-{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            parser.save(file)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _tables(grammar: str) -> Path | None:
    """Where the parser's tables are kept, which take longer to make than most definitions to read: in a
    folder of ours into which nobody else can put some.  Nowhere, where there is no such place."""
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


def _read(text: str, file: str | None, start: str, build: Callable[[Node], T]) -> T:
    from lark.exceptions import UnexpectedInput

    from .fault import explain

    try:
        return build(_parser().parse(text, start=start))
    except UnexpectedInput as error:
        raise explain(error, _parser(), text, start).located(text, file) from None
    except DefinitionError as error:
        raise error.located(text, file) from None
