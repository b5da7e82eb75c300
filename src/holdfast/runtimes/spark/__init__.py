"""Spark as a runtime: files of a history (`batch`), files as they arrive (`streaming`), DataFrames
(`frames`).

All three share the operators that run (`job`), the selection of relevant rows (`reading`), the packets that
travel to shards (`pack`) and notifications as rows (`runtimes.table`). In the terms of the thesis the reader
of a data source is the publisher's broker, and a scope is a shuffle key.
"""
