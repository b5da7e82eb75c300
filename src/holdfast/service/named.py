"""The files that a definition names, as they were when it was taken: what is said of an entry of the log
depends on the entries before it, not on what somebody writes into a table meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree

from ..errors import UsageError
from ..lang.check import check
from ..lang.parse import parse
from ..model.folder import Folder
from .log.log import hide, sync_folder

FOLDER = "files"
"""Where they are kept, beside the log: each under the digest of what it says and its own name."""


class Copies:
    """Files as they are kept; those that are not, or were lost and say the same, where they are."""

    def __init__(self, kept: Path, base: Folder, names: Mapping[str, str]) -> None:
        self._kept, self._base, self._names = kept, base, names

    def __truediv__(self, path: str) -> Path:
        digest, there = self._names.get(path), self._base / path
        if digest is None:
            return there
        kept = self._kept / digest / Path(path).name
        return there if not kept.exists() and _digest_at(there) == digest else kept


class _Noting:
    """Another folder, and what was looked for there."""

    def __init__(self, base: Folder) -> None:
        self._base, self.found = base, dict[str, Path]()

    def __truediv__(self, path: str) -> Path:
        return self.found.setdefault(path, self._base / path)


def named(text: str, base: Folder) -> dict[str, bytes]:
    """What stands in the files that a definition names."""
    noting = _Noting(base)
    check(parse(text), noting)
    try:
        return {name: path.read_bytes() for name, path in noting.found.items()}
    except IsADirectoryError as error:
        raise UsageError(
            f"{error.filename} is a folder: a service keeps a copy of what a definition names, which must be "
            "one file; write its parts into one"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files, by what tells them from others."""
    return {name: _digest(said) for name, said in files.items()}


def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


def _digest_at(path: Path) -> str | None:
    try:
        return _digest(path.read_bytes())
    except OSError:
        return None


def keep(files: Mapping[str, bytes], kept: Path) -> dict[str, str]:
    """Keep files; their digests."""
    found = digests(files)
    try:
        for name, said in files.items():
            _put(kept / found[name] / Path(name).name, said)
    except OSError as error:
        raise UsageError(f"the files that the definition names cannot be kept: {error.strerror}") from error
    return found


def _put(path: Path, said: bytes) -> None:
    """A file that is there whole, or not at all."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(said)
        file.flush()
        os.fsync(file.fileno())
    hide(part)
    part.replace(path)
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):  # each may be new in the next
        sync_folder(folder)


def forget(kept: Path, needed: Iterable[str]) -> None:
    """Remove what no definition needs that may be taken again."""
    for folder in {path.name for path in kept.glob("*")} - set(needed):
        rmtree(kept / folder, ignore_errors=True)
