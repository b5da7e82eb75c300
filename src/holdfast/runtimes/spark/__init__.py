"""On Spark: history through :func:`~holdfast.runtimes.spark.replay.replay`.

The publisher's broker is the data source's reader, a scope is a shuffle key.
"""
