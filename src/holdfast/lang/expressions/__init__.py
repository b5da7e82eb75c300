"""Back ends that evaluate expressions.

``event`` evaluates on one event, ``batch`` on an Arrow batch, ``sql`` in Spark, and ``evaluate`` on any
context. ``written`` generates functions for many predicates.
"""
