"""Kernels: functions from arrays to arrays.

Each is a plain loop that numba compiles on its first large use, and has a naive twin in the tests. Kernels
know nothing of events, topics or conditions.
"""
