"""The engine that all runtimes share: condition machines, operators, and the graph that links operators.

This package depends neither on the language nor on any kind of condition.
"""
