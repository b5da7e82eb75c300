"""Frozen values that every other package uses, and the host that runs protocol machines.

The values are events, topics, batches, space, time, units and quality of service. This package imports
nothing else of Holdfast but `errors`.
"""
