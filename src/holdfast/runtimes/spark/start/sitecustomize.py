"""Removes Spark's archives from the module path of the Python processes that Spark starts.

Python would compile the modules in these archives at each start, which costs each query a second. The same
modules are installed and already compiled.
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
