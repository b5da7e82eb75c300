"""Checks of a checkpoint for damage, before a query writes anything.

Parts get lost by incomplete copies, faulty disks and manual deletion. Spark would report a stack trace. Where
it cannot detect the loss, it would start from the beginning and repeat all notifications.
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
from .ledger import read_ledger


class Damage(NamedTuple):
    """A damaged or missing file of a checkpoint, with a description."""

    path: Path
    what: str


class Commit(NamedTuple):
    """The last batch that Spark has committed in a generation, and the offset of the source after it."""

    batch: int
    offset: dict[str, int]


def last_commit(spark: Path) -> Commit | None:
    """Return the last commit of an undamaged Spark checkpoint, or `None` if there is none."""
    committed = _numbers(spark / "commits")
    return (
        Commit(committed[-1], _json_lines(spark / "offsets" / str(committed[-1]))[-1]) if committed else None
    )


def require_whole(checkpoint: Checkpoint, generation: Generation = FIRST) -> None:
    """Raise an error if a part of the checkpoint that this generation needs is damaged or missing."""
    for path, what in _find_damage(checkpoint, generation):
        raise UsageError(f"{path}: {what}; {LOST}")


def _find_damage(checkpoint: Checkpoint, generation: Generation) -> Iterator[Damage]:
    spark, ledger = checkpoint.spark, checkpoint.ledger
    planned, committed = _numbers(spark / "offsets"), _numbers(spark / "commits")
    if (planned or committed or generation.batch) and not ledger.exists():
        yield Damage(ledger, "missing, though batches have been done")
    batch = read_ledger(ledger, most=0).batch if ledger.exists() else None
    if (
        batch is not None
        and not planned
        and not generation.batch - 1 <= batch < generation.batch + bool(generation.number)
    ):
        yield Damage(spark / "offsets", f"nothing is there, though batch {batch} has been done")
    if planned or committed or (spark / "metadata").exists():
        yield from _check_readable(spark / "metadata", ["id"])
    if not committed:
        yield from _check_start(checkpoint, generation)
    if not planned and not committed:
        return
    for folder, numbers in ((spark / "offsets", planned), (spark / "commits", committed)):
        for number in numbers[-2:]:
            yield from _check_readable(folder / str(number))
    last, at = max(planned, default=-1), max(committed, default=-1)
    if not last - 1 <= at <= last:
        yield Damage(spark, f"its last batch is {last} by its offsets and {at} by its commits")
    ours = generation.batch + at
    if batch not in (ours, ours + 1) and (batch, ours) != (None, -1):
        yield Damage(ledger, f"its last batch is {batch}, and Spark's is {ours}")
    yield from _check_input(checkpoint, spark / "offsets" / str(last), at)


def _check_input(checkpoint: Checkpoint, offsets: Path, last_commit: int) -> Iterator[Damage]:
    """Yield damage in the log of files and in the states from which the last batch continues."""
    if (planned := _read_offsets(offsets)) is None:
        yield Damage(offsets, "damaged")
        return
    yield from _check_log(checkpoint.log, planned.files)
    if last_commit >= 0:
        yield from _check_states(checkpoint.spark / "state", planned.partitions, last_commit + 1)


def _check_start(checkpoint: Checkpoint, generation: Generation) -> Iterator[Damage]:
    """Yield damage in the files from which a generation starts."""
    if generation.number:
        yield from _check_log(checkpoint.log, generation.offset["files"])
    for path, checksum in (
        (checkpoint.states / name, checksum) for name, checksum in generation.states.items()
    ):
        if not path.is_file():
            yield Damage(path, "missing, and a shard is to go on from it")
        elif zlib.crc32(path.read_bytes()) != checksum:
            yield Damage(path, "damaged, and a shard is to go on from it")


class _PlannedBatch(NamedTuple):
    """The number of files up to which a batch reads, and the number of state partitions."""

    files: int
    partitions: int


def _read_offsets(path: Path) -> _PlannedBatch | None:
    """Read the offsets of a batch as Spark planned them. Returns `None` if the file is damaged."""
    try:
        *_, conf, offset = _json_lines(path)
        return _PlannedBatch(int(offset["files"]), int(conf["conf"]["spark.sql.shuffle.partitions"]))
    except (ValueError, TypeError, KeyError):
        return None


def _numbers(folder: Path) -> list[int]:
    """Return the numbers of the batches for which a folder of Spark has a file."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())


def _check_readable(path: Path, keys: list[str] | None = None) -> Iterator[Damage]:
    """Yield damage if a file of Spark is missing or its JSON cannot be decoded."""
    if not path.exists():
        yield Damage(path, "missing")
        return
    try:
        *_, last = _json_lines(path)
        if not _matches_checksum(path) or not set(keys or ()) <= set(last):
            yield Damage(path, "damaged")
    except (OSError, ValueError, TypeError):
        yield Damage(path, "damaged")


def _json_lines(path: Path) -> list[Any]:
    """Decode the lines of a file of Spark. All are JSON except the first, which may be a version."""
    lines = path.read_bytes().splitlines()
    return [msgspec.json.decode(line) for i, line in enumerate(lines) if i or not line.startswith(b"v")]


def _matches_checksum(path: Path) -> bool:
    """Whether a file matches the checksums in Hadoop's file beside it.

    Without that file the result is true.
    """
    beside = path.with_name(f".{path.name}.crc")
    if not beside.exists():
        return True
    checksums = beside.read_bytes()
    if checksums[:4] != b"crc\0":
        return False
    raw, size = path.read_bytes(), int.from_bytes(checksums[4:8])
    parts = [raw[start : start + size] for start in range(0, len(raw), size or 1)]
    return checksums[8:] == b"".join(zlib.crc32(part).to_bytes(4) for part in parts)


def _check_log(log: Path, needed: int) -> Iterator[Damage]:
    """Yield damage if the log of files is unreadable, too short, or has a file twice.

    Spark would otherwise read files again.
    """
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


def _check_states(folder: Path, partitions: int, version: int) -> Iterator[Damage]:
    """Yield damage if a partition lacks a snapshot of its states, or a later change up to `version`."""
    for operator in sorted(folder.glob("[0-9]*")) or [folder / "0"]:
        if operator.exists():
            yield from _check_schema(operator)
        for partition in range(partitions):
            folder_of_partition = operator / str(partition)
            needed = _files_of_version(folder_of_partition, version)
            if not needed or not all(path.exists() for path in needed):
                yield Damage(folder_of_partition, f"the states after batch {version - 1} are missing")
            elif not all(map(_matches_checksum, needed)):
                yield Damage(folder_of_partition, f"the states after batch {version - 1} are damaged")


def _check_schema(operator: Path) -> Iterator[Damage]:
    """Yield damage if Spark could no longer read the schema of an operator's states."""
    metadata = operator / "_metadata" / "v2"
    if not (numbers := _numbers(metadata)):
        yield Damage(metadata, "nothing is there, though there are states")
        return
    yield from _check_readable(last := metadata / str(numbers[-1]))
    for store in _json_lines(last)[-1]["stateStoreInfo"]:
        for path in store["stateSchemaFilePaths"]:
            form = operator / "_stateSchema" / store["storeName"] / path.rpartition("/")[2]
            if not form.exists() or not _matches_checksum(form):
                yield Damage(form, "damaged" if form.exists() else "missing")


def _files_of_version(folder_of_partition: Path, version: int) -> list[Path]:
    """Return the files from which Spark restores the states of a version. Some of them may not exist."""
    snapshots, changes = (
        _files_by_version(folder_of_partition, "zip"),
        _files_by_version(folder_of_partition, "changelog"),
    )
    last = max((number for number in snapshots if number <= version), default=0)
    since = {
        number: changes.get(number, folder_of_partition / f"{number}.changelog")
        for number in range(last + 1, version + 1)
    }
    if version in changes:
        since[version] = changes[version]
    return [*(_files_of_snapshot(snapshots[last]) if last else ()), *since.values()]


def _files_of_snapshot(snapshot: Path) -> list[Path]:
    """Return a snapshot and the files that it lists. If the snapshot is damaged, return only its own path."""
    try:
        with ZipFile(snapshot) as found:
            *_, listing = found.read("metadata").splitlines()
        files = msgspec.json.decode(listing)["sstFiles"]
        return [snapshot, *(snapshot.parent / "SSTs" / file["dfsSstFileName"] for file in files)]
    except (BadZipFile, ValueError, KeyError, TypeError):
        return [snapshot]


def _files_by_version(folder: Path, kind: str) -> dict[int, Path]:
    """Return the files of a kind in a folder, by the version of the states."""
    numbers = ((path.stem.partition("_")[0], path) for path in folder.glob(f"*.{kind}"))
    return {int(number): path for number, path in numbers if number.isdecimal()}
