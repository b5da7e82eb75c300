"""From a checked definition to a graph of operators.

``compile`` creates and links operators, ``pushdown`` selects rows and columns, ``presorted`` avoids sorting,
``resume`` and ``revise`` continue from stored states, ``explain`` describes the plan, ``advise`` compares
variants.
"""
