"""Frozen values: events, topics, batches, space, instants, units, quality of delivery.

Knows nothing else of Holdfast.
"""
