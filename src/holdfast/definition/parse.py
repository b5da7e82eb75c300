"""Parsing of a whole definition to operations, each with its place in the text.

Only the syntax is verified here. `check` resolves names and types later.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UsageError
from ..kinds.registry import RULES
from ..lang.grammar import read
from ..lang.tree import statements
from .app import App

_PATH = re.compile(r"\S+\.hf")


def parse(text: str, file: str | None = None) -> App:
    """Parse a definition.

    >>> len(parse("topic T (value float)  filter Hot on T where value > 40").statements)
    2
    """
    text = text.removeprefix("\ufeff")
    return read(text, file, "file", lambda tree: App(statements(tree, RULES), text=text, file=file))


def load(path: str | Path) -> App:
    """Parse the definition in a file. Files that it names are searched in the same folder."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a definition: it is not UTF-8 text") from error
    return parse(text, str(path))


def as_app(app: App | str) -> App:
    """Return a definition. Text is parsed first."""
    if isinstance(app, App):
        return app
    if isinstance(app, str) and not _PATH.fullmatch(app.strip()):
        return parse(app)
    if isinstance(app, (str, Path)):
        raise UsageError(f"'{app}' is the name of a file, not a definition; holdfast.load('{app}') reads it")
    raise UsageError(f"a definition is text, or the App that load and parse make of it, not {app!r:.60}")


# --- text to tree ------------------------------------------------------------------------------
