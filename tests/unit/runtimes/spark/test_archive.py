"""Archives of the JVM's classes: written by the first, used by the next, never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.runtimes.spark import archive

FINISHED = bytes.fromhex("a8ab0bf0") + b"classes"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark with one jar, a Java and an empty cache."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_bytes(b"jar")
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    return tmp_path / "spark"


def archive_written(home: Path) -> Path:
    """The path that the options of Java give for writing an archive."""
    return Path(_only(home, "-XX:ArchiveClassesAtExit="))


def archive_used(home: Path) -> Path:
    """The path that the options of Java give for reading an archive."""
    return Path(_only(home, "-XX:SharedArchiveFile="))


def _only(home: Path, option: str) -> str:
    (found,) = (one.removeprefix(option) for one in archive.options(home, "brief") if one.startswith(option))
    return found


def later(home: Path) -> None:
    """Let the claim to write an archive expire."""
    for claim in (home.parent / "cache").rglob("*.claim"):
        os.utime(claim, (0, 0))


def test_an_archive_written_by_java_is_recognised_as_finished(tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no Java on the path")
    release = Path(java).resolve().parent.parent / "release"
    if 'JAVA_VERSION="17' not in release.read_text():
        pytest.skip("that is another Java")
    part = tmp_path / "x.part"
    options = [f"-XX:ArchiveClassesAtExit={part}", "-Xshare:auto", "-Xlog:disable"]
    subprocess.run([java, *options, "-version"], check=True, capture_output=True)
    assert archive._is_finished(part)


def test_one_process_writes_the_archive_and_others_do_without_for_a_while(home: Path) -> None:
    archive_written(home)
    assert archive.options(home, "brief") == ()
    assert archive.options(home, "full") != ()  # which is another
    later(home)
    archive_written(home).write_bytes(FINISHED)
    archive_used(home)
    assert not list((home.parent / "cache").rglob("brief*.claim"))


def test_the_first_process_writes_the_archive_and_the_next_uses_it(home: Path) -> None:
    first = archive_written(home)
    later(home)
    second = archive_written(home)
    assert first != second  # they do not meet
    first.write_bytes(FINISHED)
    second.write_bytes(FINISHED + b"and more")
    assert archive_used(home).read_bytes() == FINISHED + b"and more"
    assert any("ArchiveClassesAtExit" in one for one in archive.options(home, "full"))
    assert archive_used(home) == archive_used(home)
    assert not first.exists()
    assert not second.exists()


def test_an_unfinished_archive_is_not_used_and_removed_without_a_writer(home: Path) -> None:
    part = archive_written(home)
    part.write_bytes(bytes(64))
    later(home)
    assert archive_written(home) != part
    assert part.exists()
    os.utime(part, (0, 0))
    later(home)
    archive_written(home)
    assert not part.exists()


def test_an_archive_belongs_to_one_java_and_one_set_of_jars(home: Path) -> None:
    archive_written(home).write_bytes(FINISHED)
    before = archive_used(home)
    (home / "jars" / "more.jar").write_bytes(b"jar")
    assert before.exists()
    archive_written(home).write_bytes(FINISHED)
    assert archive_used(home) != before


def test_archives_unused_for_long_are_removed(home: Path) -> None:
    archive_written(home).write_bytes(FINISHED)
    mine = archive_used(home)
    for i in range(archive.ARCHIVES):
        other = mine.with_name(f"other-{i}.jsa")
        other.write_bytes(FINISHED)
        os.utime(other, (i, i))
    assert archive_used(home) == mine
    left = {path.name for path in mine.parent.iterdir()}
    assert left == {mine.name, *(f"other-{i}.jsa" for i in range(1, archive.ARCHIVES))}


def test_unfinished_archives_of_a_removed_spark_are_deleted(home: Path) -> None:
    archive_written(home).write_bytes(FINISHED)
    mine = archive_used(home)
    for name in ("gone-1-2.part", "gone.claim", "here-3-4.part", "here.claim"):
        other = mine.with_name(name)
        other.write_bytes(FINISHED)
        if name.startswith("gone"):
            os.utime(other, (0, 0))
    assert archive_used(home) == mine
    assert {path.name for path in mine.parent.iterdir()} == {mine.name, "here-3-4.part", "here.claim"}


@pytest.mark.parametrize("version", ['JAVA_VERSION="11.0.2"', ""])
def test_no_archive_is_used_for_an_older_java(home: Path, version: str) -> None:
    Path(os.environ["JAVA_HOME"], "release").write_text(version)
    assert archive.options(home, "brief") == ()


def test_no_archive_is_used_where_spark_has_settings(home: Path) -> None:
    (home / "conf").mkdir()
    assert archive.options(home, "brief")
    (home / "conf" / "spark-defaults.conf").write_text("")
    assert archive.options(home, "brief") == ()


@pytest.mark.parametrize("missing", ["java", "cache", "spark"])
def test_a_missing_java_or_cache_is_no_error(
    home: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match missing:
        case "java":
            monkeypatch.setenv("JAVA_HOME", str(home / "nowhere"))
        case "cache":
            (home.parent / "cache").write_text("a file")
        case "spark":
            (home / "jars" / "core.jar").unlink()
            (home / "jars").rmdir()
    assert archive.options(home, "brief") == ()
