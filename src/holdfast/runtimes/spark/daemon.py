"""The process from which Spark forks its Python workers, with what they need imported once.

Spark's own imports nothing before it forks, lest a library has started threads; then every worker does, and
compiles Spark's modules each time, since they come from an archive.  Of what is imported here only Arrow's
second allocator starts a thread, and it knows how to be forked; BLAS is told not to.
"""

import os
import re
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_ARCHIVED = re.compile(r"(pyspark|py4j)\b.*\.zip")
sys.path = [p for p in sys.path if not _ARCHIVED.fullmatch(os.path.basename(p))]  # installed, and compiled

import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

from . import reading, table  # noqa: E402, F401

if __name__ == "__main__":
    manager()
