"""Advice on the numbers of a state: thresholds and minimum durations, by the effect of variants over a
history.
"""
