"""Detection of damaged and missing parts of a log, by its seals, its heads, and gaps between positions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .frame import SegmentScan
from .log import scan_segment, segments_of
from .seal import FOLDER, SEALS, Seal, SealedFile, digest, has_removed_files, last_removed_file, seals


class LogDamage(NamedTuple):
    """A range of positions of which something is lost, with its file and a description."""

    where: str
    """The file, or the folder that lacks one."""
    first: int
    after: int
    what: str
    is_missing: bool = False
    """Whether whole segments are missing, not bytes in one."""

    def __str__(self) -> str:
        return f"{self.where} {self.what} (positions {self.first} to {self.after - 1})"


class _LogPiece(NamedTuple):
    """A segment or seal of the log with its range of positions.

    ``follows`` is the position at which the log before it ended.
    """

    where: str
    first: int
    follows: int
    after: int | None
    """Unknown where a seal is damaged."""
    is_whole: bool = True
    """Whether it can be read to its end."""


def damage_of(folder: Path) -> list[LogDamage]:
    """Return the damage of a log. The files of readings are not read; ``changed_files`` checks them."""
    pieces = {one.first: one for one in _pieces_of_segments(folder)} | {
        one.first: one for one in _pieces_of_seals(folder)
    }
    return [
        *damage_of_sealed(folder),
        *_gaps(folder, [pieces[first] for first in sorted(pieces)]),
        *(
            one
            for segment in segments_of(folder)
            for one in _damage_within(segment.path, scan_segment(segment))
        ),
    ]


def damage_of_sealed(folder: Path) -> list[LogDamage]:
    """Return the damage of sealed segments that is visible without reading the files."""
    removed, found = last_removed_file(folder), list[LogDamage]()
    for one in seals(folder):
        if not isinstance(one, Seal):
            found.append(LogDamage(f"{SEALS}/{one.first:020}.json", one.first, one.first + 1, "is damaged"))
            continue
        found += (
            LogDamage(f"segment {one.first:020}", *lost, "could not be read in part") for lost in one.lost
        )
        for name, known in one.files.items():
            if name > removed and (what := _fault(folder / FOLDER / name, known)) is not None:
                found.append(LogDamage(f"{FOLDER}/{name}", one.first, one.after, what))
    return found


def _fault(path: Path, known: SealedFile) -> str | None:
    try:
        return None if path.stat().st_size == known.size else "has another size than when it was written"
    except FileNotFoundError:
        return "is missing"


def changed_files(folder: Path) -> Iterator[LogDamage | None]:
    """Read one file of readings at each step. Yield its damage, or ``None`` if it is unchanged."""
    for one in seals(folder):
        if not isinstance(one, Seal):
            continue
        for name, known in one.files.items():
            try:
                is_same = digest(folder / FOLDER / name) == known.digest
            except OSError:  # missing, or removed meanwhile
                is_same = True
            yield None if is_same else LogDamage(f"{FOLDER}/{name}", one.first, one.after, "is damaged")


def _pieces_of_seals(folder: Path) -> Iterator[_LogPiece]:
    for one in seals(folder):
        where = f"{SEALS}/{one.first:020}.json"
        if isinstance(one, Seal):
            yield _LogPiece(where, one.first, one.follows, one.after)
        else:
            yield _LogPiece(where, one.first, one.first, None)


def _pieces_of_segments(folder: Path) -> Iterator[_LogPiece]:
    for segment in segments_of(folder):
        found = scan_segment(segment)
        follows = segment.first if found.header is None else found.header.follows
        is_whole = found.end >= found.size
        yield _LogPiece(f"wal/{segment.path.name}", segment.first, follows, found.after, is_whole)


def _gaps(folder: Path, pieces: list[_LogPiece]) -> Iterator[LogDamage]:
    """Yield the gaps between each piece and the piece before it."""
    before = _LogPiece("", 0, 0, None if has_removed_files(folder) else 0)
    for piece in pieces:
        if before.after is not None and before.after < piece.follows:
            lost = before.after, piece.follows
            if before.is_whole:
                yield LogDamage(f"the log before {piece.where}", *lost, "is missing", is_missing=True)
            else:
                yield LogDamage(before.where, *lost, "is damaged at its end")
        before = piece


def _damage_within(path: Path, found: SegmentScan) -> Iterator[LogDamage]:
    """Yield the damaged records of a segment."""
    for record in found.records:
        if record.body is None:
            yield LogDamage(f"wal/{path.name}", record.position, record.after, "is damaged")
