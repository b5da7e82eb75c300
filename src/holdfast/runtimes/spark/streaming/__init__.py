"""Streaming queries on Spark.

They read files as they arrive, store states in Spark's state store, and emit each notification exactly once.
``query`` runs a query, ``feed`` reads files, ``processor`` and ``shard`` run operators, ``output`` writes
notifications. ``checkpoint`` describes the files of a query on disk.
"""
