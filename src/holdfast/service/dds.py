"""The domain of OMG's DDS that a service takes part in (Eclipse Cyclone), and what its topics hold.

A topic of the definition is one of the same name there: its samples have the attributes, missing ones
left out, and are instances by their ``source``.  What is told is the topic ``HoldfastTold``, an instance
for each subscription and scope; who joins late hears the last word of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from ..errors import UsageError
from ..model.event import UNNUMBERED, Event, Value
from ..model.instant import Instant
from ..model.topic import Kind, Topic
from .sinks.message import EVERYTHING
from .store import Told

try:
    from cyclonedds.core import Policy, Qos
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.idl import make_idl_struct, types
    from cyclonedds.util import duration
except ModuleNotFoundError as missing:
    raise UsageError("[[dds]] needs Eclipse Cyclone DDS: pip install 'holdfast[dds]'") from missing

TOLD = "HoldfastTold"
PATIENCE = duration(seconds=10)
ALL = Qos(Policy.Reliability.Reliable(PATIENCE), Policy.History.KeepAll)
"""Nothing is left out on the way."""
LAST_WORDS = Qos(
    Policy.Reliability.Reliable(PATIENCE),
    Policy.History.KeepAll,
    Policy.Durability.TransientLocal,
    Policy.DurabilityService(0, Policy.History.KeepLast(1), -1, -1, -1),
)
"""The same; and who comes late hears the last sample of each instance."""

_KINDS: Mapping[Kind, Any] = {"float": types.float64, "int": types.int64, "text": str, "bool": bool}
_LOCAL = """<CycloneDDS><Domain id="any">
<General><AllowMulticast>{multicast}</AllowMulticast>
<Interfaces><NetworkInterface name="{interface}" multicast="{multicast}"/></Interfaces></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex>{peers}</Discovery></Domain></CycloneDDS>"""
_domains: dict[int, Domain] = {}


class Membership(NamedTuple):
    """Which domain, over which network interface."""

    domain: int
    interface: str = "lo"

    @property
    def name(self) -> str:
        return f"dds://{self.interface}/{self.domain}"

    def participant(self) -> DomainParticipant:
        """Take part; a process is in each domain once."""
        if self.domain not in _domains:
            alone = self.interface == "lo"
            peers = '<Peers><Peer address="localhost"/></Peers>' if alone else ""
            settings = _LOCAL.format(interface=self.interface, multicast=str(not alone).lower(), peers=peers)
            _domains[self.domain] = Domain(self.domain, settings)
        return DomainParticipant(self.domain)


def sample_of(topic: Topic) -> Any:
    """The type of a topic's samples; a time of 0 is that of arrival, a sequence below 0 is none."""
    fields = {"source": str, "time": types.int64, "sequence": types.int64, "place": Optional[str]}  # noqa: UP045
    values = {one.name: Optional[_KINDS[one.kind]] for one in topic.attributes}  # noqa: UP045
    return make_idl_struct(
        topic.name, f"holdfast.{topic.name}", fields | values, field_annotations={"source": {"key": True}}
    )


def told_type() -> Any:
    """The type of what is told; ``line`` is the whole notification as JSON."""
    fields = {
        "subscription": str, "scope": str, "id": str, "status": str, "time": types.int64, "line": str,
    }  # fmt: skip
    keys = {name: {"key": True} for name in ("subscription", "scope")}
    return make_idl_struct("Told", "holdfast.Told", fields, field_annotations=keys)


def event_of(topic: Topic, sample: Any, now: Instant) -> Event:
    """The event that a sample is."""
    known: dict[str, Value] = {one.name: getattr(sample, one.name) for one in topic.attributes}
    sequence = UNNUMBERED if sample.sequence < 0 else sample.sequence
    return Event(topic.name, sample.time or now, sample.source, known, sequence, None, sample.place)


def told_sample(kind: Any, one: Told) -> Any:
    scope = EVERYTHING if one.scope is None else one.scope
    return kind(one.subscription, scope, one.id, one.status, one.time, one.line)
