"""A class archive that makes Spark's Java process start faster.

The first session on a machine lets Java write an archive of its loaded classes when it ends, in the
background. Later sessions map it into memory and need about half the time to their first result. Archives are
in the cache folder, one for each combination of Java, Spark, jars and use. One session at a time writes one.
Java verifies an archive and ignores it if it does not fit. Without an archive, Spark starts at its usual
speed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

ARCHIVES = 4
"""How many archives are stored; each has about 150 MB."""
ABANDONED = 3600.0
"""The age in seconds after which an unfinished archive is removed."""
CLAIMED = 600.0
"""For how many seconds a claim keeps other sessions from writing an archive, which costs a session some
seconds at its end."""

_OLDEST = 17
"""The first Java that can do it well, and the first on which Spark 4 runs."""
_FINISHED = (0xF00BABA8).to_bytes(4, "little")
"""What an archive begins with; Java writes its beginning last."""
_QUIET = ("-Xshare:auto", "-Xlog:disable")


def options(spark_home: Path, use: str) -> Sequence[str]:
    """Return Java's options to use an archive, or to write one if there is none.

    The result is empty if neither is possible. `use` names the purpose of a session, because sessions load
    different classes for it.
    """
    try:
        key = _key(spark_home)
        return () if key is None else _options(_folder(), f"{use}-{key}")
    except OSError:  # no folder, no rights, no room
        return ()


def _options(folder: Path, key: str) -> Sequence[str]:
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{key}.jsa"
    _adopt_finished(archive)
    if archive.exists():
        os.utime(archive)  # it is in use
        _remove_old(folder)
        return (f"-XX:SharedArchiveFile={archive}", *_QUIET)
    if not _claim(folder / f"{key}.claim"):
        return ()
    part = folder / f"{key}-{os.getpid()}-{time.time_ns()}.part"  # who else starts now has another
    return (f"-XX:ArchiveClassesAtExit={part}", *_QUIET)


def _claim(claim: Path) -> bool:
    """Claim the right to write an archive. Return false if another session has claimed it recently."""
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        with suppress(FileNotFoundError):
            if time.time() - claim.stat().st_mtime < CLAIMED:
                return False
            claim.touch()
    return True


def _adopt_finished(archive: Path) -> None:
    """Rename the archives of earlier sessions that have ended.

    If there are several, the largest one remains.
    """
    for part in archive.parent.glob(f"{archive.stem}-*.part"):
        with suppress(FileNotFoundError):  # somebody else was faster
            if _is_finished(part) and not _is_larger(archive, part):
                part.replace(archive)
                archive.with_suffix(".claim").unlink(missing_ok=True)
            elif _is_finished(part) or time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()


def _is_finished(part: Path) -> bool:
    with part.open("rb") as file:
        return file.read(len(_FINISHED)) == _FINISHED


def _is_larger(archive: Path, part: Path) -> bool:
    return archive.exists() and archive.stat().st_size > part.stat().st_size


def _remove_old(folder: Path) -> None:
    """Remove the least recently used archives, and unfinished ones whose session has ended."""
    by_use = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime)
    for old in by_use[:-ARCHIVES]:
        old.unlink(missing_ok=True)
    for unfinished in [*folder.glob("*.part"), *folder.glob("*.claim")]:
        with suppress(FileNotFoundError):  # somebody else was faster
            if time.time() - unfinished.stat().st_mtime > ABANDONED:
                unfinished.unlink()


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "holdfast" / "java"


def _key(spark_home: Path) -> str | None:
    """Return a digest that names the archive for this Java and Spark, or ``None`` if no archive can be used.

    That is so for an old Java, and if Spark has a folder of settings, which would be on the class path.
    """
    java = _java_home()
    if java is None or _is_configured(spark_home):
        return None
    release = (java / "release").read_text()
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if version is None or int(version[1]) < _OLDEST:
        return None
    parts = [str(java), release, str(spark_home)]
    with os.scandir(spark_home / "jars") as jars:
        parts += sorted(f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars)
    return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _java_home() -> Path | None:
    """Return the folder of the Java that Spark's script would start, or ``None``."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home)
    found = shutil.which("java")
    return Path(found).resolve().parent.parent if found else None


def _is_configured(spark_home: Path) -> bool:
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    return folder.is_dir() and any(folder.iterdir())
