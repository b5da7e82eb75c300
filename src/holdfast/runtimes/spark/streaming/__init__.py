"""Streaming queries on Spark: files as they arrive, states in Spark's state store, each notification exactly
once.

`query` runs a query, `feed` reads files, `processor` and `shard` run operators, `output` writes
notifications. `checkpoint` describes the files of a query on disk.
"""
