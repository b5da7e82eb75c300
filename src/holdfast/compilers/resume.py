"""What a machine whose state was kept still serves when the definition may have changed.

Subscriptions may come and go: those that stay go on where they were, new ones start afresh on
machines of their own.  One that has the same name but another meaning is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

import msgspec

from ..errors import UsageError
from ..lang.condition import Condition
from ..lang.rewrite import names as names_in
from ..model.space import Forest
from .machine import Group, groups


class Kept(msgspec.Struct, frozen=True):
    """The conditions of a machine when its state was kept: what each meant, and whom it served."""

    fingerprints: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Resumed:
    """A machine that goes on: which of the kept ones it was, and which conditions are left of it."""

    was: int
    group: Group
    conditions: tuple[Condition, ...]
    picked: tuple[int, ...]
    """Condition ``i`` had the number ``picked[i]``."""


def fingerprint(condition: Condition) -> str:
    """Equal for conditions that mean the same, whatever their names."""
    used = [*names_in(condition.enter), *names_in(condition.exit), *chain.from_iterable(condition.keys)]
    meaning = (
        condition.topic.name,
        [condition.topic.by_name[name] for name in used],
        condition.enter,
        condition.exit,
        condition.keys,
        _within(condition.forest),
        condition.delivery,
    )
    return blake2b(repr(meaning).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _within(forest: Forest | None) -> Forest | None:
    """The forest without names of places that lie in none of its regions."""
    if forest is None:
        return None
    return replace(
        forest,
        places=tuple((name, at) for name, at in forest.places if at >= 0),
        sources=tuple((name, at) for name, at in forest.sources if at >= 0),
    )


def kept(group: Group, conditions: Iterable[Condition]) -> Kept:
    """What must be remembered beside the state of a group; ``conditions[i]`` is its condition ``i``."""
    return Kept(tuple(map(fingerprint, conditions)), group.conditions)


def started(conditions: Iterable[Condition]) -> Iterator[tuple[Group, tuple[Condition, ...]]]:
    """Machines for conditions that begin now, with the meaning of each of their conditions."""
    by_name = {condition.name: condition for condition in conditions}
    for group in groups(by_name.values()):
        yield group, tuple(by_name[names[0]] for names in group.conditions)


def resumed(parts: Sequence[Kept], conditions: Iterable[Condition]) -> tuple[list[Resumed], list[Condition]]:
    """The kept machines that still serve somebody, and the conditions that none of them knows."""
    missing = {condition.name: condition for condition in conditions}
    found = []
    for was, part in enumerate(parts):
        picked, staying, names = [], [], []
        for i, print_of in enumerate(part.fingerprints):
            known = [missing.pop(name) for name in part.names[i] if name in missing]
            for condition in known:
                if fingerprint(condition) != print_of:
                    raise UsageError(
                        f"'{condition.name}' means something else than when its state was kept. "
                        "Give the new condition a name of its own, or start without the old state."
                    )
            if known:
                picked.append(i)
                staying.append(known[0])
                names.append(tuple(condition.name for condition in known))
        if staying:
            (group,) = groups(staying)
            group = replace(group, conditions=tuple(names))
            found.append(Resumed(was, group, tuple(staying), tuple(picked)))
    return found, list(missing.values())
