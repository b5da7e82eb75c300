"""States with minimum durations, no-data predicates and expected sources.

The module `machine` runs up to 64 conditions over one level of scopes. `kernels/guard.py` computes the effect
of time and readings on a scope. Transitions that timers cause carry a reading that `readings` stores.
"""
