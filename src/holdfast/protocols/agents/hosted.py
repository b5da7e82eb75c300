"""An agent at work: who it is, what it makes of readings, and what its reports look like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...model.protocol import Peer
from ...model.relation import Member
from ..cbps.client import Client, ClientState, Heard
from ..cbps.content import Content
from ..cbps.message import Strategy
from .library import RELATIONSHIP, Made, Part, address, name_of
from .placing import Place
from .talk import Reading, Report

AXES = ("x", "y", "z")


@dataclass(slots=True)
class Hosted:
    """An agent, and the client through which it speaks; ``code`` is its text, if that is shipped."""

    place: Place
    peer: Peer
    strategy: Strategy
    part: Part
    made: Made
    client: Client
    code: str = ""
    state: ClientState = field(init=False)
    partners: dict[str, str] = field(init=False)
    """The other agents that it talks to: by address, the names that it knows them by."""
    addresses: dict[str, str] = field(init=False)
    reached: dict[str, str] = field(default_factory=dict)
    """Those that can be reached, and the name of each as a maker of bundles."""
    kept: list[Heard] = field(default_factory=list)
    """What others said before they could be answered."""

    def __post_init__(self) -> None:
        self.state = self.client.initial()
        before = len(name_of(self.part.relationship, self.part.tie, ""))
        self.partners = {address(self.place[0], name): name[before:] for name, _ in self.part.partners}
        self.addresses = {name: at for at, name in self.partners.items()}

    @property
    def worker(self) -> str:
        """Where its code runs: together with that of other agents of its bundle, and nobody else's."""
        key, i, _ = self.place
        return f"{key.origin} {key.sequence} {i}"


def reading_in(content: Content, beside: Member, accuracy: str | None) -> Reading | None:
    """What an agent makes of a reading, if it is one of its publisher's."""
    if (content.get("topic"), content.get("source")) != (beside.topic, beside.source):
        return None
    time, sequence = content.get("time"), content.get("sequence", -1)
    at = [content.get(name) for name in (AXES if beside.attribute is None else (beside.attribute,))]
    known = [float(value) for value in at if isinstance(value, int | float) and value == value]
    error = 0.0 if accuracy is None else content.get(accuracy)
    if not known or not isinstance(time, int) or not isinstance(sequence, int):
        return None
    if not isinstance(error, int | float) or not error >= 0:
        return None
    return Reading(time, sequence, tuple(known), float(error))


def told(part: Part, report: Report) -> dict[str, Any]:
    """A report as a notification; the same report has the same content, whoever says it."""
    content: dict[str, Any] = {RELATIONSHIP: part.relationship, "status": report.status, "source": report.by}
    scope = part.tie.scope if report.also is None else report.also
    if scope is not None:
        content["scope"] = scope
    if report.reading is not None:
        content |= {"time": report.reading.time, "sequence": report.reading.sequence}
    return content | ({"value": report.value} if report.value == report.value else {})
