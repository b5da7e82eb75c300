"""Tables at rest: find files, read them as batches, plan closed parts, sort, write notifications.

Knows the model and nothing of conditions, machines or runtimes; every runtime that reads or writes
files shares these functions.
"""
