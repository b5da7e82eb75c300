"""Whether a checkpoint is whole, found out before anything is written.

Parts of it get lost by copies that were not complete, by disks and by hands.  Spark would say so by the
stack of some thread, or begin anew where it cannot know better, and tell everything twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import msgspec

from ....errors import UsageError
from .checkpoint import FIRST, LOST, Checkpoint, Generation
from .ledger import standing


class Damage(NamedTuple):
    path: Path
    what: str


class Done(NamedTuple):
    """The last batch that Spark has done in a generation, and where the source was then."""

    batch: int
    offset: dict[str, int]


def done(spark: Path) -> Done | None:
    """What has been done, of a checkpoint of Spark's that is whole."""
    committed = _numbers(spark / "commits")
    return Done(committed[-1], _json_lines(spark / "offsets" / str(committed[-1]))[-1]) if committed else None


def require_whole(checkpoint: Checkpoint, began: Generation = FIRST) -> None:
    """Refuse a checkpoint in which something is damaged or missing; ``began`` is its generation."""
    for path, what in _damages(checkpoint, began):
        raise UsageError(f"{path}: {what}; {LOST}")


def _damages(checkpoint: Checkpoint, began: Generation) -> Iterator[Damage]:
    spark, ledger = checkpoint.spark, checkpoint.ledger
    planned, committed = _numbers(spark / "offsets"), _numbers(spark / "commits")
    if (planned or committed or began.batch) and not ledger.exists():
        yield Damage(ledger, "missing, though batches have been done")
    batch = standing(ledger, most=0).batch if ledger.exists() else None
    if batch is not None and not planned and not began.batch - 1 <= batch < began.batch + bool(began.number):
        yield Damage(spark / "offsets", f"nothing is there, though batch {batch} has been done")
    if planned or committed or (spark / "metadata").exists():
        yield from _unreadable(spark / "metadata", ["id"])
    if not committed:
        yield from _lost_beginning(checkpoint, began)
    if not planned and not committed:
        return
    for folder, numbers in ((spark / "offsets", planned), (spark / "commits", committed)):
        for number in numbers[-2:]:
            yield from _unreadable(folder / str(number))
    last, at = max(planned, default=-1), max(committed, default=-1)
    if not last - 1 <= at <= last:
        yield Damage(spark, f"its last batch is {last} by its offsets and {at} by its commits")
    ours = began.batch + at
    if batch not in (ours, ours + 1) and (batch, ours) != (None, -1):
        yield Damage(ledger, f"its last batch is {batch}, and Spark's is {ours}")
    yield from _gone(checkpoint, spark / "offsets" / str(last), at)


def _gone(checkpoint: Checkpoint, offsets: Path, done: int) -> Iterator[Damage]:
    """Whether what the last batch is to go on from is not there."""
    if (planned := _planned(offsets)) is None:
        yield Damage(offsets, "damaged")
        return
    yield from _cut_short(checkpoint.log, planned.files)
    if done >= 0:
        yield from _lost_states(checkpoint.spark / "state", planned.partitions, done + 1)


def _lost_beginning(checkpoint: Checkpoint, began: Generation) -> Iterator[Damage]:
    """Whether something is not there, or not as it was, from which a generation is to begin."""
    if began.number:
        yield from _cut_short(checkpoint.log, began.offset["files"])
    for path, kept in ((checkpoint.states / name, kept) for name, kept in began.states.items()):
        if not path.is_file():
            yield Damage(path, "missing, and a shard is to go on from it")
        elif zlib.crc32(path.read_bytes()) != kept:
            yield Damage(path, "damaged, and a shard is to go on from it")


class _Planned(NamedTuple):
    """What a batch reads up to, and into how many parts states are cut."""

    files: int
    partitions: int


def _planned(path: Path) -> _Planned | None:
    """What Spark has planned, if that is what stands in the file."""
    try:
        *_, conf, offset = _json_lines(path)
        return _Planned(int(offset["files"]), int(conf["conf"]["spark.sql.shuffle.partitions"]))
    except (ValueError, TypeError, KeyError):
        return None


def _numbers(folder: Path) -> list[int]:
    """The batches of which Spark has a file in a folder."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())


def _unreadable(path: Path, keys: list[str] | None = None) -> Iterator[Damage]:
    """Whether Spark could not read a file of its own."""
    if not path.exists():
        yield Damage(path, "missing")
        return
    try:
        *_, last = _json_lines(path)
        if not _agrees(path) or not set(keys or ()) <= set(last):
            yield Damage(path, "damaged")
    except (OSError, ValueError, TypeError):
        yield Damage(path, "damaged")


def _json_lines(path: Path) -> list[Any]:
    """The lines of a file of Spark's that are JSON; all are but the first, which may say a version."""
    lines = path.read_bytes().splitlines()
    return [msgspec.json.decode(line) for i, line in enumerate(lines) if i or not line.startswith(b"v")]


def _agrees(path: Path) -> bool:
    """Whether a file is what Hadoop's checksums beside it say, if there are some."""
    beside = path.with_name(f".{path.name}.crc")
    if not beside.exists():
        return True
    sums = beside.read_bytes()
    if sums[:4] != b"crc\0":
        return False
    raw, size = path.read_bytes(), int.from_bytes(sums[4:8])
    parts = [raw[start : start + size] for start in range(0, len(raw), size or 1)]
    return sums[8:] == b"".join(zlib.crc32(part).to_bytes(4) for part in parts)


def _cut_short(log: Path, needed: int) -> Iterator[Damage]:
    """Whether the log of files has fewer lines than have been read of it, some that say nothing, or one
    twice: what follows that would be read again."""
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    if len(lines) < needed:
        yield Damage(log, f"it has {len(lines):,} of the {needed:,} files that have been read")
    try:
        entries = msgspec.json.Decoder(dict).decode_lines(b"\n".join(lines))
        known = {(entry["path"], entry.get("topic")) for entry in entries}
    except (msgspec.DecodeError, KeyError, TypeError):
        yield Damage(log, "damaged")
    else:
        if len(known) < len(entries):
            yield Damage(log, "it has a file twice")


def _lost_states(folder: Path, partitions: int, version: int) -> Iterator[Damage]:
    """Whether a shuffle partition lacks its states after the last batch: a picture of them, and every change
    since that."""
    for operator in sorted(folder.glob("[0-9]*")) or [folder / "0"]:
        if operator.exists():
            yield from _unknown_form(operator)
        for partition in range(partitions):
            here = operator / str(partition)
            needed = _needed(here, version)
            if not needed or not all(path.exists() for path in needed):
                yield Damage(here, f"the states after batch {version - 1} are missing")
            elif not all(map(_agrees, needed)):
                yield Damage(here, f"the states after batch {version - 1} are damaged")


def _unknown_form(operator: Path) -> Iterator[Damage]:
    """Whether Spark could not know any more in which form an operator keeps its states."""
    told = operator / "_metadata" / "v2"
    if not (numbers := _numbers(told)):
        yield Damage(told, "nothing is there, though there are states")
        return
    yield from _unreadable(last := told / str(numbers[-1]))
    for store in _json_lines(last)[-1]["stateStoreInfo"]:
        for path in store["stateSchemaFilePaths"]:
            form = operator / "_stateSchema" / store["storeName"] / path.rpartition("/")[2]
            if not form.exists() or not _agrees(form):
                yield Damage(form, "damaged" if form.exists() else "missing")


def _needed(here: Path, version: int) -> list[Path]:
    """The files from which Spark makes the states of a version, and its last changes, if they are there."""
    pictures, changes = _versions(here, "zip"), _versions(here, "changelog")
    last = max((number for number in pictures if number <= version), default=0)
    since = {
        number: changes.get(number, here / f"{number}.changelog") for number in range(last + 1, version + 1)
    }
    if version in changes:
        since[version] = changes[version]
    return [*(_pieces(pictures[last]) if last else ()), *since.values()]


def _pieces(picture: Path) -> list[Path]:
    """A picture of states, and the files that it names; the picture alone if it is damaged."""
    try:
        with ZipFile(picture) as found:
            *_, said = found.read("metadata").splitlines()
        files = msgspec.json.decode(said)["sstFiles"]
        return [picture, *(picture.parent / "SSTs" / one["dfsSstFileName"] for one in files)]
    except (BadZipFile, ValueError, KeyError, TypeError):
        return [picture]


def _versions(folder: Path, kind: str) -> dict[int, Path]:
    """The files of a kind, by the version of the states for which they are."""
    numbers = ((path.stem.partition("_")[0], path) for path in folder.glob(f"*.{kind}"))
    return {int(number): path for number, path in numbers if number.isdecimal()}
