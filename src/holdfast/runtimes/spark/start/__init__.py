"""A folder that is first on the path of the Python processes that Spark starts on this machine."""
