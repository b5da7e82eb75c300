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
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def __truediv__(self, path: str) -> Path:
        found = self._folder / path
        if not found.resolve().is_relative_to(self._folder):
            raise UsageError(f"'{path}': a definition reads files of its own folder only")
        return found
