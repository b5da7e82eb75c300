"""The process from which Spark forks its Python workers, with what they need imported once.

Spark's own imports nothing before it forks, lest a library has started threads; then every worker does.  Of
what is imported here only Arrow's second allocator starts a thread, and it knows how to be forked; BLAS is
told not to.
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
