"""Files of readings and notifications: find them, read them as batches, plan closed parts, sort rows, write.

This package depends on the model, but on no conditions, machines or runtimes. Every runtime that reads or
writes files uses these functions. To add an input format, write a module such as ``from_csv`` and list it in
``read``.
"""
