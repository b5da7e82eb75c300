"""Advice on the numbers of a state: the effect of variants over a history."""
