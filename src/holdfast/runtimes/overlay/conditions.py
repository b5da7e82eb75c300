"""Definitions that travel with subscriptions, and what brokers and subscribers make of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...compilers import scalar
from ...compilers.chain import alone
from ...compilers.families import builds_on, conditions, operators
from ...compilers.filters.machine import delivered, filters, state_filter
from ...compilers.operator import Operator
from ...errors import Unsupported, UsageError
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Condition as CheckedFilter
from ...lang.condition import Guarded
from ...lang.ops import (
    Case,
    DeclareGroup,
    DeclareRoute,
    DeclareTable,
    DeclareTopic,
    Defined,
    Mute,
    Relate,
    Statement,
    Subscribe,
    Tally,
    UseGazetteer,
    While,
)
from ...lang.parse import parse
from ...lang.relation.declared import listed
from ...lang.scopes import in_themselves
from ...lang.show import show
from ...machines import filter, ordered
from ...machines.filter import Filters
from ...model.batch import from_events
from ...model.event import Event, Notification, Transition
from ...model.instant import BEGINNING, Instant
from ...model.space import Forest, dimensions
from ...model.topic import Topic
from ...protocols.cbps.condition import Chain, Condition, Hosted, Replicated
from ...protocols.cbps.content import Constraint, Content, Filter
from ...protocols.cbps.event import AXES, to_event
from ...protocols.cbps.parts import pins
from ...protocols.cbps.ranges import Value
from ...protocols.cbps.scopes import NOWHERE, Scopes, contains

LONGEST = 65_536
"""How many characters a definition may have that comes from somewhere else."""


def definitions(app: App) -> dict[str, str]:
    """Each subscription of an app as a text that means the same without the others."""
    folder = Path(app.file).parent if app.file else Path()
    statements = [
        _listed(s, folder) for s in in_themselves(app.statements, folder) if not isinstance(s, Case)
    ]
    _require_movable(statements)
    checked = check(app)
    topics = {name: of for operator in operators(checked) for name, of in operator.listening().items()}
    defined = {s.name: _with_topic(s, topics[s.name]) for s in statements if isinstance(s, Defined)}
    about = [s for s in statements if not isinstance(s, DeclareTopic | Defined | Mute)]
    above = {name: builds_on(checked, name) for name in defined}
    found = {}
    for name in defined:
        mutes = [s for s in statements if isinstance(s, Mute) and s.target == name]
        parents = [s.cause.parent for s in mutes if isinstance(s.cause, While)]
        needed = [one for each in (name, *parents) for one in _needed(each, above)]
        heard = {topic for one in needed for topic in topics[one]}
        declared = [DeclareTopic(topic) for topic in checked.topics if topic.name in heard]
        mine = [s for s in about if not isinstance(s, DeclareGroup | DeclareRoute) or s.topic in heard]
        below = [statement for one, statement in defined.items() if one in needed]
        found[name] = show(App([*declared, *mine, *below, *mutes]))
    return found


def _listed(statement: Statement, folder: Path) -> Statement:
    """A statement that has in itself what it would read from a table."""
    return (
        listed(statement, folder)
        if isinstance(statement, DeclareGroup | DeclareRoute | Relate)
        else statement
    )


def _with_topic(statement: Defined, topics: tuple[str, ...]) -> Defined:
    """A statement that says its topic, though it was written in a notation without."""
    return replace(statement, topic=topics[0]) if isinstance(statement, Subscribe) else statement


def _needed(name: str, above: Mapping[str, Collection[str]]) -> list[str]:
    """A condition and all that it builds on, given those that build on each."""
    found = [name]
    for one in found:
        found += [below for below in above if one in above[below] and below not in found]
    return found


@lru_cache(maxsize=4_096)
def condition(definition: str) -> Condition:
    """What a definition means that came with a subscription."""
    if len(definition) > LONGEST:
        raise UsageError(f"a definition may have {LONGEST} characters, not {len(definition)}")
    app = parse(definition)
    _require_movable(app.statements)
    checked = check(app)
    found = [name for name in conditions(checked) if not builds_on(checked, name)]
    if len(found) != 1:
        raise UsageError(f"a subscription has one condition, not {len(found)}; send one for each")
    known = conditions(checked)
    if isinstance(meant := known[found[0]], CheckedFilter):
        return _replicated(meant)
    made = operators(checked)
    (serving,) = (one for one in made if any(found[0] in names for names in one.names))
    name = serving.called.get(found[0], found[0])
    return _hosted(meant, known[name], alone(made, name))


def _require_movable(statements: Iterable[Statement]) -> None:
    """Only what means the same everywhere travels: no file."""
    if any(isinstance(statement, UseGazetteer) for statement in statements):
        raise Unsupported(
            "a gazetteer is a file here, and brokers are elsewhere; declare the regions instead"
        )
    if listed := next((s for s in statements if isinstance(s, Tally) and s.roster is not None), None):
        raise Unsupported(f"the roster of '{listed.name}' is a file here, and brokers are elsewhere")
    if table := next((s for s in statements if isinstance(s, DeclareTable)), None):
        raise Unsupported(
            f"table '{table.name}' is here, and brokers are elsewhere: subscribe to what covers its rows "
            "(holdfast explain shows it) and look rows up here"
        )
    tables = [getattr(s, "pairs", getattr(s, "sources", getattr(s, "legs", None))) for s in statements]
    if any(isinstance(table, str) for table in tables):
        raise Unsupported("a table is a file elsewhere; a definition that travels has its rows in itself")


# --- conditions that one broker runs -----------------------------------------------------------------


def _hosted(meant: Any, told_of: Any, operator: Operator) -> Hosted:
    """A condition, that of which it tells, and the operator that runs it for one subscription."""

    name = told_of.name

    def told(said: Iterable[Transition]) -> list[Notification]:
        return [one for one in operator.addressed(said) if one.subscription == name]

    return Hosted(
        name=name,
        inputs=tuple(_inputs(operator)),
        event=partial(_event, operator.topics),
        matters=_matters(meant, operator),
        unsaid=isinstance(told_of, Guarded) and (told_of.care.quietly or told_of.care.initially == "on"),
        machine=operator.machine,
        told=told,
    )


def _inputs(operator: Operator) -> Iterator[Filter]:
    """What an operator looks at: its topics, and of some of them a few sources alone."""
    for topic in operator.topics:
        of_topic = Constraint("topic", "text", "=", topic)
        for source in sorted(operator.sources.get(topic, ())):
            yield Filter((of_topic, Constraint("source", "text", "=", source)))
        if topic not in operator.sources:
            yield Filter((of_topic,))


def _event(topics: Mapping[str, Topic], content: Content) -> Event | None:
    topic = topics.get(str(content.get("topic")))
    return None if topic is None else to_event(topic, content)


def _matters(meant: Any, operator: Operator) -> Callable[[Event], bool]:
    """Whether an event can make a difference.  Where time decides what is said, every event tells how far
    it has come; only what is said at once, of events near in time to one another, is free of that."""
    machine = operator.machine
    if machine.margin is None or meant.delivery.wait is not None:
        return lambda _: True
    return lambda event: bool(
        machine.matters(event.topic, from_events(machine.topics[event.topic], [event]))[0]
    )


# --- state filters, of which every broker on the way runs a replica ----------------------------------


def _replicated(checked: CheckedFilter) -> Replicated:
    predicates, chain, run = state_filter(checked), scalar.chain(checked), filters([checked])

    def told(said: Iterable[Transition]) -> list[Notification]:
        return [Notification(checked.name, *moved[:4]) for moved in said]

    return Replicated(
        name=checked.name,
        inputs=(Filter((Constraint("topic", "text", "=", checked.topic.name),)),),
        event=partial(to_event, checked.topic),
        machine=delivered(run, checked.delivery),
        told=told,
        chain=chain,
        reach=lru_cache(maxsize=16_384)(_reach(checked, chain)),
        enter=predicates.enter,
        leave=predicates.leave,
        momentary=checked.momentary,
        filterable=checked.delivery.wait is None,
        bits=_bits,
        forget=partial(_forget, run),
    )


def _reach(checked: CheckedFilter, chain: Callable[[Event], Chain | None]) -> Callable[[Filter], Scopes]:
    """The scopes of the events that a filter lets pass: known if it pins all that they depend on."""
    needed = {name for level in checked.keys for name in level}
    forest = checked.forest

    def reach(filter_: Filter) -> Scopes:
        pinned = pins(filter_)
        if not needed <= pinned.keys() or (forest is not None and not _located(forest, pinned)):
            return None
        whole = {"source": "", **pinned, "topic": checked.topic.name, "time": 0, "sequence": 0}
        event = to_event(checked.topic, whole)
        keys = chain(event) if event is not None else None
        return NOWHERE if keys is None else frozenset(key for key in keys if key is not None)

    return reach


def _located(forest: Forest, pinned: Mapping[str, Value]) -> bool:
    """Whether what is pinned says in which region events happen: a known place; or coordinates, if no place
    and no source can say something else.  [F11]"""
    if pinned.get("place") in forest.by_place:
        return True
    needed = {dimensions(shape) for shape, _ in forest.innermost_first}
    axes = AXES[: max(needed, default=len(AXES))]
    return all(axis in pinned for axis in axes) and (not forest.by_source or "source" in pinned)


def _bits(state: filter.State | ordered.State) -> list[str]:
    """The keys of the scopes in which a bit is set."""
    return [level.keys.key(code) for level in _inner(state).levels for code in _set(level)]


def _forget(
    run: Filters, state: filter.State | ordered.State, scopes: Scopes
) -> list[tuple[str | None, Instant]]:
    """Reset the bits of some scopes; the outermost ones that held, and since when."""
    inner, lost = _inner(state), []
    for level in inner.levels:
        for code in _set(level):
            if contains(scopes, key := level.keys.key(code)):
                level.words[code] = 0
                if level is inner.levels[-1]:
                    lost.append((run.shown(key), int(inner.since[0, code])))
                    inner.since[0, code] = BEGINNING
    return lost


def _inner(state: Any) -> filter.State:
    return state.inner if isinstance(state, ordered.State) else state


def _set(level: filter.Level) -> list[int]:
    """The scopes of a level whose bit is set, as codes."""
    return [int(code) for code in np.flatnonzero(level.words)]
