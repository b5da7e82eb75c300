"""A condition as brokers and subscribers evaluate it.

The host passes predicates, scopes and the condition machine as plain functions, so that a protocol machine
does not depend on the language and its compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....engine.machine import Machine
from ....model.event import Event, Notification, Transition
from ....model.instant import Duration, Instant
from ....model.topic import Topic
from .content import Content, Filter
from .scopes import Scopes

ScopeChain = tuple[str | None, ...]


@dataclass(frozen=True)
class NetworkCondition:
    """A compiled definition.

    ``inputs`` are filters for the notifications that the condition consumes. ``event`` converts such a
    notification into an event. ``to_notifications`` converts transitions of the machine into notifications
    for the subscriber.
    """

    name: str
    inputs: tuple[Filter, ...]
    event: Callable[[Content], Event | None]
    machine: Machine[Any]
    to_notifications: Callable[[Iterable[Transition]], list[Notification]]


@dataclass(frozen=True)
class HostedCondition(NetworkCondition):
    """A condition that one broker evaluates.

    ``is_relevant`` tests whether an event can change the output. If ``may_start_silently``, a scope may
    become active without a notification. ``topics`` are the topics that the condition consumes.
    ``active_scopes`` returns the active scopes of a state, each with its start.
    """

    is_relevant: Callable[[Event], bool]
    may_start_silently: bool
    topics: tuple[Topic, ...]
    active_scopes: Callable[[Any], list[tuple[str | None, Instant]]]


class CorrectionProgress(NamedTuple):
    """The progress of a condition that corrects its notifications.

    Starts before ``notified_until`` were delivered. Everything before ``final_until``, which is ``lag`` µs
    before the latest event, is final. ``active_since`` contains the start of each active scope.
    """

    notified_until: Instant
    final_until: Instant
    lag: Duration
    active_since: tuple[Instant, ...]


@dataclass(frozen=True)
class SubscriberCondition(NetworkCondition):
    """A condition that its subscriber evaluates.

    ``bits`` returns the keys of the scopes whose bit is set, and ``uncertain_bits`` the uncertain ones among
    these keys. ``mark_uncertain`` marks scopes as uncertain after a loss of events. It returns the new state
    and the outermost scopes that were active and certain before, each with its start. ``progress`` returns
    the progress if the condition corrects its notifications.
    """

    bits: Callable[[Any], Collection[str]]
    uncertain_bits: Callable[[Any], Collection[str]]
    mark_uncertain: Callable[[Any, Scopes], tuple[Any, list[tuple[str | None, Instant]]]]
    progress: Callable[[Any], CorrectionProgress | None]


@dataclass(frozen=True)
class ReplicatedCondition(SubscriberCondition):
    """A state filter of which every broker on the path runs a replica.

    Its starts and ends are events as they were published. An uncertain scope keeps its bit. ``chain`` returns
    the keys of the scopes that contain an event, innermost first. ``reach`` returns the keys for all events
    that satisfy a filter. If not ``is_filterable``, the condition needs every event, so no broker may drop
    events.

    A condition with ``ends`` is a gate: it covers conditions that only the subscriber can distinguish. While
    the gate is open, every event that may end one of these conditions passes.
    """

    chain: Callable[[Event], ScopeChain | None]
    reach: Callable[[Filter], Scopes]
    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    is_momentary: bool
    is_filterable: bool
    ends: Callable[[Event], bool] | None = None


CompileCondition = Callable[[str], NetworkCondition]
"""Compiles the text of a definition; raises a `UsageError` if the text is invalid."""
