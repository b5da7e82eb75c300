"""What is wrong with a scenario, and where in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import DefinitionError, HoldfastError, UsageError

Route = tuple[str | int, ...]
"""The way to a value: keys of mappings and places in lists, from the outside."""


class Fault(UsageError):
    """A value that cannot be (or, with ``key``, its key), the way to it, and what would do.

    >>> print(Fault("there is no node '12'", ("traffic", 0, "to"), hint="Nodes are 0 … 8."))
    traffic.0.to: there is no node '12'. Nodes are 0 … 8.
    """

    def __init__(
        self, message: str, route: Route = (), *, hint: str | None = None, key: bool = False
    ) -> None:
        self.message, self.route, self.hint, self.key = message, route, hint, key

    def __str__(self) -> str:
        where = f"{'.'.join(map(str, self.route))}: " if self.route else ""
        return f"{where}{self.message}" + (f". {self.hint}" if self.hint else "")


@contextmanager
def at(*route: str | int) -> Iterator[None]:
    """What is found wrong within is wrong here, or below; a mistake in a definition has its own place."""
    try:
        yield
    except Fault as fault:
        raise Fault(fault.message, route + fault.route, hint=fault.hint, key=fault.key) from fault.__cause__
    except DefinitionError:
        raise
    except HoldfastError as error:
        raise Fault(str(error), route) from error
