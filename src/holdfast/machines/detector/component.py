"""One component over time: an input buffer, an InfoS time, and the instants of evaluation.

It is evaluated at every distinct time of an event that it looks at, at every time at which one
leaves (or comes into) a window, at every tick if it has one, and where a guard has been satisfied
for long enough; at each of them only those whom it concerns [F63].  Ticks at which nothing can change are
left out, and so are those long after the latest reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

import msgspec

from ...model.event import Status
from ...model.instant import BEGINNING, Instant
from ...model.space import Point
from . import infospace
from .infospace import InfoSpace, Key
from .knowledge import Knowledge, Where, rank
from .query import Table, is_looked_at, select, selected
from .running import Running, runs_on
from .smc import Context, Smc, transform

Id = tuple[str, Key]
"""A replica and a spawned component: the source that carries it, and its key; ``""`` is neither."""

Concern = tuple[str | None, Key | None]
"""Whom something concerns: a source's replica and a key, ``None`` for all of them."""


class Instance(msgspec.Struct, gc=False):
    """A status bit (``since`` is when it was set) and the last event.  [F53]

    ``pending``: since when the current predicate has been satisfied at every evaluation.
    """

    since: Instant | None = None
    last: Knowledge | None = None
    pending: Instant | None = None


class State(msgspec.Struct, tag="points"):
    """``held`` is the input buffer, ``wakes`` the instants at which something changes by itself, ``ripe``
    those at which a guard will have waited long enough, all heaps; everything before ``until`` has been
    evaluated."""

    until: Instant = BEGINNING
    count: int = 0
    held: list[tuple[Instant, int, Knowledge]] = []
    wakes: list[tuple[Instant, int, Concern]] = []
    info: InfoSpace = msgspec.field(default_factory=InfoSpace)
    hosts: dict[str, tuple[Instant, Where]] = {}
    instances: dict[Id, Instance] = {}
    tick: Instant | None = None
    ripe: list[tuple[Instant, int, Id]] = []


class Published(NamedTuple):
    """An event of a component, whose it is, and since when the condition held, if it ends."""

    event: Knowledge
    id: Id
    since: Instant | None


def is_late(state: State, known: Knowledge) -> bool:
    """Whether InfoS time has passed it."""
    return known.time < state.until


def take(smc: Smc, state: State, known: Knowledge) -> None:
    """Put an event into the input buffer; one that is late goes into the cube as it comes, and is
    seen from the next evaluation on.  [F76]"""
    if is_late(state, known):
        for _ in _update(smc, state, known):
            pass
        _set_tick(smc, state, state.until - 1)
    else:
        heappush(state.held, (known.time, _number(state), known))


def due(state: State) -> Instant | None:
    """The next instant of evaluation."""
    instants = [heap[0][0] for heap in (state.held, state.wakes, state.ripe) if heap]
    instants += [] if state.tick is None else [state.tick]
    return min(instants, default=None)


def advance(smc: Smc, state: State, until: Instant) -> list[Published]:
    """Let InfoS time come as far as ``until``, which it does not reach.  It never goes back.  [F76]"""
    told: list[Published] = []
    while (now := due(state)) is not None and now < until:
        ticked, concerns = state.tick == now, set(_awaken(smc, state, now))
        said = [one for id in _concerned(smc, state, concerns) for one in _evaluate(smc, state, id, now)]
        if ticked and (not concerns or (smc.settles and not said)):
            state.tick = None  # until something happens
        told += said
    state.until = max(state.until, until)
    return told


# --- update ------------------------------------------------------------------------------------


def _awaken(smc: Smc, state: State, now: Instant) -> Iterator[Concern]:
    """Take in what happens at an instant; whom it concerns."""
    while state.held and state.held[0][0] == now:
        yield from _update(smc, state, heappop(state.held)[2])
    while state.wakes and state.wakes[0][0] == now:
        yield heappop(state.wakes)[2]
    while state.ripe and state.ripe[0][0] == now:
        if _ripens(smc, state, id := heappop(state.ripe)[2]) == now:
            yield id
    if state.tick == now:
        yield from ((None, key) for key in _keys(smc, state) if _is_recent(smc, state, key, now))
    _set_tick(smc, state, now)


def _set_tick(smc: Smc, state: State, now: Instant) -> None:
    """The next tick after an instant, while something is known."""
    if smc.tick is not None:
        state.tick = (now // smc.tick + 1) * smc.tick if any(state.info.points.values()) else None


def _is_recent(smc: Smc, state: State, key: Key, now: Instant) -> bool:
    """Whether the latest that is known of a key is not too old for ticks."""
    found = (
        state.info.points.get(name, {}).get("" if one.key is None else key)
        for name, one in smc.inputs.items()
    )
    return any(known and now - known[-1].time <= smc.lasts for known in found)


def _update(smc: Smc, state: State, known: Knowledge) -> Iterator[Concern]:
    """Take an event into the cube; whom it concerns."""
    infospace.witness(state.info, known)
    if known.topic == smc.here and is_last(state.hosts.get(known.source), (known.time, known.location)):
        state.hosts[known.source] = (known.time, known.location)
        yield (known.source, None)
    for name in smc.inputs:
        if (concern := look(smc, state, name, known)) is not None:
            yield concern


def is_last(before: tuple[Instant, Where] | None, now: tuple[Instant, Where]) -> bool:
    """Whether a source is where it says; of two places at one moment it is at the lesser."""
    return before is None or before[0] < now[0] or (before[0] == now[0] and rank(now[1]) <= rank(before[1]))


def look(smc: Smc, state: State, name: str, known: Knowledge) -> Concern | None:
    """Let a query look at an event; whom it concerns, if the query does."""
    one = smc.inputs[name]
    key = "" if one.key is None else one.key(known)
    if key is None or not is_looked_at(one.query, known, _stationary(smc)):
        return None
    infospace.insert(state.info, name, key, known)
    concern = (None, None if one.key is None else key)
    for moment in infospace.moments(one.query, known):
        wake(state, moment, concern)
    return concern


def wake(state: State, at: Instant, concern: Concern) -> None:
    """Evaluate at an instant, unless it has been."""
    if at >= state.until:
        heappush(state.wakes, (at, _number(state), concern))


def ripen(smc: Smc, state: State, id: Id) -> None:
    """Evaluate a component of which a guard waits where that will have been long enough, if it still does."""
    at = _ripens(smc, state, id)
    if at is not None:
        heappush(state.ripe, (at, _number(state), id))


def _ripens(smc: Smc, state: State, id: Id) -> Instant | None:
    """When the guard of a component that waits will have waited long enough."""
    one = state.instances.get(id)
    return None if one is None else ripe(smc, one)


def ripe(smc: Smc, one: Instance) -> Instant | None:
    """The same of an instance."""
    rule = smc.enter if one.since is None else smc.exit
    return None if one.pending is None or rule is None else one.pending + rule.hold


def _number(state: State) -> int:
    state.count += 1
    return state.count


def _stationary(smc: Smc) -> Point | None:
    return smc.here if isinstance(smc.here, tuple) else None


# --- evaluation --------------------------------------------------------------------------------


def _concerned(smc: Smc, state: State, concerns: Iterable[Concern]) -> list[Id]:
    """The replicas and keys that are concerned, in order."""
    hosts = list(state.hosts) if isinstance(smc.here, str) else [""]
    found: set[Id] = set()
    for host, key in concerns:
        found.update(product(hosts if host is None else [host], _keys(smc, state) if key is None else [key]))
    return sorted(found)


def _keys(smc: Smc, state: State) -> set[Key]:
    """Every key of which something is known or holds; without keys, the one that stands for all."""
    apart = [name for name, one in smc.inputs.items() if one.key is not None]
    if not apart:
        return {""}
    known = {key for name in apart for key in state.info.points.get(name, ())}
    return known | {key for (_, key), one in state.instances.items() if one.since is not None}


def _evaluate(smc: Smc, state: State, id: Id, now: Instant) -> Iterator[Published]:
    """Test the entrance predicate, or the exit predicate while the condition holds.  [F65]"""
    host, key = id
    here: Where = state.hosts[host][1] if isinstance(smc.here, str) else smc.here
    instance = state.instances.get(id, Instance())

    @cache
    def tables(name: str) -> Table:
        one = smc.inputs[name]
        at = (name, "" if one.key is None else key)
        if runs_on(one.query, carried=isinstance(smc.here, str)):
            table = infospace.aggregated(state.info, at, lambda: Running(one.query, smc.collide), now)
            if table is not None:
                return selected(one.query, table, now, here)
        return select(one.query, infospace.visible(state.info, *at, now), now, here, smc.collide)

    rule = smc.enter if instance.since is None else smc.exit
    assert rule is not None
    found = rule.detect(smc.inputs, tables, Context({}, instance.last, now, here))
    began = None if found is None else now if instance.pending is None else instance.pending
    if found is not None and began is not None and now - began >= rule.hold:
        status: Status = "atomic" if smc.exit is None else "ingress" if instance.since is None else "egress"
        event = transform(smc, rule, status, found, signature(smc, id))
        yield Published(event, id, instance.since)
        state.instances[id] = Instance(event.time if status == "ingress" else None, event)
    elif began != instance.pending:
        state.instances[id] = msgspec.structs.replace(instance, pending=began)
        if began is not None:
            ripen(smc, state, id)
        elif instance.last is None:
            del state.instances[id]
    for name, one in smc.inputs.items():
        infospace.discard(state.info, name, "" if one.key is None else key, one.query, now)


def signature(smc: Smc, id: Id) -> str | None:
    """What tells a replica and its key from the others.  [F66]"""
    host, key = id
    if not smc.spawns:
        return None
    return f"{host}\x1e{key}" if isinstance(smc.here, str) else key
