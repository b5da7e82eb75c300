"""Evaluation of a component over time, instant by instant. This module defines the events that a component
emits.

A component is evaluated at the time of each consumed event, at each tick, and when a minimum duration ends.
It is also evaluated when an event enters or leaves a window. Each evaluation covers only the hosts and keys
concerned [F63]. Ticks that cannot change anything are skipped, and so are ticks long after the latest
reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

import msgspec

from ....model.event import Status
from ....model.instant import BEGINNING, Instant
from . import infospace
from .infospace import InfoSpace, Key
from .knowledge import Knowledge, Where, rank
from .query import Table, may_select, select, select_after_time
from .running_aggregate import RunningAggregate, is_incremental
from .smc import EvaluationContext, Smc, transform

Id = tuple[str, Key]
"""A scope: the name of the source that carries the component, and the key; `""` if there is none."""

CARRIER = "\x1e"
"""The separator of source and key in a signature. It does not occur in keys."""

Concern = tuple[str | None, Key | None]
"""Scopes to evaluate: a source and a key; `None` stands for all sources or all keys."""


class Instance(msgspec.Struct, gc=False):
    """The state of one scope of a component. [F53]

    `since` is the start of an active condition, `last` the last event. `pending` is the time since which the
    predicate is satisfied, while its minimum duration has not ended.
    """

    since: Instant | None = None
    last: Knowledge | None = None
    pending: Instant | None = None


class InstantState(msgspec.Struct, tag="points"):
    """The state of a component that is evaluated instant by instant. All instants before `until` have been
    evaluated.

    `held` is the input buffer. `wakes` has the instants at which the content of a window changes, `holds` the
    ends of minimum durations. All three are heaps; `count` numbers their items, to order items of equal time.
    """

    until: Instant = BEGINNING
    count: int = 0
    held: list[tuple[Instant, int, Knowledge]] = []
    wakes: list[tuple[Instant, int, Concern]] = []
    info: InfoSpace = msgspec.field(default_factory=InfoSpace)
    hosts: dict[str, tuple[Instant, Where]] = {}
    instances: dict[Id, Instance] = {}
    tick: Instant | None = None
    holds: list[tuple[Instant, int, Id]] = []
    latest: Instant = BEGINNING
    """The time of the latest reading."""


class Published(NamedTuple):
    """An event of a component and its scope. `since` is the start of the condition, for an egress."""

    event: Knowledge
    id: Id
    since: Instant | None


def is_late(state: InstantState, known: Knowledge) -> bool:
    """Whether the time of an event has already been evaluated."""
    return known.time < state.until


def take(smc: Smc, state: InstantState, known: Knowledge) -> None:
    """Put an event into the input buffer.

    A late event goes to the queries at once and takes part in the next evaluation. [F76]
    """
    if is_late(state, known):
        for _ in _update(smc, state, known):
            pass
        _set_tick(smc, state, state.until - 1)
    else:
        heappush(state.held, (known.time, _number(state), known))


def due(state: InstantState) -> Instant | None:
    """Return the next instant of evaluation, or `None` if nothing is scheduled."""
    instants = [heap[0][0] for heap in (state.held, state.wakes, state.holds) if heap]
    instants += [] if state.tick is None else [state.tick]
    return min(instants, default=None)


def advance(smc: Smc, state: InstantState, until: Instant) -> list[Published]:
    """Evaluate all instants before `until`, and return the events. `until` must never decrease. [F76]"""
    emitted: list[Published] = []
    while (now := due(state)) is not None and now < until:
        ticked, concerns = state.tick == now, set(_process_instant(smc, state, now))
        before = len(emitted)
        for id in _ids_to_evaluate(smc, state, concerns):
            emitted += _evaluate(smc, state, id, now)
        if ticked and (not concerns or (smc.settles and len(emitted) == before)):
            state.tick = None  # until the next event or timer
    state.until = max(state.until, until)
    return emitted


# --- update ------------------------------------------------------------------------------------


def _process_instant(smc: Smc, state: InstantState, now: Instant) -> Iterator[Concern]:
    """Apply all events and timers of an instant. Yield the scopes to evaluate."""
    while state.held and state.held[0][0] == now:
        yield from _update(smc, state, heappop(state.held)[2])
    while state.wakes and state.wakes[0][0] == now:
        yield heappop(state.wakes)[2]
    while state.holds and state.holds[0][0] == now:
        if hold_end(smc, state.instances.get(id := heappop(state.holds)[2])) == now:
            yield id
    if state.tick == now:
        yield from ((None, key) for key in _keys(smc, state) if _is_recent(smc, state, key, now))
    _set_tick(smc, state, now)


def _set_tick(smc: Smc, state: InstantState, now: Instant) -> None:
    """Schedule the next tick after `now` if any knowledge is stored."""
    if smc.tick is not None:
        state.tick = (now // smc.tick + 1) * smc.tick if any(state.info.points.values()) else None


def _is_recent(smc: Smc, state: InstantState, key: Key, now: Instant) -> bool:
    """Whether the latest knowledge of a key is recent enough for ticks."""
    views = ((input, state.info.points.get(name, {})) for name, input in smc.inputs.items())
    found = (view.get("" if input.key is None else key) for input, view in views)
    return any(known and now - known[-1].time <= smc.lasts for known in found)


def _update(smc: Smc, state: InstantState, known: Knowledge) -> Iterator[Concern]:
    """Give an event to all queries. Yield the scopes to evaluate."""
    infospace.record_status(state.info, known)
    place = known.time, known.location
    if known.topic == smc.here and is_latest_place(state.hosts.get(known.source), place):
        state.hosts[known.source] = place
        yield (known.source, None)
    for name in smc.inputs:
        if (concern := insert_for_query(smc, state, name, known)) is not None:
            yield concern


def is_latest_place(before: tuple[Instant, Where] | None, now: tuple[Instant, Where]) -> bool:
    """Whether a position of a source replaces its previous position.

    Of two positions with equal times, the lesser is used, so that the order of arrival does not matter.
    """
    return before is None or before[0] < now[0] or (before[0] == now[0] and rank(now[1]) <= rank(before[1]))


def insert_for_query(smc: Smc, state: InstantState, name: str, known: Knowledge) -> Concern | None:
    """Give an event to a query. Return the scopes to evaluate, or `None` if the query does not select the
    event."""
    input = smc.inputs[name]
    key = "" if input.key is None else input.key(known)
    if key is None or not may_select(input.query, known, smc.stationary):
        return None
    infospace.insert(state.info, name, key, known)
    concern = (None, None if input.key is None else key)
    for instant in infospace.change_instants(input.query, known):
        wake(state, instant, concern)
    return concern


def wake(state: InstantState, at: Instant, concern: Concern) -> None:
    """Schedule an evaluation of scopes at an instant, unless that instant has been evaluated."""
    if at >= state.until:
        heappush(state.wakes, (at, _number(state), concern))


def schedule_hold(smc: Smc, state: InstantState, id: Id) -> None:
    """Schedule the evaluation of a scope at the end of its minimum duration, if one is running."""
    at = hold_end(smc, state.instances.get(id))
    if at is not None:
        heappush(state.holds, (at, _number(state), id))


def hold_end(smc: Smc, instance: Instance | None) -> Instant | None:
    """Return the end of an instance's minimum duration, or `None` if none is running."""
    if instance is None:
        return None
    rule = smc.enter if instance.since is None else smc.exit
    return None if instance.pending is None or rule is None else instance.pending + rule.hold


def _number(state: InstantState) -> int:
    """Return the next number, which orders items of equal time in a heap."""
    state.count += 1
    return state.count


# --- evaluation --------------------------------------------------------------------------------


def _ids_to_evaluate(smc: Smc, state: InstantState, concerns: Iterable[Concern]) -> list[Id]:
    """Return the scopes to evaluate, sorted."""
    hosts = list(state.hosts) if isinstance(smc.here, str) else [""]
    found: set[Id] = set()
    for host, key in concerns:
        found.update(product(hosts if host is None else [host], _keys(smc, state) if key is None else [key]))
    return sorted(found)


def _keys(smc: Smc, state: InstantState) -> set[Key]:
    """Return all keys with knowledge or an active condition; only the key `""` if no query has keys."""
    separate = [name for name, input in smc.inputs.items() if input.key is not None]
    if not separate:
        return {""}
    known = {key for name in separate for key in state.info.points.get(name, ())}
    return known | {key for (_, key), instance in state.instances.items() if instance.since is not None}


def _evaluate(smc: Smc, state: InstantState, id: Id, now: Instant) -> Iterator[Published]:
    """Evaluate the entrance, or the exit while the condition is active. Yield the event if there is one.
    [F65]"""
    host, key = id
    here: Where = state.hosts[host][1] if isinstance(smc.here, str) else smc.here
    instance = state.instances.get(id, Instance())

    @cache
    def tables(name: str) -> Table:
        query, at = smc.inputs[name].query, (name, "" if smc.inputs[name].key is None else key)
        if is_incremental(query, carried=isinstance(smc.here, str)):
            made = partial(RunningAggregate, query, smc.collide)
            table = infospace.running_table(state.info, at, made, now)
            if table is not None:
                return select_after_time(query, table, now, here)
        return select(query, infospace.visible(state.info, *at, now), now, here, smc.collide)

    rule = smc.enter if instance.since is None else smc.exit
    assert rule is not None
    found = rule.detect(smc.inputs, tables, EvaluationContext({}, instance.last, now, here))
    began = None if found is None else now if instance.pending is None else instance.pending
    if found is not None and began is not None and now - began >= rule.hold:
        status: Status = "atomic" if smc.exit is None else "ingress" if instance.since is None else "egress"
        event = transform(smc, rule, status, found, signature(smc, id))
        yield Published(event, id, instance.since)
        state.instances[id] = instance_after(event)
    elif began != instance.pending:
        state.instances[id] = msgspec.structs.replace(instance, pending=began)
        if began is not None:
            schedule_hold(smc, state, id)
        elif instance.last is None:
            del state.instances[id]
    for name, input in smc.inputs.items():
        infospace.discard(state.info, name, "" if input.key is None else key, input.query, now)


def instance_after(event: Knowledge) -> Instance:
    """Return the state of a scope after its event."""
    return Instance(event.time if event.status == "ingress" else None, event)


def signature(smc: Smc, id: Id) -> str | None:
    """Return the text that identifies a scope of the component, or `None` if the component has only one
    scope. [F66]"""
    host, key = id
    if not smc.spawns:
        return None
    return f"{host}{CARRIER}{key}" if isinstance(smc.here, str) else key
