"""Definitions that travel with subscriptions, and what brokers and subscribers make of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeGuard, cast

from ...compilers import scalar
from ...compilers.chain import Chain, alone
from ...compilers.families import builds_on, conditions, operators
from ...compilers.filters.machine import delivered, filters, state_filter
from ...compilers.operator import Operator
from ...errors import Unsupported, UsageError
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked, Guarded
from ...lang.condition import Condition as CheckedFilter
from ...lang.ops import (
    Case,
    DeclareGroup,
    DeclareRoute,
    DeclareTable,
    DeclareTopic,
    Defined,
    Expression,
    Ladder,
    Member,
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
from ...lang.rewrite import parts
from ...lang.scopes import in_themselves
from ...machines import corrected, doubt, ordered
from ...machines.doubt import Doubting
from ...machines.machine import Machine
from ...model.batch import from_events
from ...model.event import Event, Notification, Transition, notify
from ...model.instant import Instant
from ...model.qos import Correct
from ...model.space import Forest, dimensions
from ...model.topic import Topic
from ...protocols.cbps.condition import Chain as Keys
from ...protocols.cbps.condition import Condition, Hosted, Outlook, Replicated
from ...protocols.cbps.content import Constraint, Content, Filter
from ...protocols.cbps.event import AXES, to_event
from ...protocols.cbps.parts import pins
from ...protocols.cbps.ranges import Value
from ...protocols.cbps.scopes import NOWHERE, Scopes, contains

LONGEST = 65_536
"""How many characters a definition may have that comes from somewhere else."""


def apart(app: App) -> dict[str, App]:
    """Each subscription of an app, with what it needs of the others, and nothing else."""
    folder = folder_of(app)
    statements = [
        _listed(s, folder) for s in in_themselves(app.statements, folder) if not isinstance(s, Case)
    ]
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
        tables = {table for statement in below for table in _tables(statement)}
        mine = [s for s in mine if not isinstance(s, DeclareTable) or s.name in tables]
        found[name] = App([*declared, *mine, *below, *mutes])
    return found


def folder_of(app: App) -> Path:
    """Where the files of an app are."""
    return Path(app.file).parent if app.file else Path()


def _tables(statement: Defined) -> Iterator[str]:
    """The tables that a statement names."""
    for one in statement.rungs if isinstance(statement, Ladder) else (statement,):
        if isinstance(one, Subscribe):
            columns = [hold.column for hold in (one.care.enter, one.care.exit) if hold.column]
            yield from (column.partition(".")[0] for column in columns)
            yield from (*_owners(one.enter), *_owners(one.exit))
            if one.care.roster is not None and one.care.roster.table is not None:
                yield one.care.roster.table


def _owners(op: Expression) -> Iterator[str]:
    """The tables whose columns an expression names."""
    if isinstance(op, Member):
        yield op.owner
    for part in parts(op):
        yield from _owners(part)


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
    """What a definition means that came with a subscription.

    A state and a filter on its topic are a gate: while the state holds, what the filter lets pass does.
    """
    if len(definition) > LONGEST:
        raise UsageError(f"a definition may have {LONGEST} characters, not {len(definition)}")
    app = parse(definition)
    _require_movable(app.statements)
    checked = check(app)
    match checked.conditions:
        case (state, ends) if len(conditions(checked)) == 2 and ends.momentary and ends.topic == state.topic:
            return replace(replicated(state), ends=scalar.predicate(ends.enter, ends.topic))
    return meant(checked)


def meant(checked: Checked) -> Replicated | Hosted:
    """What a definition means that has one condition on which no other builds."""
    found = [name for name in conditions(checked) if not builds_on(checked, name)]
    if len(found) != 1:
        raise UsageError(f"a subscription has one condition, not {len(found)}; send one for each")
    known = conditions(checked)
    if isinstance(only := known[found[0]], CheckedFilter):
        return replicated(only)
    if isinstance(only.delivery.late, Correct):
        raise Unsupported(
            f"'{only.name}' has guards and corrects what it has told ('late correct'): that runs in one "
            "process, not on brokers"
        )
    name, operator = _serving(checked, found[0])
    return _hosted(only, known[name], operator)


def _serving(checked: Checked, name: str) -> tuple[str, Operator]:
    """Under which name a condition is told, and the operator that does it."""
    made = operators(checked)
    (serving,) = (one for one in made if any(name in names for names in one.names))
    called = serving.called.get(name, name)
    return called, alone(made, called)


def _require_movable(statements: Iterable[Statement]) -> None:
    """Only what means the same everywhere travels: no file."""
    if any(isinstance(statement, UseGazetteer) for statement in statements):
        raise Unsupported(
            "a gazetteer is a file here, and brokers are elsewhere; declare the regions instead"
        )
    if (named := next((s for s in statements if reads_file(s)), None)) is not None:
        what = f"table '{named.name}'" if isinstance(named, DeclareTable) else f"the roster of '{named.name}'"
        raise Unsupported(f"{what} is a file elsewhere, and nobody reads that here")
    tables = [getattr(s, "pairs", getattr(s, "sources", getattr(s, "legs", None))) for s in statements]
    if any(isinstance(table, str) for table in tables):
        raise Unsupported("a table is a file elsewhere; a definition that travels has its rows in itself")


def reads_file(statement: Statement) -> TypeGuard[DeclareTable | Defined]:
    """Whether a statement needs a table, or a roster that is a file."""
    match statement:
        case DeclareTable():
            return True
        case Ladder(rungs=rungs):
            return any(map(reads_file, rungs))
        case Subscribe(care=care):
            return care.roster is not None and care.roster.path is not None
        case Tally(roster=roster):
            return roster is not None
    return False


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
        topics=tuple(operator.topics.values()),
        holding=partial(_holding, name, operator),
    )


def _holding(name: str, operator: Operator, state: Any) -> list[tuple[str | None, Instant]]:
    """Where a condition holds in a state of the operator that tells it, and since when."""
    machine = operator.machine
    inside = zip(machine.operators, state, strict=True) if isinstance(machine, Chain) else [(operator, state)]
    return [(scope, at) for one, own in inside for called, scope, at in one.holding(own) if called == name]


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


def replicated(checked: CheckedFilter) -> Replicated:
    """A state filter, for brokers and for its subscriber."""
    predicates, chain = state_filter(checked), scalar.chain(checked)
    run = Doubting(filters([checked]))
    machine = delivered(cast(Machine, run), checked.topic, checked.delivery)

    def told(said: Iterable[Transition]) -> list[Notification]:
        return [notify(checked.name, *moved[:4]) for moved in said]

    return Replicated(
        name=checked.name,
        inputs=(Filter((Constraint("topic", "text", "=", checked.topic.name),)),),
        event=partial(to_event, checked.topic),
        machine=machine,
        told=told,
        chain=chain,
        reach=lru_cache(maxsize=16_384)(_reach(checked, chain)),
        enter=predicates.enter,
        leave=predicates.leave,
        momentary=checked.momentary,
        filterable=checked.delivery.wait is None,
        bits=lambda state: list(_inner(state).bits()),
        doubted=lambda state: _inner(state).doubted,
        doubt=partial(_doubt, run),
        outlook=partial(_outlook, machine, run),
    )


def _reach(checked: CheckedFilter, chain: Callable[[Event], Keys | None]) -> Callable[[Filter], Scopes]:
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


def _doubt(run: Doubting, state: Any, scopes: Scopes) -> tuple[Any, list[tuple[str | None, Instant]]]:
    """Events of some scopes may be lost: what was told before cannot be corrected by those that are left."""
    lost = run.doubt(_inner(state), partial(contains, scopes))
    return corrected.settled(state, run.copied(_inner(state))), lost


def _outlook(machine: Machine, run: Doubting, state: Any) -> Outlook | None:
    """How far a condition has come, if it corrects what it has told."""
    if not isinstance(machine, corrected.Corrected):
        return None
    begun = tuple(since for _, _, since in run.filters.holding(_inner(state).inner))
    return Outlook(state.now.until, machine.final(state), machine.ordered.wait + machine.within, begun)


def _inner(state: Any) -> doubt.State:
    match state:
        case corrected.State(now=now):
            return _inner(now)
        case ordered.State(inner=inner):
            return _inner(inner)
    assert isinstance(state, doubt.State)
    return state
