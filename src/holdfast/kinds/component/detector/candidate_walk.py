"""Evaluate a component from candidate to candidate and emit its events.

`columns` uses this module for components whose events columns alone cannot determine, such as those with a
minimum duration.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ....model.event import Status
from ....model.instant import Instant
from ....model.query import Aggregate
from .candidates import Candidates, ScreenedInstants, Views
from .component import Id, Instance, Published, instance_after, signature
from .hosts import MovingHost
from .knowledge import Knowledge, Where, order
from .query import Table, merge_topics
from .rows import Ints
from .smc import EvaluationContext, Rule, Smc, transform
from .span import Instants

DatedEvent = tuple[Instant, Id, Published]
"""The instant at which an event is emitted, its scope, and the event."""


class VisibleKnowledge:
    """The knowledge points that each key can select at an instant, read from `ReadingSeries`."""

    def __init__(self, smc: Smc, seen: Views, host: MovingHost | None = None) -> None:
        self._smc, self._host = smc, host
        self._seen = {name: [s for s in views if not s.is_hidden] for name, views in seen.items()}
        self._rows: dict[tuple[str, int, int, Instant], Ints] = {}

    def here(self, now: Instant) -> Where:
        """Return the location of the host at an instant."""
        return self._smc.stationary if self._host is None else self._host.at(now)

    def prepare(self, likely: Sequence[tuple[int, Instant]]) -> None:
        """Convert the rows of the given keys and instants to knowledge points in one pass, for later calls of
        `detect`.

        One conversion of many rows is much faster than many small conversions.
        """
        if not likely:
            return
        for name, views in self._seen.items():
            for i, series in enumerate(views):
                rows = {(name, i, key, now): series.visible(key, now, self.here(now)) for key, now in likely}
                needed = [series.rows_needed(visible) for visible in rows.values()]
                series.rows.fetch(np.unique(np.concatenate(needed)))
                self._rows |= rows

    def readings(
        self, keys: int, turns: Mapping[int, Sequence[Instant]]
    ) -> Iterator[Mapping[str, Knowledge]] | None:
        """Return the readings that the only query shows, key after key and instant after instant.

        Return `None` if the component has several queries, or if the query does not show exactly one reading
        at each instant.
        """
        if len(self._seen) > 1:
            return None
        ((name, views),) = self._seen.items()
        if len(views) != 1:
            return None
        (series,) = views
        sizes = np.zeros(keys, np.int64)
        for key, instants in turns.items():
            sizes[key] = len(instants)
        at = np.fromiter(chain.from_iterable(turns.values()), np.int64)
        found = series.readings(Instants(at, np.append(0, np.cumsum(sizes))))
        return None if found is None else ({name: reading} for reading in found)

    def detect(self, key: int, now: Instant, rule: Rule, instance: Instance) -> EvaluationContext | None:
        """Evaluate a rule for a key at an instant. Return the context that satisfies the rule, or `None`."""
        known: dict[str, Table] = {}

        def tables(name: str) -> Table:
            if name not in known:
                here, parts = self.here(now), []
                for i, series in enumerate(self._seen[name]):  # one for each status
                    rows = self._rows.get((name, i, key, now))
                    rows = series.visible(key, now, here) if rows is None else rows
                    parts.append(series.table(rows, now, here))
                known[name] = parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts), key=order)
                query = self._smc.inputs[name].query
                if isinstance(query.topic, Aggregate):
                    known[name] = merge_topics(query, known[name], now, here)
            return known[name]

        context = EvaluationContext({}, instance.last, now, self.here(now))
        return rule.detect(self._smc.inputs, tables, context)


class NextInstant(NamedTuple):
    """The next instant at which a key is evaluated.

    `next` is the index of the first instant after `now`. `satisfied` is the result of the rule, or `None` if
    the rule must be evaluated.
    """

    now: Instant
    next: int
    satisfied: bool | None


@dataclass(frozen=True)
class CandidateWalk:
    """The evaluation of a component over the candidates of one step, key by key."""

    smc: Smc
    keys: Sequence[str]
    until: Instant
    step: ScreenedInstants
    visible: VisibleKnowledge
    host: str = ""

    def emit(self, instances: dict[Id, Instance]) -> list[DatedEvent]:
        """Return the events of the step, key after key, and update `instances`."""
        concerned = [(key, (self.host, self.keys[key])) for key in self._keys_to_evaluate(instances)]
        turns = {key: self._likely_instants(key, instances.get(id, Instance())) for key, id in concerned}
        if self.step.is_sure and (shown := self.visible.readings(len(self.keys), turns)) is not None:
            return self._emit_readings(turns, shown, instances)
        self.visible.prepare([(key, now) for key, instants in turns.items() for now in instants])
        emitted: list[DatedEvent] = []
        for key, id in concerned:
            instance, events = self._walk(key, instances.get(id, Instance()))
            emitted += ((now, id, event) for now, event in events)
            if instance.last is None and instance.pending is None:
                instances.pop(id, None)
            else:
                instances[id] = instance
        return emitted

    def _emit_readings(
        self,
        turns: Mapping[int, Sequence[Instant]],
        shown: Iterator[Mapping[str, Knowledge]],
        instances: dict[Id, Instance],
    ) -> list[DatedEvent]:
        """Emit an event at every candidate instant. `shown` has the reading of each, in the order of
        `turns`."""
        emitted: list[DatedEvent] = []
        for key, instants in turns.items():
            id = (self.host, self.keys[key])
            instance = instances.get(id, Instance())
            for now in instants:
                rule = self._active_rule(holds=instance.since is not None).rule
                context = EvaluationContext(next(shown), instance.last, now, self.visible.here(now))
                published = self._event(key, rule, instance, context)
                emitted.append((now, id, published))
                instance = instance_after(published.event)
            instances[id] = instance
        return emitted

    def _active_rule(self, *, holds: bool) -> Candidates:
        """Return the rule to evaluate: the exit while the condition is active (`holds`), otherwise the
        entrance. [F65]"""
        leave = self.step.leave
        return leave if holds and leave is not None else self.step.enter

    def _keys_to_evaluate(self, instances: Mapping[Id, Instance]) -> list[int]:
        """Return the keys with a candidate in this step or a running minimum duration."""
        first, end = self.step.found.ends[:-1], self.step.found.ends[1:]
        found = self.step.enter.next[first] < end
        for k, key in enumerate(self.keys):
            if instance := instances.get((self.host, key)):
                active = self._active_rule(holds=instance.since is not None)
                found[k] = instance.pending is not None or active.next[first[k]] < end[k]
        return [int(k) for k in np.flatnonzero(found)]

    def _likely_instants(self, key: int, instance: Instance) -> list[Instant]:
        """Return the instants at which a key emits if every candidate satisfies its rule. Minimum durations
        are ignored."""
        at, ends = self.step.found
        i, end, holds = int(ends[key]), int(ends[key + 1]), instance.since is not None
        found: list[Instant] = []
        while (i := int(self._active_rule(holds=holds).next[i])) < end:
            found.append(int(at[i]))
            holds = not holds and self.step.leave is not None
            i += 1
        return found

    def _walk(self, key: int, instance: Instance) -> tuple[Instance, list[tuple[Instant, Published]]]:
        """Evaluate one key over the step. Return its new instance and its events."""
        emitted: list[tuple[Instant, Published]] = []
        i = int(self.step.found.ends[key])
        while True:
            active = self._active_rule(holds=instance.since is not None)
            step = self._next(active, key, i, instance.pending)
            if step is None:
                return instance, emitted
            now, i, satisfied = step
            context = self.visible.detect(key, now, active.rule, instance) if satisfied is None else None
            began: Instant | None = now if instance.pending is None else instance.pending
            if not satisfied and context is None:
                began = None
            if context is not None and began is not None and now - began >= active.rule.hold:
                published = self._event(key, active.rule, instance, context)
                emitted.append((now, published))
                instance = instance_after(published.event)
            else:
                instance = replace(instance, pending=began)

    def _next(self, active: Candidates, key: int, i: int, pending: Instant | None) -> NextInstant | None:
        """Return the next instant at which the instance can change, or `None` if there is none before the end
        of the step.

        `pending` is the start of a running minimum duration. It ends when a known gap breaks it or when the
        duration has elapsed.
        """
        at, ends = self.step.found
        end, sure = int(ends[key + 1]), bool(active.sure[key])
        if pending is None:
            i = int(active.next[i])
            early = active.rule.hold > 0 and sure
            return None if i >= end else NextInstant(int(at[i]), i + 1, True if early else None)
        ripe = pending + active.rule.hold
        gap = int(active.gap[i])
        if (sure or gap == i) and gap < end and at[gap] <= ripe:
            return NextInstant(int(at[gap]), gap + 1, False)
        if not sure and i < end and at[i] <= ripe:
            return NextInstant(int(at[i]), i + 1, None)
        return NextInstant(ripe, bisect_right(at, ripe, i, end), None) if ripe < self.until else None

    def _event(self, key: int, rule: Rule, instance: Instance, context: EvaluationContext) -> Published:
        """Build the event of a satisfied rule with its status and scope."""
        id = (self.host, self.keys[key])
        momentary = self.step.leave is None
        status: Status = "atomic" if momentary else "ingress" if instance.since is None else "egress"
        event = transform(self.smc, rule, status, context, signature(self.smc, id))
        return Published(event, id, instance.since)
