"""Runs that are done, in a file, so that a long sweep goes on where it stopped."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path

from ...errors import InputError
from ...files.whole import WholeFile
from .grid import Cell, Measured

CODE = (
    "experiments/fsf",
    "kernels/gap.py",
    "kernels/member.py",
    "model/correlation.py",
    "protocols/fsf",
    "runtimes/overlay/correlating.py",
)
"""The sources on which a run depends."""


def place(name: str, subject: object) -> Path:
    """Where the runs of an experiment on this subject, with this code, are kept; others begin anew."""
    digest = blake2b(pickle.dumps(subject), digest_size=8)
    for path in sorted(_sources()):
        digest.update(path.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "holdfast" / "reproduce"
    return folder / f"{name}-{digest.hexdigest()}.json"


def done(path: Path) -> dict[Cell, Measured]:
    """The runs that are kept there; none if there is no such file."""
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {Cell(*cell): Measured(*run) for cell, run in kept}
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} does not hold runs of an experiment ({error}); remove it") from error


def keep(path: Path, runs: Mapping[Cell, Measured]) -> None:
    """Put all runs there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with WholeFile(str(path)) as whole:
        whole.file.write(json.dumps(list(runs.items())).encode())


def _sources() -> Iterator[Path]:
    root = Path(str(files("holdfast")))
    for part in CODE:
        yield from [root / part] if part.endswith(".py") else (root / part).rglob("*.py")
