"""Errors in a scenario, with their position in the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import DefinitionError, HoldfastError, UsageError

Route = tuple[str | int, ...]
"""The path to a value: keys of mappings and indices of lists, from the outermost value."""


class ScenarioError(UsageError):
    """An invalid value (or key, with ``key``), the path to it, and a hint.

    >>> print(ScenarioError("there is no node '12'", ("traffic", 0, "to"), hint="Nodes are 0 … 8."))
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
    """Prefix the path of every `ScenarioError` raised in the block. Other errors become a `ScenarioError`,
    except definition errors, which have a position.
    """
    try:
        yield
    except ScenarioError as fault:
        where = route + fault.route
        raise ScenarioError(fault.message, where, hint=fault.hint, key=fault.key) from fault.__cause__
    except DefinitionError:
        raise
    except HoldfastError as error:
        raise ScenarioError(str(error), route) from error
