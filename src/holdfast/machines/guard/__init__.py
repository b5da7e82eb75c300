"""Guarded states: conditions that must hold for some time, that know of silence, and of who is expected.

The :mod:`machine` runs one condition over one level of scopes; what time and readings do to a scope is
``kernels/guard.py``.  What is told by time alone is told of a reading, which :mod:`readings` keeps.
"""
