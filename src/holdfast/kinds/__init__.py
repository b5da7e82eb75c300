"""One package per kind of condition.

`kind.py` lists the parts of a kind, `registry.py` the kinds. `checks.py`, `clauses.py`, `derived.py` and
`revision.py` hold what several kinds share.
"""
