"""A state filter as brokers and subscribers run it.

Predicates, scopes and the condition machine come from the host as plain functions; a protocol
machine knows neither the language nor its compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from ...model.event import Event, Transition
from ...model.instant import Instant
from .content import Content, Filter
from .scopes import Scopes

Chain = tuple[str | None, ...]


class Watcher(Protocol):
    """The condition machine on the subscriber's side, which has the last word."""

    def initial(self) -> Any:
        """The state before any event."""

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        """Take one event.  The state that was passed in must not be used again."""

    def bits(self, state: Any) -> Collection[str]:
        """The keys of the scopes in which a bit is set."""

    def forget(self, state: Any, scopes: Scopes) -> tuple[Any, list[tuple[str | None, Instant]]]:
        """Reset the bits of some scopes; the outermost ones that held, and since when."""


@dataclass(frozen=True)
class Condition:
    """What a definition means.

    ``event`` makes the event of a notification, if it is one of the condition's topic.  ``chain`` gives
    the keys of the scopes that contain an event, innermost first, and ``reach`` those of all events
    that a filter lets pass.  A condition that is not ``filterable`` must see every event, so no broker
    may drop any.
    """

    name: str
    content: Filter
    event: Callable[[Content], Event | None]
    chain: Callable[[Event], Chain | None]
    reach: Callable[[Filter], Scopes]
    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    momentary: bool
    filterable: bool
    machine: Watcher


Conditions = Callable[[str], Condition]
"""From the text of a definition to what it means; a `UsageError` if it means nothing."""
