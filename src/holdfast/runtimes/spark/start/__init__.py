"""A folder that comes first on the module path of the Python processes that Spark starts on this machine.

Python runs its `sitecustomize` at each start.
"""
