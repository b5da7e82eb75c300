"""State Maintenance Components: detectors that fuse topics over time and space.

The definition of their meaning, clear and literal; the numbers are those of ``spec/sps.md``.
An :mod:`infospace` keeps knowledge, a :mod:`query` selects some of it, an :mod:`smc` tells from it
when a condition starts and ends, a :mod:`component` does so over time, and a :mod:`detector` runs
components that build on one another.

For volume, :mod:`columns` does what a component does for many instants at once: a :mod:`series` is what
a query looks at, :mod:`screening` finds the instants that may matter, :mod:`turning` goes through these.
"""
