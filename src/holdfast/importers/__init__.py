"""Translation of alerting rules of other systems to definitions.

A note reports each part that has no equivalent. To add a system, write a module with a function ``translate``
and list it in the command ``import``.
"""
