"""Kernels: loops over arrays, which numba compiles to machine code on their first large use.

Kernels depend on no event, topic or condition. Each has a simple reference implementation in the tests. To
add a kernel, decorate a function whose first argument is an array with `jit.kernel`.
"""
