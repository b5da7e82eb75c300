"""What Python does first in a process that Spark has started: it forgets Spark's archives.

Spark puts its modules on the path as archives, from which Python compiles them at each start, which takes a
second of each query that is started.  They are installed as well, and compiled.
"""

import os
import re
import sys
from importlib import import_module

_ARCHIVED = re.compile(r"(pyspark|py4j)\b.*\.zip")
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [path for path in sys.path if path != _HERE and not _ARCHIVED.fullmatch(os.path.basename(path))]

if __name__ == "sitecustomize":  # there may be another, which would have been the first
    ours = sys.modules.pop(__name__)
    try:
        import_module(__name__)
    except ImportError:
        sys.modules[__name__] = ours
