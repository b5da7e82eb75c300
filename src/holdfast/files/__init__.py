"""Tables at rest: find files, read them as batches, plan closed parts, sort rows, write notifications.

This package knows the model, but no conditions, machines or runtimes. Every runtime that reads or writes
files uses these functions.
"""
