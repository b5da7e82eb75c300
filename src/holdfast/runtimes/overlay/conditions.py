"""Definitions that travel with subscriptions, and what brokers and subscribers make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from ...compilers import scalar
from ...compilers.filters.machine import delivered, filters, state_filter
from ...errors import Unsupported, UsageError
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Condition as Checked
from ...lang.ops import Case, DeclareRegion, DeclareTopic, Let, Statement, Subscribe, UseGazetteer
from ...lang.parse import parse
from ...lang.show import show
from ...machines import filter, ordered
from ...machines.filter import Filters
from ...machines.ordered import Ordered
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, Instant
from ...protocols.cbps.condition import Chain, Condition
from ...protocols.cbps.content import Constraint, Filter
from ...protocols.cbps.event import to_event
from ...protocols.cbps.parts import pins
from ...protocols.cbps.scopes import NOWHERE, Scopes, contains

Lost = tuple[str | None, Instant]
"""The scope of a condition that held, and since when."""

LONGEST = 65_536
"""How many characters a definition may have that comes from somewhere else."""


def definitions(app: App) -> dict[str, str]:
    """Each subscription of an app as a text that means the same without the others."""
    statements = [s for s in app.statements if not isinstance(s, Case)]
    _require_movable(statements)
    known = {condition.name: condition for condition in check(app).conditions}
    about = [s for s in statements if isinstance(s, Let | DeclareRegion)]
    return {
        s.name: show(
            App([DeclareTopic(known[s.name].topic), *about, replace(s, topic=known[s.name].topic.name)])
        )
        for s in statements
        if isinstance(s, Subscribe)
    }


@lru_cache(maxsize=4_096)
def condition(definition: str) -> Condition:
    """What a definition means that came with a subscription."""
    if len(definition) > LONGEST:
        raise UsageError(f"a definition may have {LONGEST} characters, not {len(definition)}")
    app = parse(definition)
    _require_movable(app.statements)
    checked = check(app).conditions
    if len(checked) != 1:
        raise UsageError(f"a subscription has one condition, not {len(checked)}; send one for each")
    return _condition(checked[0])


def _require_movable(statements: Iterable[Statement]) -> None:
    """Only what means the same everywhere travels: no file, and nothing that a broker cannot run."""
    for statement in statements:
        if isinstance(statement, UseGazetteer):
            raise Unsupported(
                "a gazetteer is a file here, and brokers are elsewhere; declare the regions instead"
            )
        if not isinstance(statement, Let | DeclareTopic | DeclareRegion | Subscribe):
            raise Unsupported(f"states and filters run on an overlay; this does not: {show(statement)}")


def _condition(checked: Checked) -> Condition:
    predicates, chain = state_filter(checked), scalar.chain(checked)
    return Condition(
        name=checked.name,
        content=Filter((Constraint("topic", "text", "=", checked.topic.name),)),
        event=partial(to_event, checked.topic),
        chain=chain,
        reach=lru_cache(maxsize=16_384)(_reach(checked, chain)),
        enter=predicates.enter,
        leave=predicates.leave,
        momentary=checked.momentary,
        filterable=checked.delivery.wait is None,
        machine=_runner(checked),
    )


def _reach(checked: Checked, chain: Callable[[Event], Chain | None]) -> Callable[[Filter], Scopes]:
    """The scopes of the events that a filter lets pass: known if it pins all that they depend on."""
    needed = {name for level in checked.keys for name in level}
    forest = checked.forest

    def reach(filter_: Filter) -> Scopes:
        pinned = pins(filter_)
        if not needed <= pinned.keys() or (forest is not None and pinned.get("place") not in forest.by_place):
            return None
        whole = {"source": "", **pinned, "topic": checked.topic.name, "time": 0, "sequence": 0}
        event = to_event(checked.topic, whole)
        keys = chain(event) if event is not None else None
        return NOWHERE if keys is None else frozenset(key for key in keys if key is not None)

    return reach


@dataclass(frozen=True)
class Timely:
    """A state filter on the subscriber's side, as events come."""

    filters: Filters

    def initial(self) -> filter.State:
        return self.filters.initial()

    def react(self, state: filter.State, event: Event) -> tuple[filter.State, list[Transition]]:
        return self.filters.react(state, event)

    def bits(self, state: filter.State) -> list[str]:
        return [level.keys.key(code) for level in state.levels for code in _set(level)]

    def forget(self, state: filter.State, scopes: Scopes) -> tuple[filter.State, list[Lost]]:
        outermost, lost = state.levels[-1], []
        for level in state.levels:
            for code in _set(level):
                if contains(scopes, key := level.keys.key(code)):
                    level.words[code] = 0
                    if level is outermost:
                        lost.append((self.filters.shown(key), int(state.since[0, code])))
                        state.since[0, code] = BEGINNING
        return state, lost


def _set(level: filter.Level) -> list[int]:
    """The scopes of a level whose bit is set, as codes."""
    return [int(code) for code in np.flatnonzero(level.words)]


Progress = tuple[ordered.State, Instant]
"""What an ordered condition holds back, and how far event time has come."""


@dataclass(frozen=True)
class InOrder:
    """A state filter on the subscriber's side, by event time."""

    machine: Ordered
    timely: Timely

    def initial(self) -> Progress:
        return self.machine.initial(), BEGINNING

    def react(self, state: Progress, event: Event) -> tuple[Progress, list[Transition]]:
        held, reached = state[0], max(state[1], event.time)
        held, passed = self.machine.react(held, event)
        held, more = self.machine.advance(held, reached)
        return (held, reached), passed + more

    def bits(self, state: Progress) -> list[str]:
        return self.timely.bits(state[0].inner)

    def forget(self, state: Progress, scopes: Scopes) -> tuple[Progress, list[Lost]]:
        inner, lost = self.timely.forget(state[0].inner, scopes)
        return (state[0]._replace(inner=inner), state[1]), lost


def _runner(checked: Checked) -> Timely | InOrder:
    run = filters([checked])
    fed = delivered(run, checked.delivery)
    return InOrder(fed, Timely(run)) if isinstance(fed, Ordered) else Timely(run)
