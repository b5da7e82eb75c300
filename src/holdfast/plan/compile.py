"""Compilation of a checked definition to operators, with their links to each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..engine.operator import Operator
from ..kinds.kind import Kind
from ..kinds.registry import KINDS, by_kind, kind
from ..lang.condition import Checked, Condition
from ..lang.expressions.sql import Naming, quote_name, some_of
from ..model.qos import TIMELY
from ..model.topic import Topic


def operators(checked: Checked, *, sharded: bool = False) -> list[Operator]:
    """Return the linked operators of a definition, in topological order.

    With ``sharded``, operators are grouped such that shards can run them independently.
    """
    return link(
        operator
        for kind, conditions in by_kind(checked.conditions)
        for operator in kind.compile(conditions, checked.topics, sharded=sharded)
    )


def link(operators: Iterable[Operator]) -> list[Operator]:
    """Return operators in topological order, with their links: stage, upstreams, clock and delay."""
    found = list(operators)
    serving = {name: i for i, operator in enumerate(found) for names in operator.names for name in names}
    waiting = [i for i, operator in enumerate(found) if KINDS[operator.kind].builds_on_conditions]
    while waiting:
        ready = [
            i
            for i in waiting
            if not any(serving.get(_condition_of(t)) in waiting for t in found[i].upstream_topics)
        ]
        for i in ready:
            names = map(_condition_of, found[i].upstream_topics)
            below = {name: serving[name] for name in names if name in serving}
            for name, at in below.items():
                links = found[at].links
                derived = {**links.derived_topics, name: found[i].topics[f"@{name}"]}
                hidden = links.hidden | ({name} & set(found[i].presentation.aliases.values()))
                found[at] = replace(found[at], links=replace(links, derived_topics=derived, hidden=hidden))
            lower = [found[at] for at in below.values()]
            found[i] = replace(
                found[i],
                delay=max((upstream.delay for upstream in lower), default=0),
                links=replace(
                    found[i].links,
                    stage=1 + max((upstream.links.stage for upstream in lower), default=0),
                    clock_topics=frozenset().union(*(upstream.clock for upstream in lower)),
                    upstreams=frozenset().union(below, *(upstream.links.upstreams for upstream in lower)),
                ),
            )
        waiting = [i for i in waiting if i not in ready]
    return sorted(found, key=lambda one: one.links.stage)


def _condition_of(topic: str) -> str:
    """Return the name of the condition whose derived events form a topic."""
    return topic.removeprefix("@")


def on_history(checked: Checked) -> Checked:
    """Return the definition for a replay.

    All its conditions are timely, because the events of a replay are in order.
    """
    timely = (replace(condition, delivery=TIMELY) for condition in checked.conditions)
    return replace(checked, conditions=tuple(timely))


def conditions(checked: Checked) -> dict[str, Any]:
    """Return the conditions of a definition by name."""
    return checked.by_name


def without(checked: Checked, names: Collection[str]) -> Checked:
    """Return the definition without the named conditions."""
    left = tuple(condition for condition in checked.conditions if condition.name not in names)
    return replace(checked, conditions=left)


def only(checked: Checked, names: Collection[str]) -> Checked:
    """Return the definition with the named conditions only."""
    return without(checked, [name for name in checked.by_name if name not in names])


def with_upstreams(checked: Checked, names: Collection[str]) -> Checked:
    """Return the definition with the named conditions and those that they build on."""
    upstreams, found = _upstreams(checked), set(names)
    while more := {name for condition in found & upstreams.keys() for name in upstreams[condition]} - found:
        found |= more
    return only(checked, found)


def with_downstream(checked: Checked, names: Collection[str]) -> set[str]:
    """Return the names of conditions and of all conditions that build on them, directly or indirectly."""
    upstreams, found = _upstreams(checked), set(names)
    while more := {name for name, below in upstreams.items() if name not in found and below & found}:
        found |= more
    return found


def _upstreams(checked: Checked) -> dict[str, set[str]]:
    """Return the conditions that each condition builds on directly."""
    known = checked.by_name
    return {
        condition.name: {topic.name for topic in condition.listens} & known.keys()
        for condition in checked.conditions
        if may_build(condition)
    }


def builds_on(checked: Checked, name: str) -> list[str]:
    """Return the conditions that build directly on the named one."""
    return [
        condition.name
        for condition in checked.conditions
        if may_build(condition) and any(topic.name == name for topic in condition.listens)
    ]


def may_build(condition: Condition) -> bool:
    """Whether a condition may build on others."""
    kind_ = kind(condition)
    return kind_.shares_machines or kind_.builds_on_conditions


def meanings(checked: Checked) -> dict[str, str]:
    """Return the digest of each condition's meaning. Equal digests mean equal behaviour."""
    return {condition.name: kind(condition).meaning(condition) for condition in checked.conditions}


def in_words(checked: Checked) -> dict[str, dict[str, str]]:
    """Return the description of each condition by part. Revisions compare them."""
    return {condition.name: kind(condition).describe(condition) for condition in checked.conditions}


def read_whole(checked: Checked) -> list[Topic]:
    """Return the topics of which SQL cannot select the relevant events."""
    return [
        topic
        for topic in checked.topics
        if any(tests is None for _, tests in _tests(checked, topic, quote_name))
    ]


def relevant_in_sql(checked: Checked, topic: Topic, named: Naming = quote_name) -> str:
    """Return an SQL condition that selects the relevant events of a topic.

    The topic must not be in `read_whole`.
    """
    return some_of(test for _, tests in _tests(checked, topic, named) for test in tests or ())


def _tests(checked: Checked, topic: Topic, named: Naming) -> Iterator[tuple[Kind, list[str] | None]]:
    """Yield each kind with conditions over a topic of readings, with its SQL tests.

    The tests are ``None`` if the kind has no SQL form.
    """
    for kind_, conditions in by_kind(checked.conditions):
        own_conditions = [condition for condition in conditions if topic in condition.listens]
        if own_conditions and not kind_.builds_on_conditions:
            yield kind_, None if kind_.sql is None else kind_.sql(own_conditions, topic, named)
