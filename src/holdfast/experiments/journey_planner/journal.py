"""Days that are done, in a file, so that a long run goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path

from ...errors import InputError
from ...files.whole import WholeFile
from .count import Counts

CODE = ("experiments/journey_planner", "machines/detector")
"""The sources on which a day depends."""


def place(name: str, parameters: object) -> Path:
    """Where the days of an experiment with these parameters and this code are kept; others begin anew."""
    digest = blake2b(repr(parameters).encode(), digest_size=8)
    root = Path(str(files("holdfast")))
    for path in sorted(path for part in CODE for path in (root / part).rglob("*.py")):
        digest.update(path.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "holdfast" / "reproduce"
    return folder / f"{name}-{digest.hexdigest()}.json"


def done(path: Path) -> dict[str, Counts]:
    """The days that are kept there; none if there is no such file."""
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {str(day): dict(counts) for day, counts in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not hold days of an experiment ({error}); remove it") from error


def keep(path: Path, days: Mapping[str, Counts]) -> None:
    """Put all days there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with WholeFile(str(path)) as whole:
        whole.file.write(json.dumps(days).encode())
