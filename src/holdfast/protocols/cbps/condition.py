"""A condition as brokers and subscribers run it.

Predicates, scopes and the condition machine come from the host as plain functions; a protocol
machine knows neither the language nor its compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...model.event import Event, Notification, Transition
from ...model.instant import Duration, Instant
from ...model.topic import Topic
from .content import Content, Filter
from .scopes import Scopes

Chain = tuple[str | None, ...]


class Runs(Protocol):
    """As much of a condition machine as is needed to run it here."""

    @property
    def is_timed(self) -> bool:
        """Whether it minds how far time has come."""

    def initial(self) -> Any:
        """The state before any event."""

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        """Take one event.  The state that was passed in must not be used again."""

    def advance(self, state: Any, until: Instant) -> tuple[Any, list[Transition]]:
        """Let event time come as far as ``until``."""

    def due(self, state: Any) -> Instant | None:
        """The instant beyond which time must come before ``advance`` says something by itself."""

    def to_bytes(self, state: Any) -> bytes:
        """The state, to be sent elsewhere."""

    def from_bytes(self, raw: bytes) -> Any:
        """The state that ``to_bytes`` made bytes of."""


@dataclass(frozen=True)
class Condition:
    """What a definition means.

    ``inputs`` describe the notifications that it looks at, and ``event`` makes the event of one of them.
    ``told`` is what the machine says, as the subscriber hears it.
    """

    name: str
    inputs: tuple[Filter, ...]
    event: Callable[[Content], Event | None]
    machine: Runs
    told: Callable[[Iterable[Transition]], list[Notification]]


@dataclass(frozen=True)
class Hosted(Condition):
    """A condition that one broker runs; ``matters`` says whether an event can make a difference to it, and
    ``unsaid`` whether it may hold where no start was told.  ``topics`` are those that it hears, and
    ``holding`` says where it holds in a state, and since when."""

    matters: Callable[[Event], bool]
    unsaid: bool
    topics: tuple[Topic, ...]
    holding: Callable[[Any], list[tuple[str | None, Instant]]]


class Outlook(NamedTuple):
    """How far a condition has come that corrects what it has told: what starts before ``until`` was told, and
    what happened before ``final`` stands, ``behind`` the latest event; ``begun`` is since when it holds."""

    until: Instant
    final: Instant
    behind: Duration
    begun: tuple[Instant, ...]


@dataclass(frozen=True)
class Watchable(Condition):
    """A condition that its subscriber runs.  ``bits`` are the keys of the scopes in which a bit is set in a
    state of the machine, and ``doubted`` those of them that are in doubt.  ``doubt`` gives a state to go on
    with when events of some scopes may be lost, and says which of the outermost held, not yet in doubt, and
    since when.  ``outlook`` says how far it has come, if it corrects what it has told."""

    bits: Callable[[Any], Collection[str]]
    doubted: Callable[[Any], Collection[str]]
    doubt: Callable[[Any, Scopes], tuple[Any, list[tuple[str | None, Instant]]]]
    outlook: Callable[[Any], Outlook | None]


@dataclass(frozen=True)
class Replicated(Watchable):
    """A state filter, of which every broker on the way runs a replica: what starts or ends it are events as
    they were published.  Where it is in doubt it keeps its bits.

    ``chain`` gives the keys of the scopes that contain an event, innermost first, and ``reach`` those of
    all events that a filter lets pass.  One that is not ``filterable`` must see every event, so no broker
    may drop any.

    With ``ends`` it is a gate: it covers conditions that only the subscriber can tell apart, and all that may
    end one of them passes while it holds.  [E12]
    """

    chain: Callable[[Event], Chain | None]
    reach: Callable[[Filter], Scopes]
    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    momentary: bool
    filterable: bool
    ends: Callable[[Event], bool] | None = None


Conditions = Callable[[str], Condition]
"""From the text of a definition to what it means; a `UsageError` if it means nothing."""
