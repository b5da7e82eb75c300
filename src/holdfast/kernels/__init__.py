"""Arrays in, arrays out.  Every kernel is a plain loop that numba compiles on first large use, and
has a naive twin in the tests.  Knows nothing of events, topics or conditions.
"""
