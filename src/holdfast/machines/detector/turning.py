"""When conditions start and end, from one candidate instant to the next."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ...model.event import Status
from ...model.instant import Instant
from ...model.query import Aggregate
from .component import Id, Instance, Published, signature
from .knowledge import Knowledge, Where, order
from .query import Table, as_one
from .roaming import Host
from .rows import Ints
from .screening import Candidates, Screened, Views
from .smc import Context, Rule, Smc, transform
from .span import Instants

Spoken = tuple[Instant, Id, Published]
"""An event, whose it is, and at which instant it was told."""


class Visible:
    """What the thesis says of keys at instants, from the rows that are visible then."""

    def __init__(self, smc: Smc, seen: Views, host: Host | None = None) -> None:
        self._smc, self._host = smc, host
        self._seen = {name: [s for s in views if not s.hidden] for name, views in seen.items()}
        self._rows: dict[tuple[str, int, int, Instant], Ints] = {}

    def here(self, now: Instant) -> Where:
        """Where the host is."""
        if self._host is not None:
            return self._host.at(now)
        return self._smc.here if isinstance(self._smc.here, tuple) else None

    def prepare(self, likely: Sequence[tuple[int, Instant]]) -> None:
        """Be ready for some keys and instants."""
        if not likely:
            return
        for name, views in self._seen.items():
            for i, series in enumerate(views):
                rows = {(name, i, key, now): series.visible(key, now, self.here(now)) for key, now in likely}
                series.rows.fetch(np.unique(np.concatenate([series.needed(some) for some in rows.values()])))
                self._rows |= rows

    def readings(
        self, keys: int, turns: Mapping[int, Sequence[Instant]]
    ) -> Iterator[Mapping[str, Knowledge]] | None:
        """What the only query shows of keys at instants, where that is a reading each."""
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
        return None if found is None else ({name: one} for one in found)

    def detect(self, key: int, now: Instant, rule: Rule, one: Instance) -> Context | None:
        """What satisfies a rule for a key at an instant."""
        known: dict[str, Table] = {}

        def tables(name: str) -> Table:
            if name not in known:
                some = [self._table(name, i, key, now) for i in range(len(self._seen[name]))]
                known[name] = some[0] if len(some) == 1 else sorted(chain.from_iterable(some), key=order)
                query = self._smc.inputs[name].query
                if isinstance(query.topic, Aggregate):
                    known[name] = as_one(query, known[name], now, self.here(now))
            return known[name]

        return rule.detect(self._smc.inputs, tables, Context({}, one.last, now, self.here(now)))

    def _table(self, name: str, i: int, key: int, now: Instant) -> Table:
        """What a query selects for a key at an instant among what has one status."""
        series, here = self._seen[name][i], self.here(now)
        rows = self._rows.get((name, i, key, now))
        return series.table(series.visible(key, now, here) if rows is None else rows, now, here)


class Moment(NamedTuple):
    """An instant to look at, the number of the next, and whether the rule is satisfied then; ``None``
    if that has to be evaluated."""

    now: Instant
    next: int
    satisfied: bool | None


@dataclass(frozen=True)
class Turning:
    """A component at the instants of a step."""

    smc: Smc
    keys: Sequence[str]
    until: Instant
    screened: Screened
    visible: Visible
    host: str = ""

    def told(self, instances: dict[Id, Instance]) -> list[Spoken]:
        """What is told in a step; ``instances`` become what they are after it."""
        concerned = [(key, (self.host, self.keys[key])) for key in self._concerned(instances)]
        turns = {key: self._likely(key, instances.get(id, Instance())) for key, id in concerned}
        if self._is_sure and (shown := self.visible.readings(len(self.keys), turns)) is not None:
            return self._plainly(turns, shown, instances)
        self.visible.prepare([(key, now) for key, instants in turns.items() for now in instants])
        told: list[Spoken] = []
        for key, id in concerned:
            one, said = self._turns(key, instances.get(id, Instance()))
            told += ((now, id, event) for now, event in said)
            if one.last is None and one.pending is None:
                instances.pop(id, None)
            else:
                instances[id] = one
        return told

    @property
    def _is_sure(self) -> bool:
        """Whether something is told at every candidate: predicates are told by columns, and nothing waits."""
        rules = [self.screened.enter] + ([] if self.screened.leave is None else [self.screened.leave])
        return all(one.rule.hold == 0 and bool(one.sure.all()) for one in rules)

    def _plainly(
        self,
        turns: Mapping[int, Sequence[Instant]],
        shown: Iterator[Mapping[str, Knowledge]],
        instances: dict[Id, Instance],
    ) -> list[Spoken]:
        """What is told where the candidates are sure, and what is shown at each of them is known."""
        told: list[Spoken] = []
        for key, instants in turns.items():
            id = (self.host, self.keys[key])
            one = instances.get(id, Instance())
            for now in instants:
                rule = self._active(holds=one.since is not None).rule
                said = self._said(key, rule, one, Context(next(shown), one.last, now, self.visible.here(now)))
                told.append((now, id, said))
                one = Instance(said.event.time if said.event.status == "ingress" else None, said.event)
            instances[id] = one
        return told

    def _active(self, *, holds: bool) -> Candidates:
        """The rule that counts now: while the condition holds, the exit.  [F65]"""
        leave = self.screened.leave
        return leave if holds and leave is not None else self.screened.enter

    def _concerned(self, instances: Mapping[Id, Instance]) -> list[int]:
        """The keys for which there is a candidate, or a guard that waits."""
        first, end = self.screened.found.ends[:-1], self.screened.found.ends[1:]
        found = self.screened.enter.next[first] < end
        for k, key in enumerate(self.keys):
            if one := instances.get((self.host, key)):
                active = self._active(holds=one.since is not None)
                found[k] = one.pending is not None or active.next[first[k]] < end[k]
        return [int(k) for k in np.flatnonzero(found)]

    def _likely(self, key: int, one: Instance) -> list[Instant]:
        """When something is told of a key if every candidate is what it seems; guards aside."""
        at, ends = self.screened.found
        i, end, holds = int(ends[key]), int(ends[key + 1]), one.since is not None
        found: list[Instant] = []
        while (i := int(self._active(holds=holds).next[i])) < end:
            found.append(int(at[i]))
            holds = not holds and self.screened.leave is not None
            i += 1
        return found

    def _turns(self, key: int, one: Instance) -> tuple[Instance, list[tuple[Instant, Published]]]:
        """What becomes of an instance, and what is told of it at which instants."""
        told: list[tuple[Instant, Published]] = []
        i = int(self.screened.found.ends[key])
        while True:
            active = self._active(holds=one.since is not None)
            moment = self._next(active, key, i, one.pending)
            if moment is None:
                return one, told
            now, i, satisfied = moment
            context = self.visible.detect(key, now, active.rule, one) if satisfied is None else None
            began = None if not satisfied and context is None else now if one.pending is None else one.pending
            if context is not None and began is not None and now - began >= active.rule.hold:
                said = self._said(key, active.rule, one, context)
                told.append((now, said))
                one = Instance(said.event.time if said.event.status == "ingress" else None, said.event)
            else:
                one = replace(one, pending=began)

    def _next(self, active: Candidates, key: int, i: int, pending: Instant | None) -> Moment | None:
        """The next instant that can make a difference, if there is one before the end of the step."""
        at, ends = self.screened.found
        end, sure = int(ends[key + 1]), bool(active.sure[key])
        if pending is None:
            i = int(active.next[i])
            early = active.rule.hold > 0 and sure
            return None if i >= end else Moment(int(at[i]), i + 1, True if early else None)
        ripe = pending + active.rule.hold
        gap = int(active.gap[i])
        if (sure or gap == i) and gap < end and at[gap] <= ripe:
            return Moment(int(at[gap]), gap + 1, False)
        if not sure and i < end and at[i] <= ripe:
            return Moment(int(at[i]), i + 1, None)
        return Moment(ripe, bisect_right(at, ripe, i, end), None) if ripe < self.until else None

    def _said(self, key: int, rule: Rule, one: Instance, context: Context) -> Published:
        id = (self.host, self.keys[key])
        momentary = self.screened.leave is None
        status: Status = "atomic" if momentary else "ingress" if one.since is None else "egress"
        event = transform(self.smc, rule, status, context, signature(self.smc, id))
        return Published(event, id, one.since)
