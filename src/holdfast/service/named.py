"""Copies of the files that a definition names, as they were when the definition was accepted.

The output of a log entry must depend only on the entries before it, not on later changes of a table's file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree

from ..definition.check import check
from ..definition.parse import parse
from ..errors import UsageError
from ..model.folder import Folder
from .log.log import hide, sync_folder

FOLDER = "files"
"""The folder of the copies, beside the log: each under the digest of its content and its own name."""


class Copies:
    """A folder that resolves file names to copies.

    A file is read in place if it has no copy, or if its copy is lost and the file is unchanged.
    """

    def __init__(self, stored: Path, base: Folder, names: Mapping[str, str]) -> None:
        self._folder, self._base, self._names = stored, base, names

    def __truediv__(self, path: str) -> Path:
        digest, there = self._names.get(path), self._base / path
        if digest is None:
            return there
        stored = self._folder / digest / Path(path).name
        return there if not stored.exists() and _digest_at(there) == digest else stored


class _TrackingFolder:
    """A folder that records which names were resolved."""

    def __init__(self, base: Folder) -> None:
        self._base, self.resolved = base, dict[str, Path]()

    def __truediv__(self, path: str) -> Path:
        return self.resolved.setdefault(path, self._base / path)


def read_named_files(text: str, base: Folder) -> dict[str, bytes]:
    """Return the content of each file that a definition names."""
    folder = _TrackingFolder(base)
    check(parse(text), folder)
    try:
        return {name: path.read_bytes() for name, path in folder.resolved.items()}
    except IsADirectoryError as error:
        raise UsageError(
            f"{error.filename} is a folder: a service keeps a copy of what a definition names, which must be "
            "one file; write its parts into one"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of each file by its name."""
    return {name: _digest(content) for name, content in files.items()}


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _digest_at(path: Path) -> str | None:
    try:
        return _digest(path.read_bytes())
    except OSError:
        return None


def store_copies(files: Mapping[str, bytes], stored: Path) -> dict[str, str]:
    """Store copies of files in the folder ``stored``, and return their digests by name."""
    resolved = digests(files)
    try:
        for name, content in files.items():
            _write_whole(stored / resolved[name] / Path(name).name, content)
    except OSError as error:
        raise UsageError(f"the files that the definition names cannot be kept: {error.strerror}") from error
    return resolved


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only when it is complete.

    An existing file is left unchanged.
    """
    if path.exists():
        return
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    hide(part)
    part.replace(path)
    for folder in (
        path.parent,
        path.parent.parent,
        path.parent.parent.parent,
    ):  # each may be new in its parent
        sync_folder(folder)


def remove_unused_copies(stored: Path, needed: Iterable[str]) -> None:
    """Remove the copies whose digests are not in ``needed``."""
    for folder in {path.name for path in stored.glob("*")} - set(needed):
        rmtree(stored / folder, ignore_errors=True)
