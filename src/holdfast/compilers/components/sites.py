"""Where components run in a distributed runtime: at which stage, by which key, or why in one shard.

A component that builds on another runs with it where the events of the other keep the key; else it
waits for a later stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...lang.condition import Component
from ...lang.ops import Expression, Member
from ...model.batch import AXES
from ...model.instant import Duration

PLACE = ("place", *AXES)


class Site(NamedTuple):
    """Where a component runs: at which stage, by which key; and why in one shard, if it has none."""

    stage: int
    key: tuple[str, ...]
    reason: str | None


def sites(components: Iterable[Component]) -> dict[str, Site]:
    """Where each component runs, by name."""
    found: dict[str, Site] = {}
    known: dict[str, Component] = {}
    for component in sorted(components, key=lambda one: one.level):
        below = [known[topic.name] for topic in component.listens if topic.name in known]
        reason = _obstacle(component, below)
        apart = () if reason else component.keys
        stages = (found[one.name].stage + (not _is_fusible(one, found[one.name].key, apart)) for one in below)
        found[component.name] = Site(max(stages, default=0), apart, reason)
        known[component.name] = component
    return found


def _obstacle(component: Component, below: Iterable[Component]) -> str | None:
    """Why a component cannot be cut into shards."""
    if isinstance(component.here, str):
        return f"every source of {component.here} carries it, wherever it goes"
    if not component.keys:
        return "nothing is kept apart"
    for name, query in component.inputs:
        if not query.separate:
            return f"{name or 'its query'} looks at everything, whatever its {' and '.join(component.keys)}"
    for one in below:
        lost = [name for name in component.keys if name not in kept_apart(one)]
        if lost and not one.momentary:
            return f"the start and the end of {one.name} may differ in {' and '.join(lost)}"
    return None


def _is_fusible(below: Component, its_key: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether what a component says is always of the shard in which it is said."""
    return its_key == key and set(key) <= kept_apart(below)


def kept_apart(component: Component) -> set[str]:
    """Of what a component keeps apart, what its events still say."""
    if not all(query.separate for _, query in component.inputs):
        return set()  # what contributed last may be anybody's
    return {name for name in component.keys if _is_said(component, name)}


def _is_said(component: Component, name: str) -> bool:
    if name in ("time", "topic", "status"):
        return False
    if name == "place":  # a point that is set has none
        return component.here is None and not _computed(component, "location")
    if name in ("location", *AXES):
        return component.here is None and _is_repeated(component, "location")
    kinds = {t.by_name[name].kind for t in (component.topic, *component.listens) if name in t.by_name}
    return name in component.topic.by_name and len(kinds) == 1 and _is_repeated(component, name)


def _is_repeated(component: Component, name: str) -> bool:
    """Whether something is computed, if at all, as what it is in a query or was in the last event."""
    return all(isinstance(op, Member) and op.name == name for op in _computed(component, name))


def _computed(component: Component, name: str) -> list[Expression]:
    return [op for rule in (component.enter, component.exit) for of, op in rule.sets if of == name]


def waiting(components: Iterable[Component]) -> dict[str, Duration]:
    """How long each component waits for events: no shorter than those that it builds on.  [F76]"""
    found: dict[str, Duration] = {}
    for one in sorted(components, key=lambda one: one.level):
        found[one.name] = max(one.delivery.wait or 0, *(found.get(t.name, 0) for t in one.listens))
    return found
