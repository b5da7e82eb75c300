"""The command ``example``: copy a definition and readings from the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError, did_you_mean

EXAMPLES = files("holdfast") / "examples"


def example(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which; without it, what there is.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put it; by default a folder of its name.")
    ] = None,
) -> None:
    """Put an example, a definition and a few readings, into a folder, and say what to try with it."""
    known = {folder.name: folder for folder in EXAMPLES.iterdir() if folder.is_dir()}
    if name is None:
        typer.echo("\n".join(f"holdfast example {one}" for one in sorted(known)))
        return
    if name not in known:
        hint = did_you_mean(name, known) or f"There is {', '.join(sorted(known))}."
        raise UsageError(f"no example named '{name}'. {hint}")
    folder = into or Path(name)
    parts = {folder / part.name: part.read_bytes() for part in known[name].iterdir()}
    for path, raw in parts.items():
        if path.exists() and path.read_bytes() != raw:
            raise UsageError(f"{path} is there already, and is something else; say --into another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, raw in parts.items():
        path.write_bytes(raw)
    (definition,) = (path for path in parts if path.suffix == ".hf")
    (readings,) = (path for path in parts if path.suffix == ".csv")
    typer.echo(f"{definition} and {readings} are there.  Try")
    typer.echo(f"  holdfast test {definition}")
    typer.echo(f"  holdfast replay {definition} --input {readings} --as timeline")
