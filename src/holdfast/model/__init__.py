"""Frozen values that every other package uses: events, topics, batches, space, time, units, quality of
service.

The host that runs protocol machines is here too. This package imports nothing else of Holdfast but `errors`.
"""
