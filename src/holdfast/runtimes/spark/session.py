"""The Spark session that a command runs in."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ...errors import Unsupported


def session(master: str | None = None, *, name: str = "holdfast") -> SparkSession:
    """The running session, whatever its master, or a new one on ``master`` (default: every core of
    this machine).

    Workers use this Python: on a cluster it must be at the same path there, or
    ``PYSPARK_PYTHON`` must say where it is.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * cores))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.log.level", "ERROR")
    )
    master = master or "local[*]"
    if master == "local" or master.startswith("local["):
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.master(master).getOrCreate()
    atexit.register(spark.stop)  # executors that lose their driver complain at length
    return spark


def _require_java() -> None:
    """Java on the path or where ``JAVA_HOME`` says; else where Debian puts it."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    found = sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    if not found:
        raise Unsupported(
            "Spark needs Java 17 or newer, and there is none here.  On Debian: "
            "sudo apt-get install openjdk-17-jre-headless; or set JAVA_HOME"
        )
    os.environ["JAVA_HOME"] = str(found[-1].parent.parent)
