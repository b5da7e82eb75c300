"""The errors that Holdfast raises on purpose.

    HoldfastError
    ├── UsageError            you: a definition, an option or a call is wrong       (exit status 2)
    │   ├── DefinitionError   a place in a definition, with its line and a caret
    │   └── Unsupported       this runtime cannot do it; raised while compiling
    └── InputError            the data: a file is not what it says, a row is bad    (exit status 1)

A broken invariant of Holdfast itself is an ``assert``. A missing value is not an error; the language defines
its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from difflib import get_close_matches


class HoldfastError(Exception):
    """Base of all errors that Holdfast raises on purpose."""

    exit_status = 1


class UsageError(HoldfastError):
    """Raised when a definition, an option or a call is wrong. The caller can fix it."""

    exit_status = 2


class Unsupported(UsageError):
    """Raised when a valid definition uses a feature that this runtime does not support."""


class InputError(HoldfastError):
    """Raised when input data cannot be used, such as a file in another format than its name states."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a definition: line and column from 1, and a width in characters."""

    line: int
    column: int
    width: int = 1


class DefinitionError(UsageError):
    """An error in a definition: the message, its place, and a hint how to fix it."""

    def __init__(
        self,
        message: str,
        place: Place | None = None,
        *,
        hint: str | None = None,
        text: str | None = None,
        file: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.place, self.hint, self.text, self.file = message, place, hint, text, file

    def located(self, text: str, file: str | None) -> DefinitionError:
        """Return a copy of this error with the text and the file of the definition.

        With the text, the message shows the line of the error.
        """
        return DefinitionError(self.message, self.place, hint=self.hint, text=text, file=file)

    def __str__(self) -> str:
        return pointed(self.message, self.place, hint=self.hint, text=self.text, file=self.file)


def pointed(
    message: str, place: Place | None, *, hint: str | None, text: str | None, file: str | None
) -> str:
    """Return a message with file and line, the line itself, and a caret under the place."""
    where = file or "definition"
    if place is not None:
        where += f":{place.line}:{place.column}"
    lines = [f"{where}: {message}"]
    source = (text or "").splitlines()
    if place is not None and 1 <= place.line <= len(source):
        line = source[place.line - 1]
        indent = "".join("\t" if c == "\t" else " " for c in line[: place.column - 1])
        width = max(1, min(place.width, len(line) - place.column + 1))
        lines += [f"    {line}", f"    {indent}{'^' * width}"]
    if hint:
        lines.append(f"  {hint}")
    return "\n".join(lines)


def counted(things: Sized | int, name: str) -> str:
    """Return a number of things as text, with the plural where it is needed.

    >>> counted(1, "event"), counted(1_200, "event")
    ('1 event', '1,200 events')
    """
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {name}{'s' * (number != 1)}"


def did_you_mean(name: object, known: Iterable[str]) -> str | None:
    """Return the hint ``Did you mean 'value'?`` for a misspelled name.

    Returns ``None`` if no known name is similar.
    """
    known = list(known)
    folded = {k.casefold(): k for k in known}
    near = get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return f"Did you mean '{folded[near[0]]}'?" if near else None
