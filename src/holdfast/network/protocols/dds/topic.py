"""Topics of DDS: a fixed set that is defined at development time. [D4, D5]"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....errors import UsageError, did_you_mean
from ....model.event import Value
from ....model.topic import Attribute, Kind
from .level import BEST_EFFORT, Level

TopicId = int

_FITS: dict[Kind, tuple[type, ...]] = {"float": (float, int), "int": (int,), "text": (str,), "bool": (bool,)}


@dataclass(frozen=True, slots=True)
class SampleType:
    """The type of a topic's samples: named fields, of which a subset can form the key. [D5]"""

    name: str
    fields: tuple[Attribute, ...]
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [each.name for each in self.fields]
        for name in self.key:
            if name not in names:
                raise UsageError(f"structure {self.name}: its key '{name}' is no field; it has {names}")


READING = SampleType("Reading", (Attribute("value", "float"),))
"""The sample type of most sensors: one number."""


@dataclass(frozen=True, slots=True)
class DdsTopic:
    """A kind of sample; writers and readers are bound to exactly one topic.  [D7]"""

    id: TopicId
    name: str
    structure: SampleType = READING
    parent: str | None = None
    """The name of the parent topic; ``None`` without one. A subscription to the parent includes this topic's
    samples.
    """
    level: Level = BEST_EFFORT
    """The reliability level of subscriptions without a level of their own. [D8]"""
    reading: str = "value"
    """The field whose value is compared with the threshold of partial reliability. [D26]"""
    transition_conditions: tuple[str, ...] = ()
    """The conditions whose starts and ends must arrive where the level is ``transition``."""

    def instance(self, values: Mapping[str, Value]) -> tuple[Value, ...]:
        """Return the instance of the topic to which a sample belongs: the values of its key.

        >>> shape = SampleType("Shape", (Attribute("color", "text"), Attribute("x", "int")), key=("color",))
        >>> DdsTopic(1, "Shapes", shape).instance({"color": "RED", "x": 3})
        ('RED',)
        """
        return tuple(values[name] for name in self.structure.key)

    def complete(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of all fields, with ``None`` for missing ones. Raise a `UsageError` for invalid
        values.
        """
        for name, value in values.items():
            kind = self.kind(name)
            if value is not None and not _is_a(value, kind):
                raise UsageError(f"topic '{self.name}': {name} is {value!r}; it must be of kind {kind}")
        for name in self.structure.key:
            if values.get(name) is None:
                raise UsageError(f"topic '{self.name}': a sample needs its key '{name}'")
        return {each.name: values.get(each.name) for each in self.structure.fields}

    def kind(self, name: str) -> Kind:
        """Return the kind of a field; raise a `UsageError` for an unknown field."""
        known = {each.name: each.kind for each in self.structure.fields}
        if name not in known:
            hint = did_you_mean(name, known) or f"It has {', '.join(known)}."
            raise UsageError(f"topic '{self.name}' has no field '{name}'. {hint}")
        return known[name]


def _is_a(value: Any, kind: Kind) -> bool:
    return isinstance(value, _FITS[kind]) and (kind == "bool" or not isinstance(value, bool))


@dataclass(frozen=True)
class TopicSet:
    """All topics of a deployment, by number and by name."""

    topics: tuple[DdsTopic, ...]
    by_id: Mapping[TopicId, DdsTopic] = field(init=False, repr=False, compare=False)
    by_name: Mapping[str, DdsTopic] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {topic.id: topic for topic in self.topics})
        object.__setattr__(self, "by_name", {topic.name: topic for topic in self.topics})
        if not self.topics:
            raise UsageError("a deployment needs a topic")
        for which in (self.by_id, self.by_name):
            if len(which) < len(self.topics):
                raise UsageError("two topics have the same number or the same name; give each its own")
        for topic in self.topics:
            if topic.id < 0:
                raise UsageError(f"topic '{topic.name}' has the number {topic.id}; numbers begin at 0")
            self._ancestors(topic)

    def __iter__(self) -> Iterator[DdsTopic]:
        return iter(self.topics)

    def by_its_name(self, name: str) -> DdsTopic:
        """Return the topic with a name; raise a `UsageError` for an unknown name."""
        if name not in self.by_name:
            hint = did_you_mean(name, self.by_name) or f"There is {', '.join(self.by_name)}."
            raise UsageError(f"no topic named '{name}'. {hint}")
        return self.by_name[name]

    def descendants(self, name: str) -> list[DdsTopic]:
        """Return a topic and all topics that have it as an ancestor."""
        asked = self.by_its_name(name)
        return [topic for topic in self.topics if asked.name in self._ancestors(topic)]

    def of_type(self, structure: str) -> list[DdsTopic]:
        """Return the topics whose samples have the type named ``structure``; raise a `UsageError` if there
        are none.
        """
        found = [topic for topic in self.topics if topic.structure.name == structure]
        if not found:
            known = sorted({topic.structure.name for topic in self.topics})
            hint = did_you_mean(structure, known) or f"There is {', '.join(known)}."
            raise UsageError(f"no topic has samples of type '{structure}'. {hint}")
        return found

    def _ancestors(self, topic: DdsTopic) -> list[str]:
        """Return the names of the topic, its parent, and all further ancestors."""
        found = [topic.name]
        while (parent := self.by_name[found[-1]].parent) is not None:
            if parent not in self.by_name:
                raise UsageError(f"topic '{found[-1]}' has the parent '{parent}', which is no topic")
            if parent in found:
                raise UsageError(f"topic '{topic.name}' is among its own ancestors: {' → '.join(found)}")
            found.append(parent)
        return found
