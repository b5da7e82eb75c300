"""The start of Spark sessions, with settings that suit Holdfast."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyspark
from pyspark import SparkConf
from pyspark.sql import SparkSession

from ...errors import Unsupported
from . import archive, start
from .classic import SPARK_ERRORS, core_count, spark_home

_DAEMON = "spark.python.daemon.module"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # what spark-submit leaves in the environment

PATIENCE = {
    "spark.network.timeout": "600s",
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.sql.broadcastTimeout": "1800",
    "spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs": "600000",
}
"""How long Spark waits for its own processes, which are slow on a busy machine."""


def session(master: str | None = None, *, name: str = "holdfast", is_brief: bool = False) -> SparkSession:
    """Return the active session, or start a new one.

    `master` is by default that of `spark-submit` or all local cores. Workers use this Python: on a cluster it
    must have the same path there, or `PYSPARK_PYTHON` must name it. With `is_brief` Java compiles quickly
    rather than well, for jobs that compute little in Java.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.log.level", "ERROR")
    )
    settings = dict(PATIENCE)
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # its own processes need no network
            settings |= _fast_start_settings(is_brief)
    for key in sorted(settings.keys() - _user_settings()):
        builder = builder.config(key, settings[key])
    with _on_python_path(Path(start.__path__[0])) if _DAEMON in settings else nullcontext():
        spark = builder.getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", 2 * core_count(spark))
    atexit.register(_end, spark)  # executors that lose their driver complain at length
    return spark


def _user_settings() -> set[str]:
    """Return the names of the settings that the user made.

    They are in `spark-defaults.conf`, or come from `spark-submit`.
    """
    if _SUBMITTED in os.environ:
        return {name for name, _ in SparkConf().getAll()}
    home = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")
    with suppress(OSError):
        lines = (home / "spark-defaults.conf").read_text().splitlines()
        return {re.split(r"[\s=:]", line.strip())[0] for line in lines}
    return set()


def _fast_start_settings(is_brief: bool) -> dict[str, str]:
    """Return settings with which Spark's processes on this machine start faster."""
    home = spark_home()
    java = [
        *archive.options(home, "brief" if is_brief else "full"),
        *(["-XX:TieredStopAtLevel=1"] if is_brief else []),
    ]
    found = {"spark.driver.defaultJavaOptions": shlex.join(java)} if java else {}
    installed = Path(pyspark.__file__).resolve().parent
    if os.environ["PYSPARK_PYTHON"] == sys.executable and home.samefile(installed):
        found[_DAEMON] = f"{__package__}.daemon"
    return found


@contextmanager
def _on_python_path(folder: Path) -> Iterator[None]:
    """A context in which started processes, and their children, search a folder first for modules."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _end(spark: SparkSession) -> None:
    with suppress(*SPARK_ERRORS, OSError):  # it may have gone before us
        spark.stop()


@contextmanager
def redirect_stderr(path: Path) -> Iterator[None]:
    """A context that appends stderr to a file.

    That includes the stderr of Java processes that are started in the context.
    """
    sys.stderr.flush()
    settings = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 2)
    os.close(file)
    try:
        yield
    finally:
        os.dup2(settings, 2)
        os.close(settings)


def _require_java() -> None:
    """Set `JAVA_HOME` if Java is installed but neither set nor on the path.

    Raises an error if there is no Java.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    found = sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    if not found:
        raise Unsupported(
            "Spark needs Java 17 or newer, and there is none here.  On Debian: "
            "sudo apt-get install openjdk-17-jre-headless; or set JAVA_HOME"
        )
    os.environ["JAVA_HOME"] = str(found[-1].parent.parent)
