"""The language: text and Python builders produce the same closed set of operations.

``grammar`` parses text to ``ops``, ``types`` rewrites expressions to the core, ``expressions`` evaluates
them. The kinds add their own statements; no module here depends on a kind or a runtime.
"""
