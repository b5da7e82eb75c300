"""What a definition says, as machines that run on nodes: the only place that knows how they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ...compilers import scalar
from ...compilers.keys import shown
from ...compilers.machine import machine, state_filter
from ...errors import Unsupported
from ...lang.app import App
from ...lang.condition import Checked, Condition
from ...lang.ops import DeclareRegion, DeclareTopic, Let, Subscribe
from ...lang.parse import load, parse
from ...lang.show import show
from ...machines.filter import Filters, State
from ...machines.machine import Machine
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ...protocols.cbps import condition as cbps
from ...protocols.cbps.content import Constraint, Filter
from ...protocols.cbps.event import to_event
from ...protocols.cbps.parts import pins
from ...protocols.cbps.scopes import NOWHERE, Scopes, contains


@dataclass(frozen=True)
class Definition:
    """Topics and subscriptions of a scenario."""

    app: App
    checked: Checked

    @property
    def topics(self) -> dict[str, Topic]:
        """By name."""
        return {topic.name: topic for topic in self.checked.topics}

    @property
    def conditions(self) -> dict[str, Condition | None]:
        """What can be subscribed to, by name; none for what does not run here."""
        beyond = _beyond(self.checked)
        return {c.name: c for c in self.checked.conditions} | dict.fromkeys(beyond)


def _beyond(checked: Checked) -> list[str]:
    """Those that look at several sensors."""
    return [c.name for c in checked.components] + [c.name for c in checked.correlations]


def defined(text: str, folder: Path) -> Definition:
    """The definition in a ``.hf`` file beside the scenario, or that was written out."""
    app = load(folder / text) if text.endswith(".hf") else parse(text)
    return Definition(app, app.check(folder))


class Watch:
    """A condition at work: what starts and ends as events come."""

    @classmethod
    def of(cls, condition: Condition | None) -> Watch | None:
        """None where there is none: everything is told."""
        return None if condition is None else cls(condition)

    def __init__(self, condition: Condition) -> None:
        self._machine, self._wait = machine([condition]), condition.delivery.wait
        self._state, self._reached = self._machine.initial(), BEGINNING

    def react(self, event: Event) -> list[Transition]:
        """Take an event."""
        self._state, passed = self._machine.react(self._state, event)
        if self._wait is None:
            return passed
        self._reached = max(self._reached, event.time)
        self._state, more = self._machine.advance(self._state, self._reached - self._wait)
        return [told for told in passed + more if told.status != "late"]


def on_motes(definition: Checked) -> dict[str, Machine]:
    """The machine of each condition, by name; each publisher will run it for its own samples.

    >>> from holdfast.lang.parse import parse
    >>> text = "topic T (value float)  state Warm on T [value > 25; value < 22] per source"
    >>> list(on_motes(parse(text).check()))
    ['Warm']
    """
    for name in _beyond(definition):
        raise Unsupported(f"'{name}' looks at several sensors; a mote sees only its own samples")
    return {condition.name: machine([_alone(condition)]) for condition in definition.conditions}


def _alone(condition: Condition) -> Condition:
    """A condition that every sensor has for itself."""
    alone = condition.keys and "source" in condition.keys[-1]
    if condition.forest is not None or not (alone or condition.momentary):
        raise Unsupported(
            f"'{condition.name}' has one state for several sensors; on motes each sensor has its own: "
            "write 'per source'"
        )
    if condition.delivery.wait is not None:
        raise Unsupported(f"'{condition.name}' puts samples in order; a mote's own samples are: leave it out")
    return condition


def scope(condition: Condition, event: Event) -> str | None:
    """The outermost scope of a condition that contains an event."""
    keys = [key for key in scalar.chain(condition)(event) or () if key is not None]
    return shown(keys[-1]) if keys and (condition.keys or condition.forest) else None


# For brokers.


def travelling(definition: Definition, condition: Condition) -> tuple[str, cbps.Condition]:
    """A subscription as the text that goes to brokers with it, and what they make of that."""
    about = [s for s in definition.app.statements if isinstance(s, Let | DeclareRegion)]
    (named,) = [s for s in definition.app.statements if isinstance(s, Subscribe) and s.name == condition.name]
    text = show(App([DeclareTopic(condition.topic), *about, replace(named, topic=condition.topic.name)]))
    if condition.delivery.wait is not None:
        raise Unsupported(
            f"'{condition.name}' puts events in order, which brokers on motes do not: leave it out"
        )
    if condition.forest is not None and not any(isinstance(s, DeclareRegion) for s in about):
        raise Unsupported(
            f"'{condition.name}' needs a gazetteer, which brokers do not have; declare the regions"
        )
    return text, _for_brokers(condition)


def _for_brokers(condition: Condition) -> cbps.Condition:
    predicates, chain = state_filter(condition), scalar.chain(condition)
    filters = machine([condition])
    assert isinstance(filters, Filters)
    return cbps.Condition(
        name=condition.name,
        content=Filter((Constraint("topic", "text", "=", condition.topic.name),)),
        event=partial(to_event, condition.topic),
        chain=chain,
        reach=partial(_reach, condition, chain),
        enter=predicates.enter,
        leave=predicates.leave,
        momentary=condition.momentary,
        filterable=True,
        machine=Timely(filters),
    )


def _reach(condition: Condition, chain: Callable[[Event], cbps.Chain | None], filter_: Filter) -> Scopes:
    """The scopes of the events that a filter lets pass: known if it pins all that they depend on."""
    pinned, needed = pins(filter_), {name for level in condition.keys for name in level}
    if condition.forest is not None or not needed <= pinned.keys():
        return None
    whole = {"source": "", **pinned, "topic": condition.topic.name, "time": 0, "sequence": 0}
    event = to_event(condition.topic, whole)
    keys = chain(event) if event is not None else None
    return NOWHERE if keys is None else frozenset(key for key in keys if key is not None)


@dataclass(frozen=True)
class Timely:
    """A state filter on the subscriber's side, as events come."""

    filters: Filters

    def initial(self) -> State:
        return self.filters.initial()

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        return self.filters.react(state, event)

    def bits(self, state: State) -> list[str]:
        return [level.keys.key(int(code)) for level in state.levels for code in np.flatnonzero(level.words)]

    def forget(self, state: State, scopes: Scopes) -> tuple[State, list[tuple[str | None, Instant]]]:
        outermost, lost = state.levels[-1], []
        for level in state.levels:
            for code in map(int, np.flatnonzero(level.words)):
                if contains(scopes, key := level.keys.key(code)):
                    level.words[code] = 0
                    if level is outermost:
                        lost.append((self.filters.shown(key), int(state.since[0, code])))
                        state.since[0, code] = BEGINNING
        return state, lost
