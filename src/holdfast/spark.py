"""On Spark, from Python.  ``import holdfast as hf``, then ``hf.spark.replay(app, frame)`` and so on.

``replay`` and ``replay_files`` are history; ``stream`` any streaming DataFrame; ``live``, ``run``
and ``started`` are what ``holdfast run`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files.reading import Reading, TimeUnit, parse_zone
from .lang.app import App
from .lang.check import check
from .lang.parse import parse
from .runtimes.spark.log import folders as folders_of
from .runtimes.spark.replay import Replay
from .runtimes.spark.replay import replay as replay_files
from .runtimes.spark.session import session
from .runtimes.spark.status import status
from .runtimes.spark.stream import Live, Query, run, started

__all__ = ["Live", "Query", "Replay", "live", "replay_files", "run", "session", "started", "status"]


def live(
    app: App | str,
    *folders: str | Path,
    checkpoint: str | Path,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str = "UTC",
    time_format: str | None = None,
    time_unit: TimeUnit | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    **how: Any,
) -> Live:
    """A live query over folders (``PATH`` or ``Topic=PATH``), for ``run`` or ``started``.

    ``how`` are the further fields of ``Live``; ``sink`` may be a function that is called with each
    notification.
    """
    checked = check(parse(app) if isinstance(app, str) else app, lets=lets)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic)
    found = folders_of([f"dir:{folder}" for folder in folders], [t.name for t in checked.topics])
    return Live(checked, reading, found, Path(checkpoint), **how)
