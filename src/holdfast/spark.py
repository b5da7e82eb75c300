"""On Spark, from Python.  ``import holdfast as hf``, then ``hf.spark.replay(app, frame)`` and so on.

History: ``replay`` of a DataFrame, ``replay_files``.  Live: ``stream`` of a streaming DataFrame;
``live`` with ``run`` or ``started`` over folders, as ``holdfast run`` has it.
"""

from .runtimes.spark.datasource import HoldfastSource
from .runtimes.spark.flow import stream
from .runtimes.spark.frame import replay
from .runtimes.spark.replay import Replay
from .runtimes.spark.replay import replay as replay_files
from .runtimes.spark.session import session
from .runtimes.spark.status import status
from .runtimes.spark.stream import Live, Query, live, run, started

__all__ = [
    "HoldfastSource",
    "Live",
    "Query",
    "Replay",
    "live",
    "replay",
    "replay_files",
    "run",
    "session",
    "started",
    "status",
    "stream",
]
