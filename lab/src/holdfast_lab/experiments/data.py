"""Where the real data sets are.  They are no part of Holdfast; an experiment says which it needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import InputError

VARIABLE = "HOLDFAST_DATA"


def locate(name: str, folder: Path | None = None) -> Path:
    """The file of that name in the data folder.

    The folder is the given one; else what ``HOLDFAST_DATA`` names; else ``shared/data`` beside the checkout
    of Holdfast in which this module is (installed from a wheel it is in none) or beside the current
    directory.
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
