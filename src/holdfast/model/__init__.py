"""Frozen values: events, topics, batches, space, instants, units, quality of delivery; the host of protocols.

Knows nothing else of Holdfast.
"""
