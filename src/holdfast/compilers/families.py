"""The table of machines: which kinds of conditions there are, and what compiles each of them.

A new kind is a line here.  Those who run conditions ask for operators and never for a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..lang.condition import (
    Aligned,
    Checked,
    Component,
    Condition,
    Correlated,
    Folded,
    Guarded,
    Leveled,
    Muted,
    Related,
    Tallied,
)
from ..machines.inherited import Bit
from ..model.event import Event
from ..model.qos import TIMELY
from ..model.topic import Topic
from . import anew, sql
from .components import explain as explain_components
from .components import machine as components
from .components import stages
from .correlations import explain as explain_correlations
from .correlations import machine as correlations
from .counts import machine as counts
from .counts import revise as revise_counts
from .filters import explain as explain_filters
from .filters import machine as filters
from .folds import machine as folds
from .folds import revise as revise_folds
from .guarded import explain as explain_guarded
from .guarded import machine as guarded
from .guarded import revise
from .guarded.revise import Revised as Revised
from .intervals import machine as intervals
from .intervals import revise as revise_intervals
from .levels import machine as levels
from .levels import revise as revise_levels
from .mutes import machine as mutes
from .mutes import revise as revise_mutes
from .operator import Operator, Past
from .relations import explain as explain_relations
from .relations import machine as relations
from .sql import Naming, quoted

Compile = Callable[[Sequence[Any], Sequence[Topic]], list[Operator]]
"""From checked conditions of a kind, and the topics of readings, to operators."""


@dataclass(frozen=True)
class Family:
    """A kind of condition: where a checked definition has it, how it becomes operators, what it means,
    and how that is put in words."""

    name: str
    field: str
    operators: Compile
    meaning: Callable[[Any], str]
    words: Callable[[Any], dict[str, str]]
    explained: Callable[[Sequence[Any]], Iterable[str]]
    explained_on_spark: Callable[[Checked], Iterable[Iterable[str]]]
    sharded: Compile | None = None
    """Operators whose events meet in shards, where that makes a difference."""
    builds_on_others: bool = False
    """Whether conditions build on one another: then those of one place run in one machine, and a new one
    joins them there; else a new one starts on a machine of its own."""
    hears_others: bool = False
    """Whether conditions hear what others have told, of any kind."""
    in_sql: Callable[[Sequence[Any], Topic, Naming], list[str]] | None = None
    """Tests of SQL, one of which holds for every event of a topic that matters, if there are such."""

    def of(self, checked: Checked) -> tuple[Any, ...]:
        """Its conditions in a definition."""
        found: tuple[Any, ...] = getattr(checked, self.field)
        return found

    def compiled(
        self, conditions: Sequence[Any], topics: Sequence[Topic], *, sharded: bool
    ) -> list[Operator]:
        """Operators for one process, or for shards."""
        return (self.sharded if sharded and self.sharded else self.operators)(conditions, topics)


FAMILIES = (
    Family(
        filters.FAMILY,
        "conditions",
        filters.operators,
        filters.meaning,
        explain_filters.in_words,
        explain_filters.explained,
        lambda checked: explain_filters.explained_on_spark(checked.conditions),
        in_sql=sql.noticed,
    ),
    Family(
        guarded.FAMILY,
        "guarded",
        guarded.operators,
        guarded.meaning,
        explain_guarded.in_words,
        explain_guarded.explained,
        lambda checked: explain_guarded.explained_on_spark(checked.guarded),
    ),
    Family(
        stages.FAMILY,
        "components",
        stages.operators,
        components.meaning,
        explain_components.in_words,
        explain_components.explained,
        explain_components.explained_on_spark,
        sharded=stages.sharded,
        builds_on_others=True,
    ),
    Family(
        correlations.FAMILY,
        "correlations",
        correlations.operators,
        correlations.meaning,
        explain_correlations.in_words,
        explain_correlations.explained,
        lambda checked: explain_correlations.explained_on_spark(checked.correlations),
        in_sql=sql.ranged,
    ),
    Family(
        relations.FAMILY,
        "relations",
        relations.operators,
        relations.meaning,
        explain_relations.in_words,
        explain_relations.explained,
        lambda checked: explain_relations.explained_on_spark(checked.relations),
    ),
    Family(
        levels.FAMILY,
        "leveled",
        levels.operators,
        levels.meaning,
        levels.in_words,
        levels.explained,
        lambda checked: (part.splitlines() for part in levels.explained(checked.leveled)),
    ),
    Family(
        counts.FAMILY,
        "tallied",
        counts.operators,
        counts.meaning,
        counts.in_words,
        counts.explained,
        lambda checked: (part.splitlines() for part in counts.explained(checked.tallied)),
        hears_others=True,
    ),
    Family(
        intervals.FAMILY,
        "aligned",
        intervals.operators,
        intervals.meaning,
        intervals.in_words,
        intervals.explained,
        lambda checked: (part.splitlines() for part in intervals.explained(checked.aligned)),
        hears_others=True,
    ),
    Family(
        folds.FAMILY,
        "folded",
        folds.operators,
        folds.meaning,
        folds.in_words,
        folds.explained,
        lambda checked: (part.splitlines() for part in folds.explained(checked.folded)),
        hears_others=True,
    ),
    Family(
        mutes.FAMILY,
        "muted",
        mutes.operators,
        mutes.meaning,
        mutes.in_words,
        mutes.explained,
        lambda checked: (part.splitlines() for part in mutes.explained(checked.muted)),
        hears_others=True,
    ),
)


def operators(checked: Checked, *, sharded: bool = False) -> list[Operator]:
    """The operators of a definition, those of an earlier stage before those that hear them."""
    return linked(
        operator
        for family in FAMILIES
        for operator in family.compiled(family.of(checked), checked.topics, sharded=sharded)
    )


def linked(operators: Iterable[Operator]) -> list[Operator]:
    """Operators that know by whom they are heard, those of an earlier stage before those that hear them."""
    found = list(operators)
    serving = {name: i for i, one in enumerate(found) for names in one.names for name in names}
    hearing = {family.name for family in FAMILIES if family.hears_others}
    waiting = [i for i, one in enumerate(found) if one.family in hearing]
    while waiting:
        ready = [i for i in waiting if not any(serving.get(_said(t)) in waiting for t in found[i].heard)]
        for i in ready:
            names = map(_said, found[i].heard)
            below = {name: serving[name] for name in names if name in serving}
            for name, at in below.items():
                told = {**found[at].followed, name: found[i].topics[f"@{name}"]}
                hidden = found[at].hidden | ({name} & set(found[i].called.values()))
                found[at] = replace(found[at], followed=told, hidden=hidden)
            lower = [found[at] for at in below.values()]
            found[i] = replace(
                found[i],
                stage=1 + max((one.stage for one in lower), default=0),
                told_time_by=frozenset().union(*(one.clock for one in lower)),
                behind=max((one.behind for one in lower), default=0),
                awaits=frozenset().union(below, *(one.awaits for one in lower)),
            )
        waiting = [i for i in waiting if i not in ready]
    return sorted(found, key=lambda one: one.stage)


def _said(topic: str) -> str:
    """The condition whose events come as readings of a topic."""
    return topic.removeprefix("@")


def on_history(checked: Checked) -> Checked:
    """The definition for history, which is in order: nothing waits, nothing is late."""
    timely = {
        family.field: tuple(replace(one, delivery=TIMELY) for one in family.of(checked))
        for family in FAMILIES
    }
    return replace(checked, **timely)


def conditions(checked: Checked) -> dict[str, Any]:
    """The conditions of a definition, by name."""
    return {one.name: one for family in FAMILIES for one in family.of(checked)}


class Edit(NamedTuple):
    """How conditions of some kinds take over what is known where one of them is defined anew."""

    kinds: tuple[type, ...]
    why_not: Callable[[object, object], str | None]
    """Why one cannot take over what another knows; ``None`` if it can."""
    revised: Callable[[Any, Any, Past], Revised]
    outlook: Callable[[object, object], str]
    """What will become of scopes, in words."""
    outlives: Callable[[object, object], bool]
    """Whether what holds goes on to hold, whatever the readings."""
    operators: Callable[[Any], list[Operator]]
    """That of a condition as it goes on after that."""
    states: Callable[[Any], tuple[Guarded, ...]] = lambda _one: ()
    """The states of which a history tells, by names that are theirs alone."""
    reborn: Callable[[Any, Any, Any], Reborn] | None = None
    """Given the state that one had, how another takes its place that is told who holds; then nothing else is
    to be revised."""
    inherited: Callable[[str, Any, Any, Operator, Any], list[Bit]] | None = None
    """What one leaves to another that begins anew in its place, given its name, the two, and the operator of
    the first with its state; then nothing else is to be revised."""


def _never(_was: Any, now: Any, _past: Past) -> Revised:
    raise AssertionError(f"'{now.name}' is told who holds")


class Reborn(Protocol):
    """A condition that hears others and takes the place of one of its name: it is told who holds of those."""

    def begun(self, revised: Sequence[Event] = ()) -> Any:
        """Its state before that, given what is said of those that are not as they were."""

    def doubted(self, state: Any) -> Any:
        """Its state after that: what does not follow is open."""


def _anew(kind: type, compiled: Compile) -> Edit:
    """How conditions of a kind begin anew, with what one leaves to another open."""

    def alone(conditions: list[Any]) -> list[Operator]:
        return compiled(conditions, conditions[0].listens)

    return Edit(
        (kind,),
        anew.why_not,
        partial(anew.revised, alone),
        anew.outlook,
        anew.outlives,
        lambda one: alone([one]),
        inherited=anew.inherited,
    )


EDITS = (
    Edit(
        (Condition, Guarded),
        revise.why_not,
        revise.revised,
        revise.outlook,
        revise.outlives,
        lambda one: guarded.operators([revise.as_guarded(one)]),
        lambda one: (revise.as_guarded(one),),
    ),
    Edit(
        (Leveled,),
        revise_levels.why_not,
        revise_levels.revised,
        revise_levels.outlook,
        revise_levels.outlives,
        lambda one: levels.operators([revise_levels.revisable(one)]),
        revise_levels.states,
    ),
    Edit(
        (Tallied,),
        revise_counts.why_not,
        _never,
        revise_counts.outlook,
        revise_counts.outlives,
        lambda one: counts.operators([one]),
        reborn=revise_counts.Reborn,
    ),
    Edit(
        (Aligned,),
        revise_intervals.why_not,
        _never,
        revise_intervals.outlook,
        revise_intervals.outlives,
        lambda one: intervals.operators([one]),
        reborn=revise_intervals.Reborn,
    ),
    Edit(
        (Folded,),
        anew.why_not,
        _never,
        revise_folds.outlook,
        revise_folds.outlives,
        lambda one: folds.operators([one]),
        reborn=revise_folds.Reborn,
    ),
    _anew(Component, stages.operators),
    _anew(Correlated, correlations.operators),
    _anew(Related, relations.operators),
    Edit(
        (Muted,),
        revise_mutes.why_not,
        revise_mutes.revised,
        revise_mutes.outlook,
        revise_mutes.outlives,
        lambda one: mutes.operators([one]),
    ),
)


def _edit(name: str, was: Checked, now: Checked) -> tuple[Edit | None, Any, Any]:
    """How a condition takes over what is known of one of its name, if it can; the two."""
    before, after = conditions(was)[name], conditions(now)[name]
    mine = (one for one in EDITS if isinstance(before, one.kinds) and isinstance(after, one.kinds))
    return next(mine, None), before, after


def hindrance(name: str, was: Checked, now: Checked) -> str | None:
    """Why a condition cannot take over what is known of one of its name."""
    edit, before, after = _edit(name, was, now)
    if edit is not None:
        return edit.why_not(before, after)
    return "it becomes a condition of another kind"


def hindrance_in_shards(name: str, was: Checked, now: Checked) -> str | None:
    """The same where scopes are in shards."""
    edit, before, after = _edit(name, was, now)
    if (why := hindrance(name, was, now)) is not None or edit is None or edit.inherited is None:
        return why
    old, new = (
        next((one.stage, one.key) for one in operators(checked, sharded=True) if one.serves((name,)))
        for checked in (was, now)
    )
    return anew.why_not_in_shards(before, after, moves=goes_on_in_place(name, now) and old != new)


def goes_on_in_place(name: str, checked: Checked) -> bool:
    """Whether a condition runs in a machine with those on which it builds."""
    families = (family for family in FAMILIES if family.builds_on_others)
    return any(one.name == name for family in families for one in family.of(checked))


def revised(name: str, was: Checked, now: Checked, past: Past) -> Revised:
    """Let a condition go on under another definition of its name."""
    edit, before, after = _edit(name, was, now)
    revise.require(before, after, lambda *_: hindrance(name, was, now))
    assert edit is not None
    return edit.revised(before, after, past)


def reborn(name: str, was: Checked, now: Checked, state: Any) -> Reborn | None:
    """How a condition takes the place of one of its name that had a state, if it is told who holds."""
    edit, before, after = _edit(name, was, now)
    if edit is None or edit.reborn is None or edit.why_not(before, after) is not None:
        return None
    return edit.reborn(before, after, state)


def inherited(name: str, was: Checked, now: Checked, operator: Operator, state: Any) -> list[Bit] | None:
    """What a condition leaves to one of its name that begins anew, if that does."""
    edit, before, after = _edit(name, was, now)
    if edit is None or edit.inherited is None:
        return None
    return edit.inherited(name, before, after, operator, state)


def states(name: str, was: Checked, now: Checked) -> tuple[Guarded, ...]:
    """The states of a condition that changes of which a history can tell; nothing if it cannot keep what is
    known."""
    edit, _, after = _edit(name, was, now)
    return () if edit is None or hindrance(name, was, now) is not None else edit.states(after)


def is_heard_whole(name: str, checked: Checked) -> bool:
    """Whether a condition that has heard a whole history knows more than its states do one by one."""
    return isinstance(conditions(checked)[name], Leveled)


def has_other_rows(name: str, was: Checked, now: Checked) -> bool:
    """Whether a table has changed with which a condition compares, and it can take that over scope by
    scope."""
    before, after = (_tables(conditions(one)[name]) for one in (was, now))
    return before != after and hindrance(name, was, now) is None


def _tables(condition: Any) -> tuple[Any, ...]:
    """The tables that a condition looks at."""
    some = condition.rungs if isinstance(condition, Leveled) else (condition,)
    return tuple(table for one in some for table in getattr(one, "tables", ()))


def outlives(name: str, was: Checked, now: Checked) -> bool:
    """Whether what holds of a condition goes on to hold under another definition, whatever the readings."""
    edit, before, after = _edit(name, was, now)
    return edit is not None and edit.why_not(before, after) is None and edit.outlives(before, after)


def going_on(name: str, was: Checked, now: Checked) -> Operator:
    """The operator of a condition that takes over what is known of another."""
    edit, _, after = _edit(name, was, now)
    assert edit is not None
    (mine,) = edit.operators(after)
    rest = operators(without(now, (name,)), sharded=True)
    return next(one for one in linked([*rest, mine]) if one.machine is mine.machine)


def outlook(was: Checked, now: Checked) -> list[tuple[str, str]]:
    """What becomes of each condition when a running definition is exchanged for another, in words."""
    before, after = conditions(was), conditions(now)
    meant, means = meanings(was), meanings(now)
    found = [(name, "ends") for name in before if name not in after]
    for name, one in after.items():
        if name not in before:
            found.append((name, "begins"))
        elif means[name] == meant[name] and not has_other_rows(name, was, now):
            other = _tables(before[name]) != _tables(one)
            found.append((name, "goes on" + (" and compares with the new rows" if other else " as it is")))
        elif (why := hindrance(name, was, now)) is not None:
            found.append((name, f"is as a whole history says, where one is heard again, else refused: {why}"))
        else:
            edit, *pair = _edit(name, was, now)
            assert edit is not None
            found.append((name, edit.outlook(*pair)))
    return found


def without(checked: Checked, names: Collection[str]) -> Checked:
    """The definition without some of its conditions."""
    left = {
        family.field: tuple(one for one in family.of(checked) if one.name not in names) for family in FAMILIES
    }
    return replace(checked, **left)


def builds_on(checked: Checked, name: str) -> list[str]:
    """The conditions that build on another."""
    above = [family for family in FAMILIES if family.builds_on_others or family.hears_others]
    found = [one for family in above for one in family.of(checked)]
    return [one.name for one in found if any(topic.name == name for topic in one.listens)]


def meanings(checked: Checked) -> dict[str, str]:
    """What each subscription means, as a digest."""
    return {one.name: family.meaning(one) for family in FAMILIES for one in family.of(checked)}


def in_words(checked: Checked) -> dict[str, dict[str, str]]:
    """What each subscription says, in words, to tell what has changed."""
    return {one.name: family.words(one) for family in FAMILIES for one in family.of(checked)}


def listened(checked: Checked) -> list[Topic]:
    """The topics of which every reading is looked at, by a machine that SQL cannot stand in for."""
    found = [family.of(checked) for family in FAMILIES if family.in_sql is None and not family.hears_others]
    heard = {topic for conditions in found for one in conditions for topic in one.listens}
    return [topic for topic in checked.topics if topic in heard]


def mattering(checked: Checked, topic: Topic, named: Naming = quoted) -> str:
    """What SQL says of the events of a topic that matter, if nobody looks at every one."""
    return sql.some_of(
        test
        for family in FAMILIES
        if family.in_sql is not None
        for test in family.in_sql(family.of(checked), topic, named)
    )
