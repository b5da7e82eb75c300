"""Advice on the numbers of a state: what variants of it would have done over a history."""
