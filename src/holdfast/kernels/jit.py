"""The one place where loops become machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

SMALL = 2048
"""Shorter inputs run as Python until something longer has made the compiled kernel worth loading."""


class Kernel:
    """A loop over arrays; ``body`` is the Python it was written as."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self._compiled: Callable[..., Any] | None = None
        update_wrapper(self, body)

    def __call__(self, *args: Any) -> Any:
        return self.body(*args) if self.is_python(len(args[0])) else self.compiled(*args)

    def is_python(self, size: int) -> bool:
        """Whether an input of that length runs as Python."""
        return self._compiled is None and size < SMALL

    @property
    def compiled(self) -> Callable[..., Any]:
        """The kernel as machine code; numba is imported here and nowhere else."""
        if self._compiled is None:
            import numba

            try:
                self._compiled = numba.njit(cache=True, nogil=True)(self.body)
            except RuntimeError:  # nowhere to keep the machine code: compile in every process
                self._compiled = numba.njit(nogil=True)(self.body)
        return self._compiled


def kernel(body: Callable[..., Any]) -> Kernel:
    """Make a kernel of a loop whose first argument is an array."""
    return Kernel(body)
