"""What all runtimes share: condition machines, operators and the graph that links them.  It knows neither the
language nor a kind of condition.
"""
