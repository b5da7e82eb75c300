"""One package per kind of condition.

`kind.py` describes the parts of a kind, and `registry.py` lists the kinds. `checks.py`, `clauses.py`,
`derived.py` and `revision.py` have code that several kinds use.
"""
