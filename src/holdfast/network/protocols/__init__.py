"""Protocol machines: pure state machines that hosts run. They import only the model, the kernels and the
engine.

Each package is one protocol. A host passes inputs to `handle` and carries out the effects.
"""
