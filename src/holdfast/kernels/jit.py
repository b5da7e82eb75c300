"""Compilation of kernels to machine code. No other module imports numba.

A kernel runs as plain Python on small inputs and is compiled on its first large input. To change the limit,
change `SMALL`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from typing import Any

import numpy as np

SMALL = 2048
"""The length below which inputs run as Python until a longer input has compiled the kernel."""


class Kernel:
    """A loop over arrays that compiles itself. ``body`` is the Python function."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self._compiled: Callable[..., Any] | None = None
        update_wrapper(self, body)

    def __call__(self, *args: Any) -> Any:
        return self.body(*args) if self.is_python(len(args[0])) else self.compiled(*args)

    def is_python(self, size: int) -> bool:
        """Whether an input of length ``size`` runs as Python."""
        return self._compiled is None and size < SMALL

    @property
    def compiled(self) -> Callable[..., Any]:
        """The compiled kernel. The first access compiles it."""
        if self._compiled is None:
            import numba

            try:
                code = numba.njit(cache=True, nogil=True)(self.body)
            except RuntimeError:  # no folder for the machine code: compile in every process
                code = numba.njit(nogil=True)(self.body)
            self._compiled = _alike(code, only_read(self.body))
        return self._compiled


def kernel(body: Callable[..., Any]) -> Kernel:
    """Return a loop as a kernel. The first argument of the loop must be an array."""
    return Kernel(body)


def only_read(body: Callable[..., Any]) -> list[bool]:
    """Return for each parameter of a loop whether the loop only reads it.

    The result is false for a parameter that the loop assigns, or writes to directly or through a named view
    of it.
    """
    import ast
    import inspect
    from textwrap import dedent

    def names(node: ast.AST, how: type[ast.expr_context]) -> set[str]:
        return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, how)}

    def base(node: ast.expr) -> set[str]:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return {node.id} if isinstance(node, ast.Name) else set()

    parameters = inspect.signature(body).parameters
    try:
        source = inspect.getsource(body)
    except OSError:  # only the bytecode is installed
        return [False] * len(parameters)
    written: set[str] = set()
    made_of: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(dedent(source))):
        match node:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                written |= base(node)
            case ast.Call(func=ast.Attribute() as method):  # as in found.sort()
                written |= base(method)
            case ast.Assign(targets=targets, value=value):
                for name in set().union(*(names(target, ast.Store) for target in targets)):
                    made_of.setdefault(name, set()).update(names(value, ast.Load))
            case ast.Name(id=name, ctx=ast.Store()):
                made_of.setdefault(name, set())
    while more := set().union(*(made_of.get(name, ()) for name in written)) - written:
        written |= more
    return [name not in written and name not in made_of for name in parameters]


def _alike(code: Callable[..., Any], reads: list[bool]) -> Callable[..., Any]:
    """Return a compiled function that receives each array that it only reads as a read-only array.

    For numba, a writable array has another type than a read-only array. Without this wrapper, numba would
    compile the loop again for each combination.
    """

    @wraps(code)
    def run(*args: Any) -> Any:
        return code(*(_arguments(*one) for one in zip(args, reads, strict=True)))

    return run


def _arguments(argument: Any, is_read: bool) -> Any:
    """Return an argument; an array that is only read is returned as a read-only view."""
    if is_read and isinstance(argument, np.ndarray) and argument.flags.writeable:
        argument = argument.view()
        argument.flags.writeable = False
    return argument
