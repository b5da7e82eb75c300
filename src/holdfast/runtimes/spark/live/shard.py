"""A shard of a live query: what its operators remember, and what they say of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from ....compilers.edit import Scoped, holders, revisions, standings
from ....compilers.families import Revised, conditions, reborn, revised
from ....compilers.operator import Operator, in_turn, until, with_time
from ....compilers.operator import Past as Known
from ....machines.machine import Told
from ....model.batch import concatenate
from ....model.event import Event
from ....model.instant import BEGINNING, NEVER, Instant
from ...table import identified, schema_of, table_of
from ..pack import HEARD_BEFORE, PAST, PROGRESS, Piece, unpacked
from ..plan import Revision, Work
from .memory import Change, Memory, Shard, apart, awake, begun_anew, note, of
from .past import Past


class Packet(msgspec.Struct):
    """A packed row that has arrived."""

    machine: int
    part: int
    events: bytes


class Post(NamedTuple):
    """At which stage and in which shard a batch is taken."""

    stage: int
    shard: int

    def has(self, operator: Operator) -> bool:
        """Whether an operator runs here: without a key, in the first shard only."""
        return operator.stage == self.stage and bool(operator.key or self.shard == 0)


class Said(NamedTuple):
    """What a shard says of a batch: notifications, what conditions of later stages hear, and for those who
    wait for it the earliest moment of which it has still to speak; for those who ``begin`` who holds."""

    told: pa.Table
    heard: dict[str, pa.RecordBatch]
    unsaid: dict[int, Instant]
    begun: tuple[int, ...]
    holding: dict[str, pa.RecordBatch]


Arranging = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The order in which a shard takes the events of a batch, given as they arrived."""


def as_arrived(events: pa.RecordBatch) -> pa.RecordBatch:
    return events


def stepped(
    work: Work, post: Post, shard: Shard, packets: Iterable[Packet], arranged: Arranging = as_arrived
) -> tuple[Shard, Said]:
    """Take a batch's packets: the shard afterwards, and what its operators say.

    Time goes on for all of them, but only those that have events, or are due, are looked at.  What they
    remember goes on in place: the shard before is no longer to be used.
    """
    arrived: dict[int, list[bytes]] = {}
    for packet in sorted(packets, key=lambda packet: packet.part):
        arrived.setdefault(packet.machine, []).append(packet.events)
    after = Shard({}, _advanced(shard.reached, arrived.get(PROGRESS, ())))
    change = Change(b"", b"", after.reached if after.reached != shard.reached else {}, {}, {})
    before, is_anew = shard.kept, False
    tables, heard = [schema_of(work.published).empty_table()], dict[str, pa.RecordBatch]()
    unsaid: dict[int, Instant] = {}
    holding: dict[str, pa.RecordBatch] = {}
    past = Past.of(arrived.get(PAST, ()))
    for number, operator in work.operators.items():
        if not post.has(operator):
            continue
        memory = shard.operators.get(number)
        was, now = (until(at, operator.clock, BEGINNING) for at in (shard.reached, after.reached))
        pieces = list(map(unpacked, arrived.get(number, ())))
        batches = _by_topic(pieces, in_turn if operator.heard else arranged)
        looked = was
        if operator.awaits and operator.machine.is_timed:
            now = operator.looks(now, (piece.reached for piece in pieces if piece.topic is None))
            looked = BEGINNING  # it knows
        looked = max(looked, work.reached.get(number, BEGINNING))
        taken = _taken(work, number, shard, looked, past, arrived.get(HEARD_BEFORE - number, ()))
        if past is not None and past.begun:
            state = taken.state if taken else apart(operator, memory, looked)
            holding |= _holding(work, operator, state, looked)
        if taken or batches or (now > looked and _is_due(operator, memory, now)):
            memory = of(operator, taken.state) if taken else awake(operator, memory, looked)
            last = with_time(operator, batches, was) if now == NEVER else batches
            memory.state, told = operator.machine.step(memory.state, last, now)
            memory.due = operator.machine.due(memory.state)
            note(change, number, memory)
            spoken = [told] if taken is None else [Told({}, taken.said), told]  # an edit speaks first
            is_anew = is_anew or taken is not None
            tables += (table_of(work.published, operator, each) for each in spoken)
            heard |= _together(map(operator.retold, spoken))
        if memory is not None:
            after.operators[number] = memory
        for i, moment in _awaited(work, operator, memory):
            unsaid[i] = min(moment, unsaid.get(i, moment))
    begun = () if past is None else past.begun
    after.change = None if is_anew or after.kept != before else change
    return after, Said(identified(pa.concat_tables(tables)), heard, unsaid, begun, holding)


def _awaited(work: Work, operator: Operator, memory: Memory | None) -> Iterator[tuple[int, Instant]]:
    """For those who wait for an operator the earliest moment of which it has still to speak."""
    waiting = [i for i, other in work.timed.items() if operator.is_awaited(other)]
    if waiting and (due := _due(operator, memory)) is not None:
        yield from ((i, due - operator.behind) for i in waiting)


def _advanced(reached: Mapping[str, Instant], told: Iterable[bytes]) -> dict[str, Instant]:
    latest = dict(reached)
    for raw in told:
        found = msgspec.msgpack.decode(raw, type=dict[str, int])
        latest |= {topic: max(at, latest.get(topic, BEGINNING)) for topic, at in found.items()}
    return latest


def _by_topic(pieces: Iterable[Piece], arranged: Arranging) -> dict[str, pa.RecordBatch]:
    whole = _together({topic: events} for topic, _, events in pieces if topic is not None)
    return {topic: arranged(events) for topic, events in whole.items()}


def _together(parts: Iterable[Mapping[str, pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
    """Rows by topic, those of the first part first."""
    found: dict[str, list[pa.RecordBatch]] = {}
    for part in parts:
        for topic, rows in part.items():
            found.setdefault(topic, []).append(rows)
    return {topic: concatenate(some) for topic, some in found.items()}


# --- states ------------------------------------------------------------------------------------------


def _is_due(operator: Operator, memory: Memory | None, now: Instant) -> bool:
    """Whether an operator may say something by itself when time has come so far."""
    due = _due(operator, memory)
    return due is not None and now > due


def _due(operator: Operator, memory: Memory | None) -> Instant | None:
    machine = operator.machine
    return machine.due(machine.initial()) if memory is None else memory.due


def _taken(
    work: Work, number: int, shard: Shard, at: Instant, past: Past | None, before: Iterable[bytes]
) -> Revised | None:
    """What an operator takes over where a definition has changed, if it does: what another one knew, or all
    that it would have heard ``before``."""
    operator = work.operators[number]
    if past is not None and number in past.redone:
        heard = _by_topic(map(unpacked, before), in_turn)
        come = until(shard.reached, operator.clock, BEGINNING)
        come = max([come, *work.reached.values()])
        state, told = operator.machine.step(operator.machine.initial(), heard, come)
        events = {(n.subscription, n.scope): n.event for n in operator.notifications(told)}
        return _redone(work, number, shard, come, (state, events))
    if (memory := shard.operators.get(number)) is not None:
        begun = begun_anew(operator, memory, at)
        return None if begun is None else Revised(operator, *begun)
    if operator.recounts:
        is_told = past is not None and number in past.begun and number in work.revisions
        return _told_who_holds(work, number, shard, at, before) if is_told else None
    if past is not None and number in past.anew:
        anew, ((name,),) = past.anew[number], operator.names
        events = {(name, operator.shows(scope)): event for scope, event in anew.told}
        return _redone(work, number, shard, at, (operator.machine.from_bytes(anew.state), events))
    return _taken_over(work, number, shard, at, past)


def _before(work: Work, number: int, shard: Shard) -> Revision | None:
    """The last one that ran here of those whose place an operator takes."""
    edit = work.revisions.get(number)
    while edit is not None and edit.before not in shard.operators:
        edit = work.revisions.get(edit.before)
    return edit


def _taken_over(work: Work, number: int, shard: Shard, at: Instant, past: Past | None) -> Revised | None:
    """What an operator takes over that goes on under another definition, from the last one that ran here;
    what the history says of its scopes settles what does not follow."""
    first, edit = work.revisions.get(number), _before(work, number, shard)
    scopes = {} if past is None else past.about(number)
    if first is None or (edit is None and not scopes):
        return None
    before = edit or first
    state = apart(before.operator, shard.operators.get(before.before), at)
    known = Known(before.operator, state, (), at, scopes, past is not None and past.whole)
    return revised(before.name, before.was, work.checked, known)


def _told_who_holds(
    work: Work, number: int, shard: Shard, at: Instant, before: Iterable[bytes]
) -> Revised | None:
    """An operator that takes the place of another, when it has heard who holds."""
    operator, edit = work.operators[number], _before(work, number, shard) or work.revisions[number]
    ran = apart(edit.operator, shard.operators.get(edit.before), at)
    one = reborn(edit.name, edit.was, work.checked, ran)
    assert one is not None
    heard = _by_topic(map(unpacked, before), in_turn)
    state, _ = operator.machine.step(one.begun(), heard, at)
    return _redone(work, number, shard, at, (one.doubted(state), {}))


def _redone(
    work: Work, number: int, shard: Shard, at: Instant, anew: tuple[Any, Mapping[Scoped, Event]]
) -> Revised:
    """An operator that has heard anew all that there was, with the last events that it told, and what is to
    be said of that."""
    operator, known, (state, events) = work.operators[number], conditions(work.checked), anew
    edit, memory, ran = _before(work, number, shard), shard.operators.get(number), operator
    if memory is None and edit is not None:
        memory, ran = shard.operators[edit.before], edit.operator
    mine = {name for names in operator.names for name in names}
    before = {} if memory is None else standings(ran, apart(ran, memory, at))
    before = {key: one for key, one in before.items() if key[0] in mine}

    def nothing(key: Scoped) -> Event:
        return Event(known[key[0]].topic.name, at, key[1] or "")

    said = [one for _, some in revisions(operator, state, before, events, nothing) for one in some]
    return Revised(operator, state, said)


def _holding(work: Work, operator: Operator, state: Any, at: Instant) -> dict[str, pa.RecordBatch]:
    """Who holds in a state, as those hear it who begin to listen."""
    if not operator.followed or not standings(operator, state):
        return {}
    return operator.retold(Told({}, holders(operator, state, work.checked, at)))
