"""Muting: what is not told, and when."""
