"""Holdfast on Spark, from Python: `import holdfast as hf`, then `hf.spark.replay(app, frame)`.

For a history there are `replay` of a DataFrame, `replay_files`, and `intervals` of their notifications. For
streams there are `stream` of a streaming DataFrame, and `live` with `run` or `started` over folders, as in
`holdfast run`.
"""

from .runtimes.spark.batch.replay import Replay
from .runtimes.spark.batch.replay import replay as replay_files
from .runtimes.spark.frames.datasource import HoldfastSource
from .runtimes.spark.frames.replay import replay
from .runtimes.spark.frames.stream import stream
from .runtimes.spark.interval import intervals
from .runtimes.spark.session import session
from .runtimes.spark.streaming.query import Live, Query, live, run, started
from .runtimes.spark.streaming.status import status

__all__ = [
    "HoldfastSource",
    "Live",
    "Query",
    "Replay",
    "intervals",
    "live",
    "replay",
    "replay_files",
    "run",
    "session",
    "started",
    "status",
    "stream",
]
