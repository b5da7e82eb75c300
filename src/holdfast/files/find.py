"""Resolution of inputs to files: paths, folders and globs, in a fixed order, with the format of each file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from ..errors import UsageError, did_you_mean

Format = Literal["parquet", "csv", "jsonl", "table"]

FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_KNOWN = ".parquet, .pq, .csv, .jsonl, .ndjson or .json (the text formats also with .gz)"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file or table to read. ``rank`` is its place among all files, the major part of row sequences."""

    path: str
    rank: int
    format: Format
    compressed: bool = False
    topic: str | None = None
    table: Any = field(default=None, compare=False, repr=False)
    """The content of a table in memory."""

    @property
    def size(self) -> int:
        """The size in bytes, on disk or in memory."""
        return os.path.getsize(self.path) if self.table is None else int(self.table.nbytes)

    @property
    def is_typed(self) -> bool:
        """Whether the columns have types. A wrong type is then an error of the file, not of its rows."""
        return self.format in ("parquet", "table")


def find(inputs: Sequence[str], topics: Sequence[str] = ()) -> list[InputFile]:
    """Return the files of inputs in the given order; inside a folder or glob, by path.

    An input is a file, a folder (all files in it at any depth, except hidden ones and those that start with
    ``_``), a glob (``**`` descends into folders), or ``Topic=`` followed by one of these.
    """
    found: list[InputFile] = []
    seen: set[tuple[str, str | None]] = set()
    for text in inputs:
        topic, place = split_topic(text, topics)
        for path in _paths(place, topics):
            key = (os.path.realpath(path), topic)
            if key in seen:
                raise UsageError(f"input '{path}' is named twice; its rows would count twice. Name it once.")
            seen.add(key)
            found.append(_input_file(path, len(found), topic))
    if not found:
        raise UsageError("no input; name a file, a folder or a glob with --input")
    return found


def format_of(path: str) -> tuple[Format, bool] | None:
    """Return the format by the suffix of a path, and whether the file is compressed.

    Returns ``None`` for any other suffix.

    >>> format_of("a/b.CSV.gz"), format_of("x.pq"), format_of("x.txt")
    (('csv', True), ('parquet', False), None)
    """
    name = Path(path).name.lower()
    compressed = name.endswith(".gz")
    format = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if format is None or (compressed and format == "parquet"):
        return None
    return format, compressed


def split_topic(text: str, topics: Sequence[str]) -> tuple[str | None, str]:
    """Split an input into its topic and its path. The topic is ``None`` if the input does not name one."""
    before, equals, after = text.partition("=")
    return (before, after) if equals and before in topics else (None, text)


def _paths(place: str, topics: Sequence[str]) -> list[str]:
    if os.path.isdir(place):
        _require_plain(Path(place).parents)
        paths = list(beneath(place))
        nothing = f"the folder '{place}' holds no files"
    elif os.path.exists(place):
        return [place]
    elif glob.has_magic(place):
        matches = glob.glob(place, recursive=True)
        folders = [m for m in matches if os.path.isdir(m)] if "**" not in place else []
        files = [m for m in matches if os.path.isfile(m) and not _is_hidden(os.path.basename(m))]
        _require_plain({parent for file in files for parent in Path(file).parents})
        paths = list({*files, *(path for folder in folders for path in beneath(folder))})
        nothing = f"no file matches '{place}'"
    else:
        raise UsageError(_absent(place, topics))
    if not paths:
        raise UsageError(f"{nothing}; name a file, a folder or a glob that holds {_KNOWN}")
    return sorted(paths, key=lambda path: Path(path).as_posix())


def _absent(place: str, topics: Sequence[str]) -> str:
    before, equals, after = place.partition("=")
    if equals and os.path.exists(after):
        near = did_you_mean(before, topics) or f"Declared: {', '.join(topics) or 'none'}."
        return f"input '{place}': there is no topic '{before}'. {near}"
    folder = os.path.dirname(place) or "."
    if not os.path.isdir(folder):
        return f"input '{place}' does not exist; there is no folder '{folder}'"
    near = did_you_mean(os.path.basename(place), _names(folder)) or "Check the path."
    return f"input '{place}' does not exist. {near}"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except PermissionError:
        raise UsageError(f"no permission to list the folder '{folder}'; check its access rights") from None


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def beneath(folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield every file under a folder that is not hidden.

    Links back to a containing folder are not followed.
    """
    real = os.path.realpath(folder)
    if real in above:
        return
    _require_plain([Path(folder)])
    for name in _names(folder):
        path = os.path.join(folder, name)
        if _is_hidden(name):
            continue
        if os.path.isdir(path):
            yield from beneath(path, above | {real})
        else:
            yield path


_TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""The metadata folders of table formats, which list the valid files and rows, and the names of these
formats."""


def _require_plain(folders: Iterable[Path]) -> None:
    """Refuse a folder of a table format, such as Delta, because its files also contain deleted rows."""
    for folder, (name, format) in product(folders, _TABLES.items()):
        if (folder / name).is_dir():
            raise UsageError(
                f"the folder '{folder}' is a {format} table, whose files also hold deleted rows; "
                "read it with Spark, and give the DataFrame to holdfast.spark.replay"
            )


def _input_file(path: str, rank: int, topic: str | None) -> InputFile:
    known = format_of(path)
    if known is None:
        raise UsageError(
            f"input '{path}' has no known suffix; rename it to one of {_KNOWN}, "
            "or leave it out with a glob such as 'folder/*.csv'"
        )
    if not os.path.isfile(path):
        raise UsageError(f"input '{path}' is not a regular file; write it to a file first")
    if not os.access(path, os.R_OK):
        raise UsageError(f"no permission to read '{path}'; check its access rights")
    return InputFile(path, rank, known[0], known[1], topic)
