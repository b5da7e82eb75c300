"""The process from which Spark forks its Python workers, with the modules that they need already imported.

Spark's own daemon imports no modules before it forks, because a library may have started threads. Each worker
then imports everything. Of the modules imported here only Arrow's second allocator starts a thread, and it
supports forking; BLAS is configured to start none.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas  # noqa: F401  # Arrow asks for it as soon as it is given an array
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from .. import table  # noqa: F401
from . import reading  # noqa: F401

if __name__ == "__main__":
    manager()
