"""The operators of a definition at work: what each is told, and how they go on under another definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ...compilers.edit import Scoped, Standing, holders, nothing_heard, revisions, standings
from ...compilers.families import Reborn, linked
from ...compilers.operator import Kept, Operator, ended, until
from ...compilers.resume import Resumed, resumed
from ...lang.condition import Checked
from ...machines import corrected
from ...machines.inherited import Bit, Inheriting
from ...machines.machine import Pausing, Told, can_pause
from ...model.batch import to_events
from ...model.event import Event, Notification, Transition, lacking
from ...model.instant import BEGINNING, Instant
from ...model.scope import once_listed
from ...model.topic import Topic
from .running import Heard, Running, acquainted, gathered, passed_on

StateOf = Callable[[Resumed], Any]
"""The state that an operator had which goes on."""


class Edition(NamedTuple):
    """A definition that takes the place of another: the ``whole``, if only a part of it is to be run, who is
    ``reborn``, who begins anew with what was ``left`` to it, what those say of it that go on, and how all
    scopes were ``before``."""

    whole: Checked | None = None
    reborn: Mapping[str, Reborn] = MappingProxyType({})
    left: Mapping[str, Sequence[Bit]] = MappingProxyType({})
    said: Sequence[tuple[Running, list[Transition]]] = ()
    before: Mapping[Scoped, Standing] = MappingProxyType({})


PLAIN = Edition()


_DEFINED = ("topics", "running", "listening", "hearing", "remembers", "latest")
"""What another definition makes anew."""


class Works:
    """What runs, for whom, and how far time has come.  With ``remember`` the latest reading of every source
    is kept, else only where conditions want it that join others."""

    def __init__(self, *, remember: bool) -> None:
        self.topics: dict[str, Topic] = {}
        self.running: list[Running] = []
        self.listening: dict[str, list[Running]] = {}
        self.hearing: list[Running] = []
        """Those that hear other conditions."""
        self.reached: dict[str, Instant] = {}
        self.latest: dict[str, dict[str, Event]] = {}
        """The latest reading of every source, of every topic, for conditions that join others.  [F75]"""
        self.remembers = self.always_remembers = remember
        self.paused: frozenset[str] = frozenset()
        """The topics of which readings may wait somewhere: timers over them do."""

    @property
    def names(self) -> list[str]:
        """The conditions that run."""
        return [name for one in self.running for name in one.operator.subscriptions]

    @property
    def latest_events(self) -> list[Event]:
        return [event for events in self.latest.values() for event in events.values()]

    # --- one definition after another ---

    def run(
        self,
        checked: Checked,
        kept: Sequence[Kept] = (),
        state_of: StateOf = lambda _one: None,
        more: Sequence[Running] = (),
        edition: Edition = PLAIN,
    ) -> list[Notification]:
        """Run a definition, given what is known of operators that ran before, and ``more`` that run already.
        What counts say that begin."""
        before, self.topics = self.topics, {topic.name: topic for topic in checked.topics}
        self.latest = {
            name: self._known(before.get(name), name) for name in self.latest if name in self.topics
        }
        going_on = resumed(kept, checked)
        started = [*(self._started(one, state_of(one), edition.left) for one in going_on), *more]
        begun = {id(one.operator.machine) for one in going_on if one.before is None}
        at = {id(one.operator.machine): one for one in started}
        self.running = []
        for operator in linked(one.operator for one in started):
            one = at[id(operator.machine)]
            one.operator = operator
            self.running.append(one)
        acquainted(self.running)
        said = [
            notification
            for one in self.running
            if one.operator.recounts and id(one.operator.machine) in begun
            for notification in self._recount(one, edition.whole or checked, edition)
        ]
        self.listening = {
            topic: [one for one in self.running if topic in one.operator.topics] for topic in self.topics
        }
        self.hearing = [one for one in self.running if one.operator.heard]
        self.remembers = self.always_remembers or any(one.operator.joins for one in self.running)
        if not self.remembers:  # else they would be taken for the latest when they no longer are
            self.latest = {}
        return said

    def go_on(
        self,
        checked: Checked,
        gone: Collection[str] = (),
        more: Sequence[Running] = (),
        edition: Edition = PLAIN,
    ) -> list[Notification]:
        """Run a changed definition: what ran already goes on, but for what was ended.  What counts say that
        begin."""
        before = self.running
        kept = [ended(one.operator.kept, gone) for one in before]

        def state_of(one: Resumed) -> Any:
            if one.before is None:
                return None
            old, machine = before[one.before], one.operator.machine
            if kept[one.before] == one.operator.kept:
                return old.state
            return machine.from_bytes(old.operator.machine.to_bytes(old.state), one.was)

        return self.run(checked, kept, state_of, more, edition)

    def share(self, name: str, meaning: str) -> None:
        """Serve a new subscription with an equal condition, where that makes no difference."""
        for running in self.running:
            operator = running.operator
            for i, other in enumerate(operator.meanings):
                if other == meaning and operator.machine.is_fresh(running.state, i):
                    served = [(*names, name) if i == k else names for k, names in enumerate(operator.names)]
                    running.operator = operator.serving(served)
                    return

    def _started(self, one: Resumed, state: Any, left: Mapping[str, Sequence[Bit]]) -> Running:
        """An operator with the state that it had; what starts now starts where time has come to, with what
        was left to it."""
        operator, machine = one.operator, one.operator.machine
        new = [i for i in range(len(operator.names)) if one.before is None or one.was[i] is None]
        if one.before is None:
            state = machine.initial()
            if machine.is_timed and (now := until(self.reached, operator.clock, BEGINNING)) > BEGINNING:
                state = corrected.begun(machine, machine.advance(state, now)[0])
        if operator.joins:
            for i in new:
                state = machine.inform(state, i, self.latest_events)
        if isinstance(machine, Inheriting):
            now = until(self.reached, operator.clock, BEGINNING)
            for i in new:
                bits = [bit for name in operator.names[i] for bit in left.get(name, ())]
                state = machine.begun(state, i, bits, now)
        return Running(operator, state)

    def _recount(self, one: Running, checked: Checked, edition: Edition) -> list[Notification]:
        """Tell one that begins who holds already, of those whom it hears; what it says of that."""
        heard, revised, reborn = Heard(), Heard(), edition.reborn
        edit = next((reborn[name] for name in one.operator.subscriptions if name in reborn), None)
        if edit is not None:
            for operator, words in self._revised(edition, checked):
                gathered(revised, operator.retold(Told({}, words)))
            one.state = edit.begun(_events(one, revised))
        for below in self.running:
            followed = {topic.name for topic in below.operator.followed.values()}
            if one.operator.heard & followed and standings(below.operator, below.state):
                held = holders(below.operator, below.state, checked, self.now(below))
                gathered(heard, below.operator.retold(Told({}, held)))
        events = _events(one, heard)
        said: list[Transition] = []
        for event in sorted(events, key=lambda event: event.order):
            one.state, more = one.operator.machine.react(one.state, event)
            said += more
        said += one.advance(self.now(one)) if events or edit else []
        if edit is not None:
            one.state = edit.doubted(one.state)
        return list(one.operator.addressed(said))

    def _revised(self, edition: Edition, checked: Checked) -> Iterator[tuple[Operator, list[Transition]]]:
        """What those say of an edit that it changes: who go on, and who begin in the place of another."""
        yield from ((below.operator, words) for below, words in edition.said)
        for below in self.running:
            if below.operator.serves({*edition.left, *edition.reborn}):
                nothing = nothing_heard(checked, below.lately(self.reached))
                yield from revisions(below.operator, below.state, edition.before, {}, nothing)

    def misnamed(self) -> tuple[str, str] | None:
        """A condition that hears others, and the name of a scope as it was before values were quoted, by
        which it knows one of theirs; ``None`` if there is none."""
        for one in self.hearing:
            raw = one.operator.machine.to_bytes(one.state)
            for below in self.running:
                if one.operator.heard & {topic.name for topic in below.operator.followed.values()}:
                    scopes = {scope for _, scope in standings(below.operator, below.state)}
                    for old in sorted({once_listed(scope) or "" for scope in scopes} - scopes - {""}):
                        if old.encode() in raw:
                            return one.operator.subscriptions[0], old
        return None

    @contextmanager
    def whole_or_not_at_all(self) -> Iterator[None]:
        """Whatever is exchanged in here is so when that ends well, else all is as it was."""
        kept = [(one, one.operator, self._kept(one)) for one in self.running]
        before = {name: getattr(self, name) for name in _DEFINED}
        try:
            yield
        except BaseException:
            for one, operator, state in kept:
                one.operator, one.state = operator, state()
            for name, value in before.items():
                setattr(self, name, value)
            acquainted(self.running)
            raise

    def _kept(self, one: Running) -> Callable[[], Any]:
        """How to have a state again as it is now: those who hear others are told of it on the way."""
        state, machine = one.state, one.operator.machine
        return partial(machine.from_bytes, machine.to_bytes(state)) if one.operator.heard else lambda: state

    # --- what they are told ---

    def now(self, one: Running) -> Instant:
        """How far one of them looks."""
        return one.now(self.reached)

    def passed(self, one: Running) -> Instant:
        """How far time may come for one of them: nowhere while its timers wait."""
        return BEGINNING if self.is_paused(one) else self.now(one)

    def is_paused(self, one: Running) -> bool:
        """Whether time does nothing to one of them now."""
        return bool(self.paused) and not self.paused.isdisjoint(one.operator.clock) and _can_pause(one)

    def pause(self, topics: Iterable[str], until: Mapping[str, Instant]) -> None:
        """Let timers over some topics wait from now on, and others go on; time has come so far meanwhile, and
        counts for no scope of these."""
        paused = [one for one in self.running if self.is_paused(one)]
        for name in self.topics.keys() & until.keys():
            self.reach(name, until[name])
        self.paused = frozenset(topics)
        for one in paused:
            if not self.is_paused(one) and isinstance(machine := one.operator.machine, Pausing):
                one.state = machine.resume(one.state, self.now(one))

    def reach(self, topic: str, at: Instant) -> None:
        """Time has come so far, by what is heard of a topic."""
        self.reached[topic] = max(self.reached.get(topic, BEGINNING), at)

    def remember(self, topic: str, events: Iterable[Event]) -> None:
        """Keep the latest reading of every source."""
        known = self.latest.setdefault(topic, {})
        for event in events:
            before = known.get(event.source)
            if before is None or before.time <= event.time:
                known[event.source] = event

    def _known(self, was: Topic | None, name: str) -> dict[str, Event]:
        """The latest readings of a topic that was another, without attributes that have another kind or unit
        now."""
        known, now = self.latest[name], self.topics[name]
        other = was.differing(now) if was is not None else ()
        return {source: lacking(event, other) for source, event in known.items()} if other else known

    def addressed(self, one: Running, said: list[Transition], heard: Heard) -> Iterator[Notification]:
        """What an operator has said, for whom it concerns; those who hear it find it in ``heard``."""
        gathered(heard, one.operator.retold(Told({}, said)))
        return one.operator.addressed(said)

    def passed_on(self, heard: Heard) -> list[Notification]:
        """What those say who hear other conditions."""
        return list(passed_on(self.hearing, heard, self.passed)) if self.hearing else []


def _can_pause(one: Running) -> bool:
    return can_pause(one.operator.machine)


def _events(one: Running, heard: Heard) -> list[Event]:
    """What an operator hears, event by event."""
    mine = ((topic, heard[topic]) for topic in one.operator.heard & heard.keys())
    return [event for name, batch in mine for event in to_events(one.operator.topics[name], batch)]
