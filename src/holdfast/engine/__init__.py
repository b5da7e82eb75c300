"""What all runtimes share: condition machines, operators, and the graph that links them.

Nothing here depends on the language or on a kind of condition.
"""
