"""Spark as a runtime.

`batch` processes files of a history, `streaming` files as they arrive, `frames` DataFrames. All three share
the operators (`job`), the selection of relevant rows (`reading`), the packets that travel to shards (`pack`)
and notifications as rows (`runtimes.table`).

In the terms of the thesis the reader of a data source is the publisher's broker, and a scope is a shuffle
key.
"""
