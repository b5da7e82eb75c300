"""Folders in which the files that a definition names are searched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from ..errors import UsageError


class Folder(Protocol):
    """The protocol of folders: ``folder / name`` resolves a file name to a path.

    Every ``Path`` follows it.
    """

    def __truediv__(self, path: str, /) -> Path: ...


class Within:
    """A folder that resolves only declared files: those in the folder ``declared``, and those ``known`` by
    name.

    ``opened`` collects the names that were resolved.

    >>> srv = Within(Path("/srv/alarms"), declared=Path("/srv/alarms/tables"), known=["limits.csv"])
    >>> srv / "limits.csv", srv / "tables/rooms.csv"
    (PosixPath('/srv/alarms/limits.csv'), PosixPath('/srv/alarms/tables/rooms.csv'))
    >>> srv / "broker.password"
    Traceback (most recent call last):
    holdfast.errors.UsageError: 'broker.password' is in no declared folder ('files' in serve.toml)
    >>> srv / "tables/../../passwd"
    Traceback (most recent call last):
    holdfast.errors.UsageError: 'tables/../../passwd' is in no declared folder ('files' in serve.toml)
    >>> srv / "limits\\0.csv"
    Traceback (most recent call last):
    holdfast.errors.UsageError: 'limits\\x00.csv' leads to no file: embedded null byte
    """

    def __init__(self, folder: Path, declared: Path | None = None, known: Iterable[str] = ()) -> None:
        self._folder = folder.resolve()
        self._declared = None if declared is None else declared.resolve()
        self._known = frozenset(known)
        self.opened: list[str] = []

    def __truediv__(self, path: str) -> Path:
        found = self._folder / path
        try:
            file = found.resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a name that is none, links that lead in a ring
            raise UsageError(f"{path!r} leads to no file: {error}") from error
        is_declared = self._declared is not None and file.is_relative_to(self._declared)
        if not is_declared and path not in self._known:
            raise UsageError(f"'{path}' is in no declared folder ('files' in serve.toml)")
        self.opened.append(path)
        return found
