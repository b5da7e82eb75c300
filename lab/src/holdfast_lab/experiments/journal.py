"""Store completed runs in a file, so that an interrupted experiment continues where it stopped."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import InputError
from holdfast.files.whole import WholeFile

Runs = TypeVar("Runs")


def place(name: str, subject: object, code: Iterable[str]) -> Path:
    """Return the file for the runs of an experiment about ``subject``.

    ``code`` names modules and folders of ``holdfast`` and ``holdfast_lab``. A change of these sources gives
    another file, so that all runs are repeated.
    """
    digest = blake2b(pickle.dumps(subject), digest_size=8)
    for path in sorted(_sources(code)):
        digest.update(path.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "holdfast" / "reproduce"
    return folder / f"{name}-{digest.hexdigest()}.json"


def _sources(code: Iterable[str]) -> Iterator[Path]:
    for part in code:
        package, _, inner = part.partition("/")
        path = Path(str(files(package))) / inner
        yield from [path] if part.endswith(".py") else path.rglob("*.py")


def done(path: Path, made: Callable[[Any], dict[Any, Runs]]) -> dict[Any, Runs]:
    """Read the stored runs; ``made`` converts the JSON value. A missing file has no runs."""
    if not path.exists():
        return {}
    try:
        return made(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not hold runs of an experiment ({error}); remove it") from error


def keep(path: Path, runs: object) -> None:
    """Write all runs as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with WholeFile(str(path)) as whole:
        whole.file.write(json.dumps(runs).encode())
