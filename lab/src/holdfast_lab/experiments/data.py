"""Locate the real data sets, which are not part of Holdfast. Each experiment names the files that it
needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import InputError

VARIABLE = "HOLDFAST_DATA"


def locate(name: str, folder: Path | None = None) -> Path:
    """Return the path of a file in the data folder.

    The folder is ``folder`` if given, otherwise that of the variable ``HOLDFAST_DATA``. By default it is
    ``shared/data`` beside the checkout of Holdfast or beside the current directory.
    """
    if folder is not None:
        places, label = [folder], f"--data {folder}"
    elif os.environ.get(VARIABLE):
        places, label = [Path(os.environ[VARIABLE])], f"{VARIABLE}={os.environ[VARIABLE]}"
    else:
        places = [base.parent / "shared" / "data" for base in _bases()]
        label = " and in ".join(map(str, places))
    for place in places:
        if (place / name).is_file():
            return place / name
    raise InputError(
        f"the experiment needs the data set {name}, which is not there (looked in {label}). "
        f"Give the folder of data sets with --data DIR or {VARIABLE}."
    )


def _bases(module: Path = Path(__file__)) -> Iterator[Path]:
    root = module.resolve().parents[4]
    if (root / "lab" / "pyproject.toml").is_file():
        yield root
    if Path.cwd() != root:
        yield Path.cwd()
