"""Another definition for what runs, and a history heard again by conditions that are new or mean something
else now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ...compilers.edit import (
    Scoped,
    Standing,
    anew,
    changed,
    nothing_heard,
    only,
    revisions,
    standings,
    with_ground,
)
from ...compilers.families import (
    Reborn,
    Revised,
    conditions,
    inherited,
    meanings,
    reborn,
    revised,
    states,
    without,
)
from ...compilers.guarded.settle import Settled, from_both
from ...compilers.guarded.settle import settled as heard_as
from ...compilers.operator import Past
from ...compilers.resume import resumed
from ...errors import UsageError
from ...lang.condition import Checked
from ...machines import corrected
from ...machines.inherited import Bit
from ...machines.machine import Told
from ...model.event import Event, Notification, lacking
from ...model.instant import Instant
from .running import Heard, Running, gathered, passed_on
from .works import Edition, Works

if TYPE_CHECKING:
    from .engine import Engine

History = Iterable[Event | tuple[str, pa.RecordBatch] | Instant | Mapping[str, Instant]]
"""What an engine has heard: events, batches with the names of their topics, and instants to which time was
said to have come."""


class Rerun(NamedTuple):
    """Operators that have heard a history again, the events by which their scopes came to be as they are, and
    the conditions that they serve."""

    running: list[Running]
    events: Mapping[Scoped, Event]
    names: frozenset[str]

    def said(
        self,
        before: Mapping[Scoped, Standing],
        reached: Mapping[str, Instant],
        checked: Checked,
        heard: Heard,
    ) -> Iterator[Notification]:
        """What is to be said of scopes that are not as they were; who mutes them finds it in ``heard``."""
        for one in self.running:
            nothing = nothing_heard(checked, one.lately(reached))
            for operator, said in revisions(one.operator, one.state, before, self.events, nothing):
                gathered(heard, operator.retold(Told({}, said)))
                yield from operator.addressed(said)


NOTHING = Rerun([], {}, frozenset())

Alike = Callable[[Checked], "Engine"]
"""An engine that has heard nothing yet, for a definition."""


class Known(NamedTuple):
    """What is known of the past: a history, if there is one, and whether it is the whole; and who can hear it
    again."""

    history: History | None
    whole: bool
    alike: Alike


def revise(works: Works, before: Checked, after: Checked, known: Known) -> list[Notification]:
    """Run another definition; what is to be said of scopes that change by it."""
    again, settled = NOTHING, dict[str, Mapping[str, Settled]]()
    if known.history is not None and known.whole:
        again = rerun(known.alike, before, after, known.history, works.reached)
    elif known.history is not None:
        settled = decided(known.alike, before, after, known.history, works.reached)
    changes = [name for name in changed(before, after) if name not in again.names]
    was, means = meanings(before), meanings(after)
    anew, left = _reborn(works, changes, before, after), _left_over(works, changes, before, after)
    afresh = {*anew, *left}
    found = {name: _revised(name, works, before, after, settled) for name in changes if name not in afresh}
    going_on = [
        (Running(one.operator, one.state), one.said)
        for name, one in found.items()
        if one.moves or was[name] != means[name]
    ]
    standing = {key: one for r in works.running for key, one in standings(r.operator, r.state).items()}
    more = [*again.running, *(one for one, _ in going_on)]
    served = {name for one in more for names in one.operator.names for name in names}
    edition = Edition(after, anew, left, going_on, standing)
    works.go_on(without(after, served), gone=afresh, more=more, edition=edition)
    ran = {*conditions(before), *again.names} - anew.keys()
    counts = [one for one in works.running if one.operator.recounts]
    begun = [one for one in counts if not ran & {*one.operator.subscriptions}]
    begun += [one for one in works.running if one.operator.serves(left)]
    again = again._replace(running=[*again.running, *begun])
    heard: Heard = {}
    told = list(again.said(standing, works.reached, after, heard))
    told += [n for one, said in going_on for n in works.addressed(one, said, heard)]
    redone = {id(one) for one in again.running}
    hearing = [one for one in works.hearing if id(one) not in redone]
    return [*told, *passed_on(hearing, heard, works.now)]


def _running(works: Works, name: str) -> Running:
    """What runs for a condition."""
    return next(one for one in works.running if any(name in names for names in one.operator.names))


def _reborn(works: Works, names: Iterable[str], before: Checked, after: Checked) -> dict[str, Reborn]:
    """Those that are told who holds, and take the place of one of their name."""
    found = {}
    for name in names:
        ran = _running(works, name)
        if (one := reborn(name, before, after, ran.state)) is not None:
            found[name] = one
    return found


def _left_over(
    works: Works, names: Iterable[str], before: Checked, after: Checked
) -> dict[str, Sequence[Bit]]:
    """Those that begin anew in the place of one of their name, with what that leaves to them."""
    found: dict[str, Sequence[Bit]] = {}
    for name in names:
        ran = _running(works, name)
        bits = inherited(name, before, after, ran.operator, ran.state)
        if bits is not None:
            found[name] = bits
    return found


def _revised(
    name: str, works: Works, before: Checked, after: Checked, settled: Mapping[str, Mapping[str, Settled]]
) -> Revised:
    """A condition that means something else now, with what is known of its scopes; what is said of them."""
    one = _running(works, name)
    past = Past(one.operator, one.state, works.latest_events, works.now(one), settled)
    return revised(name, before, after, past)


def rerun(
    alike: Alike, before: Checked, after: Checked, history: History, reached: Mapping[str, Instant]
) -> Rerun:
    """The conditions that a history decides anew, when they have heard it all."""
    names = anew(before, after)
    if not names:
        return NOTHING
    fresh = alike(with_ground(after, names))
    events = _heard(fresh, history, before, reached)
    again = []
    for one in resumed([one.operator.kept for one in fresh._works.running], only(after, names)):
        assert one.before is not None
        old = fresh._works.running[one.before]
        machine, raw = one.operator.machine, old.operator.machine.to_bytes(old.state)
        again.append(Running(one.operator, corrected.begun(machine, machine.from_bytes(raw, one.was))))
    return Rerun(again, events, names)


def decided(
    alike: Alike, before: Checked, after: Checked, history: History, reached: Mapping[str, Instant]
) -> dict[str, Mapping[str, Settled]]:
    """For each state that changes, those of levels among them, what a part of the history says of its
    scopes, whatever was before."""
    some = [one for name in changed(before, after) for one in states(name, before, after)]
    pairs = {one.name: from_both(one) for one in some}
    if not pairs:
        return {}
    both = tuple(one for pair in pairs.values() for one in pair)
    fresh = alike(replace(only(after, ()), guarded=both))
    told = _heard(fresh, history, before, reached)
    ran = {name: one for one in fresh._works.running for name in one.operator.subscriptions}
    found: dict[str, Mapping[str, Settled]] = {}
    for name, pair in pairs.items():
        on, off = ((ran[one.name].operator, ran[one.name].state, one.name) for one in pair)
        found[name] = heard_as(on, off, told)
    return found


def _heard(
    engine: Engine, history: History, before: Checked, reached: Mapping[str, Instant]
) -> dict[Scoped, Event]:
    """Let an engine hear a history, and time come as far as it has: the last event that was told of each
    scope.  Topics and attributes that have gone since are left out."""
    found: dict[Scoped, Event] = {}
    gone = {topic.name for topic in before.topics} - engine._works.topics.keys()
    lost = {
        topic.name: topic.by_name.keys() - engine._works.topics[topic.name].by_name.keys()
        for topic in before.topics
        if topic.name not in gone
    }
    for one in history:
        match one:
            case Event():
                said = [] if one.topic in gone else engine.push(_left(one, lost))
            case (str() as topic, batch):
                said = [] if topic in gone else engine.push_batch(topic, batch)
            case int():
                said = engine.advance(one)
            case Mapping():
                said = engine.reach(one)
            case _:
                raise UsageError(
                    "a history has events, batches with the names of their topics, and instants to which "
                    f"time has come, not {one!r:.60}"
                )
        found |= _events(said)
    return found | _events(engine.reach(reached))


def _events(said: Iterable[Notification]) -> dict[Scoped, Event]:
    return {(n.subscription, n.scope): n.event for n in said}


def _left(event: Event, lost: Mapping[str, Collection[str]]) -> Event:
    """An event without attributes that its topic has no more."""
    names = lost.get(event.topic)
    if not names or not isinstance(event.attributes, Mapping):
        return event
    return lacking(event, names)
