"""Membership in a DDS domain (Eclipse Cyclone), and the types of its topics.

A topic of the definition has the same name in DDS. Its samples have the attributes, all optional; each
``source`` is an instance. Notifications are samples of the topic ``HoldfastTold`` with an instance for each
subscription and scope. A reader that joins late receives the last sample of each instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from ..errors import UsageError
from ..model.event import UNNUMBERED, Event, Value
from ..model.instant import Instant
from ..model.topic import Kind, Topic
from .sinks.message import EVERYTHING
from .store import NotificationRow

try:
    from cyclonedds.core import Policy, Qos
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.idl import make_idl_struct, types
    from cyclonedds.util import duration
except ModuleNotFoundError as missing:
    raise UsageError("[[dds]] needs Eclipse Cyclone DDS: pip install 'holdfast[dds]'") from missing

NOTIFICATIONS = "HoldfastTold"
PATIENCE = duration(seconds=10)
ALL = Qos(Policy.Reliability.Reliable(PATIENCE), Policy.History.KeepAll)
"""Reliable delivery of all samples."""
LAST_SAMPLES = Qos(
    Policy.Reliability.Reliable(PATIENCE),
    Policy.History.KeepAll,
    Policy.Durability.TransientLocal,
    Policy.DurabilityService(0, Policy.History.KeepLast(1), -1, -1, -1),
)
"""Reliable delivery; a reader that joins late receives the last sample of each instance."""

_KINDS: Mapping[Kind, Any] = {"float": types.float64, "int": types.int64, "text": str, "bool": bool}
_LOCAL = """<CycloneDDS><Domain id="any">
<General><AllowMulticast>{multicast}</AllowMulticast>
<Interfaces><NetworkInterface name="{interface}" multicast="{multicast}"/></Interfaces></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex>{peers}</Discovery></Domain></CycloneDDS>"""
_domains: dict[int, Domain] = {}


class Membership(NamedTuple):
    """A DDS domain, and the network interface by which the service reaches it."""

    domain: int
    interface: str = "lo"

    @property
    def name(self) -> str:
        return f"dds://{self.interface}/{self.domain}"

    def participant(self) -> DomainParticipant:
        """Return a participant in the domain. A process creates one domain object for each domain number."""
        if self.domain not in _domains:
            alone = self.interface == "lo"
            peers = '<Peers><Peer address="localhost"/></Peers>' if alone else ""
            settings = _LOCAL.format(interface=self.interface, multicast=str(not alone).lower(), peers=peers)
            _domains[self.domain] = Domain(self.domain, settings)
        return DomainParticipant(self.domain)


def sample_of(topic: Topic) -> Any:
    """Return the type of a topic's samples.

    The time 0 stands for the time of arrival. A negative sequence stands for a missing one.
    """
    fields = {"source": str, "time": types.int64, "sequence": types.int64, "place": Optional[str]}  # noqa: UP045
    values = {row.name: Optional[_KINDS[row.kind]] for row in topic.attributes}  # noqa: UP045
    return make_idl_struct(
        topic.name, f"holdfast.{topic.name}", fields | values, field_annotations={"source": {"key": True}}
    )


def notification_type() -> Any:
    """Return the type of notification samples. Its field ``line`` has the whole notification as JSON."""
    fields = {
        "subscription": str, "scope": str, "id": str, "status": str, "time": types.int64, "line": str,
    }  # fmt: skip
    keys = {name: {"key": True} for name in ("subscription", "scope")}
    return make_idl_struct("Told", "holdfast.Told", fields, field_annotations=keys)


def event_of(topic: Topic, sample: Any, now: Instant) -> Event:
    """Return a sample as an event of its topic."""
    known: dict[str, Value] = {row.name: getattr(sample, row.name) for row in topic.attributes}
    sequence = UNNUMBERED if sample.sequence < 0 else sample.sequence
    return Event(topic.name, sample.time or now, sample.source, known, sequence, None, sample.place)


def notification_sample(kind: Any, row: NotificationRow) -> Any:
    """Return a notification as a sample of type ``kind``."""
    scope = EVERYTHING if row.scope is None else row.scope
    return kind(row.subscription, scope, row.id, row.status, row.time, row.line)
