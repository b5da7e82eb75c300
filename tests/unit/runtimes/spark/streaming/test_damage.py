"""A checkpoint of which something is damaged or missing is refused, and nothing is written to it."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from holdfast.errors import UsageError

damages = pytest.importorskip("holdfast.runtimes.spark.streaming.damage")
ledgers = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")
checkpoints = pytest.importorskip("holdfast.runtimes.spark.streaming.checkpoint")

CONF = {"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": "2"}}


def write(path: Path, *lines: object) -> None:
    """A file as Hadoop writes it, with its checksums beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines).encode()
    parts = [raw[start : start + 512] for start in range(0, len(raw), 512)]
    sums = b"".join(zlib.crc32(part).to_bytes(4) for part in parts)
    path.write_bytes(raw)
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4) + sums)


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint after two batches, of three files together; the third has been planned."""
    it = checkpoints.Checkpoint(tmp_path)
    write(it.spark / "metadata", {"id": "x" * 600})
    for batch, files in enumerate((1, 3, 4)):
        write(it.spark / "offsets" / str(batch), "v1", CONF, {"files": files})
    ledger = ledgers.Ledger(it.ledger)
    for batch in (0, 1):
        write(it.spark / "commits" / str(batch), "v1", {"nextBatchWatermarkMs": 0})
        ledger.commit(batch, ledgers.Record(), [])
        for partition in (0, 1):
            write(it.spark / "state" / "0" / str(partition) / f"{batch + 1}.changelog", "bits")
    known = {"storeName": "default", "stateSchemaFilePaths": ["file:/elsewhere/0_a"]}
    write(it.spark / "state" / "0" / "_metadata" / "v2" / "0", "v2", {"stateStoreInfo": [known]})
    write(it.spark / "state" / "0" / "_stateSchema" / "default" / "0_a", "bits")
    it.log.write_text("".join(f'{{"path":"{name}.csv"}}\n' for name in "abcd"))
    return it


def test_an_undamaged_checkpoint_is_accepted(checkpoint):
    damages.require_whole(checkpoint)
    ledgers.Ledger(checkpoint.ledger).commit(2, ledgers.Record(), [])  # it died before Spark's commit
    damages.require_whole(checkpoint)


def test_a_checkpoint_without_batches_is_accepted(tmp_path):
    damages.require_whole(checkpoints.Checkpoint(tmp_path))
    write(tmp_path / "spark" / "metadata", {"id": "x"})
    ledgers.Ledger(tmp_path / "ledger.sqlite")
    damages.require_whole(checkpoints.Checkpoint(tmp_path))
    (tmp_path / "spark" / "metadata").write_bytes(b'{"id":')
    with pytest.raises(UsageError, match="spark/metadata: damaged"):
        damages.require_whole(checkpoints.Checkpoint(tmp_path))


@pytest.mark.parametrize(
    ("path", "change", "what"),
    [
        ("spark/metadata", None, "spark/metadata: missing"),
        ("spark/metadata", b"", "spark/metadata: damaged"),
        ("spark/metadata", b'{"id":"another"}', "spark/metadata: damaged"),
        ("spark/offsets/2", b"v1\n{", "spark/offsets/2: damaged"),
        ("spark/offsets/2", b"", "spark/offsets/2: damaged"),
        ("spark/offsets/2", bytes(400), "spark/offsets/2: damaged"),
        ("spark/offsets/*", None, "spark/offsets: nothing is there, though batch 1 has been done"),
        ("spark/offsets/.2.crc", b"crc", "spark/offsets/2: damaged"),
        ("spark/commits/1", None, "spark: its last batch is 2 by its offsets and 0 by its commits"),
        ("spark/commits/1", b"v1\n", "spark/commits/1: damaged"),
        ("spark/state", None, "state/0/0: the states after batch 1 are missing"),
        ("spark/state/0/1/2.changelog", None, "state/0/1: the states after batch 1 are missing"),
        ("spark/state/0/1/2.changelog", b"bats", "state/0/1: the states after batch 1 are damaged"),
        ("spark", None, "spark/offsets: nothing is there, though batch 1 has been done"),
        ("files.jsonl", None, "files.jsonl: it has 0 of the 4 files that have been read"),
        ("files.jsonl", b'{"path":"a.csv"}\n{"path":', "files.jsonl: it has 1 of the 4 files"),
        ("files.jsonl", b'{"path":"a.csv"}\n\0\0\n' * 2, "files.jsonl: damaged"),
        ("files.jsonl", b'{"path":"a.csv"}\n' * 4, "files.jsonl: it has a file twice"),
        ("spark/state/0/_metadata", None, "_metadata/v2: nothing is there, though there are states"),
        ("spark/state/0/_metadata/v2/0", b"v2\n{", "state/0/_metadata/v2/0: damaged"),
        ("spark/state/0/_stateSchema", None, "_stateSchema/default/0_a: missing"),
        ("spark/state/0/_stateSchema/default/0_a", b"bats", "_stateSchema/default/0_a: damaged"),
        ("spark/state/0/1/1.changelog", None, "state/0/1: the states after batch 1 are missing"),
        ("ledger.sqlite", None, "ledger.sqlite: missing, though batches have been done"),
        ("ledger.sqlite", b"x" * 5_000, "ledger.sqlite: damaged (file is not a database)"),
    ],
)
def test_a_missing_or_damaged_part_of_a_checkpoint_is_named_with_a_remedy(checkpoint, path, change, what):
    for found in checkpoint.folder.glob(path):
        if change is not None:
            found.write_bytes(change)
        else:
            found.rename(checkpoint.folder.parent / f"gone-{found.name}")
    before = contents(checkpoint.folder)
    with pytest.raises(UsageError, match=re.escape(what)) as caught:
        damages.require_whole(checkpoint)
    assert "start a new checkpoint" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(checkpoint.folder) == before


def test_parts_of_two_copies_of_a_checkpoint_are_refused(checkpoint):
    ledgers.Ledger(checkpoint.ledger).commit(7, ledgers.Record(), [])
    with pytest.raises(UsageError, match=r"ledger\.sqlite: its last batch is 7, and Spark's is 1"):
        damages.require_whole(checkpoint)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "lines", [("v1", {}, {}), ("v1", {"conf": {}}, {"files": 4}), ("v1", {"files": 4}), ("v1",)]
)
def test_offsets_with_other_contents_are_reported_as_damaged(checkpoint, lines):
    """A manual change may include the checksum."""
    write(checkpoint.spark / "offsets" / "2", *lines)
    with pytest.raises(UsageError, match=r"spark/offsets/2: damaged"):
        damages.require_whole(checkpoint)


def test_a_folder_in_place_of_a_file_is_reported_as_damage(checkpoint):
    (checkpoint.spark / "offsets" / "2").unlink()
    (checkpoint.spark / "offsets" / "2").mkdir()
    with pytest.raises(UsageError, match=r"spark/offsets/2: damaged"):
        damages.require_whole(checkpoint)


def test_state_files_are_checked_from_the_last_snapshot_on(checkpoint):
    here = checkpoint.spark / "state" / "0" / "1"
    write(here / "SSTs" / "8-a.sst", "bits")
    with ZipFile(here / "2.zip", "w") as picture:
        picture.writestr(
            "metadata", 'v1\n{"sstFiles":[{"localFileName":"8.sst","dfsSstFileName":"8-a.sst"}]}'
        )
    for gone in here.glob("1.changelog"):
        gone.unlink()
    damages.require_whole(checkpoint)
    (here / "2.changelog").write_bytes(b"bats")
    with pytest.raises(UsageError, match=r"state/0/1: the states after batch 1 are damaged"):
        damages.require_whole(checkpoint)
    (here / "2.changelog").unlink()
    damages.require_whole(checkpoint)
    write(here / "SSTs" / "8-a.sst", "bits")
    (here / "SSTs" / "8-a.sst").write_bytes(b"bats")
    with pytest.raises(UsageError, match=r"state/0/1: the states after batch 1 are damaged"):
        damages.require_whole(checkpoint)
    (here / "SSTs" / "8-a.sst").unlink()
    with pytest.raises(UsageError, match=r"state/0/1: the states after batch 1 are missing"):
        damages.require_whole(checkpoint)
