"""From a checked definition to a graph of operators: compilation, pushdown, revisions, explanations,
advice.
"""
