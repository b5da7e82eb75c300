"""What of a log is damaged or missing: known by its seals, its heads, and positions that do not follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .frame import Scan
from .log import scan_segment, segments_of
from .seal import FOLDER, SEALS, Seal, SealedFile, digest, is_trimmed, seals, trimmed


class Damage(NamedTuple):
    """Positions of which something is lost, and how."""

    where: str
    """The file, or the folder that lacks one."""
    first: int
    after: int
    what: str
    is_missing: bool = False
    """Whether whole segments are missing, not bytes within one."""

    def __str__(self) -> str:
        return f"{self.where} {self.what} (positions {self.first} to {self.after - 1})"


class _Piece(NamedTuple):
    """A part of the log: its positions, and where the log before it ended."""

    where: str
    first: int
    follows: int
    after: int | None
    """Unknown where a seal is damaged."""
    is_whole: bool = True
    """Whether it can be read to its end."""


def damage_of(folder: Path) -> list[Damage]:
    """What of a log is damaged or missing, without a look into files of readings."""
    pieces = {one.first: one for one in _unsealed_pieces(folder)} | {
        one.first: one for one in _sealed_pieces(folder)
    }
    return [
        *damage_of_sealed(folder),
        *_breaks(folder, [pieces[first] for first in sorted(pieces)]),
        *(one for segment in segments_of(folder) for one in _within(segment.path, scan_segment(segment))),
    ]


def damage_of_sealed(folder: Path) -> list[Damage]:
    """What of the sealed segments is known to be lost."""
    removed, found = trimmed(folder), list[Damage]()
    for one in seals(folder):
        if not isinstance(one, Seal):
            found.append(Damage(f"{SEALS}/{one.first:020}.json", one.first, one.first + 1, "is damaged"))
            continue
        found += (Damage(f"segment {one.first:020}", *lost, "could not be read in part") for lost in one.lost)
        for name, known in one.files.items():
            if name > removed and (what := _what(folder / FOLDER / name, known)) is not None:
                found.append(Damage(f"{FOLDER}/{name}", one.first, one.after, what))
    return found


def _what(path: Path, known: SealedFile) -> str | None:
    try:
        return None if path.stat().st_size == known.size else "has another size than when it was written"
    except FileNotFoundError:
        return "is missing"


def changed_files(folder: Path) -> Iterator[Damage | None]:
    """A look into one file of readings after another: those that are not as they were written."""
    for one in seals(folder):
        if not isinstance(one, Seal):
            continue
        for name, known in one.files.items():
            try:
                is_same = digest(folder / FOLDER / name) == known.digest
            except OSError:  # it is gone meanwhile, or missing
                is_same = True
            yield None if is_same else Damage(f"{FOLDER}/{name}", one.first, one.after, "is damaged")


def _sealed_pieces(folder: Path) -> Iterator[_Piece]:
    for one in seals(folder):
        where = f"{SEALS}/{one.first:020}.json"
        if isinstance(one, Seal):
            yield _Piece(where, one.first, one.follows, one.after)
        else:
            yield _Piece(where, one.first, one.first, None)


def _unsealed_pieces(folder: Path) -> Iterator[_Piece]:
    for segment in segments_of(folder):
        found = scan_segment(segment)
        follows = segment.first if found.header is None else found.header.follows
        is_whole = found.end >= found.size
        yield _Piece(f"wal/{segment.path.name}", segment.first, follows, found.after, is_whole)


def _breaks(folder: Path, pieces: list[_Piece]) -> Iterator[Damage]:
    """Where a piece does not follow the one before it."""
    before = _Piece("", 0, 0, None if is_trimmed(folder) else 0)
    for piece in pieces:
        if before.after is not None and before.after < piece.follows:
            lost = before.after, piece.follows
            if before.is_whole:
                yield Damage(f"the log before {piece.where}", *lost, "is missing", is_missing=True)
            else:
                yield Damage(before.where, *lost, "is damaged at its end")
        before = piece


def _within(path: Path, found: Scan) -> Iterator[Damage]:
    """The damaged records of a segment."""
    for record in found.records:
        if record.body is None:
            yield Damage(f"wal/{path.name}", record.position, record.after, "is damaged")
