"""Frozen values that every other package uses: events, topics, batches, space, time, units, quality of
service.

Also the host that runs protocol machines. This package imports nothing else of Holdfast but `errors`.
"""
