"""Advice on the numbers of a state, by the effect of variants over a history.

The numbers are thresholds and minimum durations. ``question`` has the entry point.
"""
