"""Where the files are that a definition names."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ..errors import UsageError


class Folder(Protocol):
    """Leads from the name of a file to the file, as a path to a folder does."""

    def __truediv__(self, path: str, /) -> Path: ...


class Within:
    """A folder of which only its own files are read.

    >>> Within(Path("/srv/alarms")) / "limits.csv"
    PosixPath('/srv/alarms/limits.csv')
    >>> Within(Path("/srv/alarms")) / "../../etc/passwd"
    Traceback (most recent call last):
    holdfast.errors.UsageError: '../../etc/passwd': a definition reads files of its own folder only
    >>> Within(Path("/srv/alarms")) / "limits\\0.csv"
    Traceback (most recent call last):
    holdfast.errors.UsageError: 'limits\\x00.csv' leads to no file: embedded null byte
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def __truediv__(self, path: str) -> Path:
        found = self._folder / path
        try:
            is_here = found.resolve().is_relative_to(self._folder)
        except (OSError, RuntimeError, ValueError) as error:  # a name that is none, links that lead in a ring
            raise UsageError(f"{path!r} leads to no file: {error}") from error
        if not is_here:
            raise UsageError(f"'{path}': a definition reads files of its own folder only")
        return found
