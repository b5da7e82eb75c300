"""The stage and key of each component in a distributed runtime, or the reason why it has no key.

A component runs in the stage of its upstreams if their events preserve the key; otherwise it runs in a later
stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...lang.ops import Expression, MemberAttribute
from ...model.batch import AXES
from ...model.instant import Duration
from .condition import ComponentCondition

PLACE = ("place", *AXES)
"""The columns that determine a location."""


class ComponentSite(NamedTuple):
    """The stage and key of a component. `reason` explains an empty key; otherwise it is `None`."""

    stage: int
    key: tuple[str, ...]
    reason: str | None


def sites(components: Iterable[ComponentCondition]) -> dict[str, ComponentSite]:
    """Return the site of each component, by name."""
    found: dict[str, ComponentSite] = {}
    known: dict[str, ComponentCondition] = {}
    for component in sorted(components, key=lambda lower: lower.level):
        below = [known[topic.name] for topic in component.listens if topic.name in known]
        reason = _obstacle(component, below)
        apart = () if reason else component.keys
        sites_below = [(found[lower.name], keys_preserved_by(lower)) for lower in below]
        stages = [site.stage + (site.key != apart or not keys >= set(apart)) for site, keys in sites_below]
        found[component.name] = ComponentSite(max(stages, default=0), apart, reason)
        known[component.name] = component
    return found


def _obstacle(component: ComponentCondition, below: Iterable[ComponentCondition]) -> str | None:
    """Return the reason why a component cannot be split into shards, or `None`."""
    if isinstance(component.here, str):
        return f"every source of {component.here} carries it, wherever it goes"
    if not component.keys:
        return "nothing is kept apart"
    for name, query in component.inputs:
        if not query.separate:
            return f"{name or 'its query'} looks at everything, whatever its {' and '.join(component.keys)}"
    for lower in below:
        lost = [name for name in component.keys if name not in keys_preserved_by(lower)]
        if lost and not lower.momentary:
            return f"the start and the end of {lower.name} may differ in {' and '.join(lost)}"
    return None


def keys_preserved_by(component: ComponentCondition) -> set[str]:
    """Return the keys of a component that its events preserve."""
    if not all(query.separate for _, query in component.inputs):
        return set()  # the last contribution may come from any key
    return {name for name in component.keys if _is_preserved(component, name)}


def _is_preserved(component: ComponentCondition, name: str) -> bool:
    """Whether events of a component have the same value of the key `name` as the knowledge that they are made
    from."""
    if name in ("time", "topic", "status"):
        return False
    if name == "place":  # a point that is set has none
        return component.here is None and not _computations(component, "location")
    if name in ("location", *AXES):
        return component.here is None and _is_repeated(component, "location")
    kinds = {t.by_name[name].kind for t in (component.topic, *component.listens) if name in t.by_name}
    return name in component.topic.by_name and len(kinds) == 1 and _is_repeated(component, name)


def _is_repeated(component: ComponentCondition, name: str) -> bool:
    """Whether a component computes `name`, if at all, only as a copy of the same member."""
    return all(isinstance(op, MemberAttribute) and op.name == name for op in _computations(component, name))


def _computations(component: ComponentCondition, name: str) -> list[Expression]:
    """Return the expressions that compute `name`."""
    return [op for rule in (component.enter, component.exit) for of, op in rule.sets if of == name]


def delays(components: Iterable[ComponentCondition]) -> dict[str, Duration]:
    """Return for each component the duration by which it evaluates behind the watermark, in microseconds.

    The duration is not less than that of any upstream. [F76]
    """
    found: dict[str, Duration] = {}
    for component in sorted(components, key=lambda component: component.level):
        waits = (found.get(topic.name, 0) for topic in component.listens)
        found[component.name] = max(component.delivery.wait or 0, *waits)
    return found
