"""The language: text and Python builders produce the same closed set of operations. Nothing here depends on a
kind or a runtime.
"""
