"""On Spark, from Python.  ``import holdfast as hf``, then ``hf.spark.replay(app, frame)`` and so on.

History: ``replay`` of a DataFrame, ``replay_files``; ``intervals`` of what they say.  Live: ``stream`` of
a streaming DataFrame; ``live`` with ``run`` or ``started`` over folders, as ``holdfast run`` has it.
"""

from .runtimes.spark.frames.datasource import HoldfastSource
from .runtimes.spark.frames.replay import replay
from .runtimes.spark.frames.stream import stream
from .runtimes.spark.history.replay import Replay
from .runtimes.spark.history.replay import replay as replay_files
from .runtimes.spark.interval import intervals
from .runtimes.spark.live.query import Live, Query, live, run, started
from .runtimes.spark.live.status import status
from .runtimes.spark.session import session

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
