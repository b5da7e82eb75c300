"""An agent at a broker: its identity, its readings, and the format of its reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ....model.event import UNNUMBERED, Event
from ....model.instant import EARLIEST, LATEST
from ....model.protocol import Peer
from ....model.relation import Participant
from ..cbps.client import CbpsClient, CbpsClientState, ReceivedNotification
from ..cbps.content import Content
from ..cbps.event import location_of, whole_number
from ..cbps.message import AgentStrategy, BundleKey
from .library import RELATIONSHIP, AgentParameters, BuiltAgent, address, name_of
from .place_index import AgentPlace
from .talk import AgentReading, AgentReport, reading_of


@dataclass(slots=True)
class HostedAgent:
    """An agent and the client through which it communicates. ``code`` is its text if it is shipped.

    Where several brokers have publishers of one source, each runs an *instance* of the source's agent. One of
    them *leads*: it alone takes part in the strategy. The others send it the readings that they receive.
    """

    place: AgentPlace
    peer: Peer
    strategy: AgentStrategy
    parameters: AgentParameters
    built: BuiltAgent
    client: CbpsClient
    code: str = ""
    in_doubt: bool = False
    """Whether earlier agents existed whose reports are unknown."""
    state: CbpsClientState = field(init=False)
    partners: dict[str, str] = field(init=False)
    """The other agents with which it communicates: the name of each partner by its address."""
    addresses: dict[str, str] = field(init=False)
    ways_to_partners: dict[str, BundleKey] = field(default_factory=dict)
    """The partners that can be reached: the way to each by its address."""
    successors: dict[str, str] = field(default_factory=dict)
    """For each partner's address, the instance that will continue for the previous instance."""
    ways_before: dict[str, frozenset[BundleKey]] = field(default_factory=dict)
    """For each partner's address, the ways of its instances at the beginning of the wait for the
    successor.
    """
    active_partners: set[str] = field(default_factory=set)
    """The addresses of partners that have sent a message since they became reachable."""
    pending: list[ReceivedNotification] = field(default_factory=list)
    """Messages of other agents that cannot be answered yet."""
    is_leading: bool = False
    succeeds_lost: bool = False
    """Whether this instance leads because the former leader was lost with its knowledge."""
    is_shared: bool = False
    """Whether other brokers may run an instance, so that the instances must know each other."""
    siblings: set[str] = field(default_factory=set)
    """The names of the other instances that can be reached."""
    claims: Counter[str] = field(default_factory=Counter)
    """The claims of all instances, including this one, by name.

    Claims only grow, and the instance with the greatest claim leads. Without a reading there is no claim (0).
    """
    latest: AgentReading | None = None
    """The latest reading of its publisher that this instance knows."""
    relay_run: tuple[str, int] = ("", 0)
    """The instance that sent the last readings, and the number of readings that it sent in a row."""

    def __post_init__(self) -> None:
        self.state = self.client.initial()
        before = len(name_of(self.parameters.relationship, self.parameters.tie, ""))
        self.partners = {address(self.place[0], name): name[before:] for name, _ in self.parameters.partners}
        self.addresses = {name: at for at, name in self.partners.items()}

    @property
    def name(self) -> str:
        """The name of this instance, which is the origin of its bundles."""
        return self.client.name

    @property
    def address(self) -> str:
        """The address, which all instances of the agent share."""
        return address(self.place[0], self.parameters.name)

    @property
    def claim(self) -> int:
        """The number with which this instance claims the lead; 0 without a claim."""
        return self.claims[self.name]

    @property
    def leader(self) -> str:
        """The name of the instance that leads, according to the claims that this broker knows."""
        return max((self.name, *self.siblings), key=self.rank)

    def rank(self, name: str) -> tuple[int, str]:
        """Return the rank of an instance. The instance with the greatest rank leads."""
        return self.claims[name], name

    def forget_partners(self) -> None:
        """Forget the ways to partners, and all data that depend on them."""
        for table in (self.ways_to_partners, self.successors, self.ways_before):
            table.clear()
        self.active_partners.clear()
        self.pending.clear()

    def is_late(self, reading: AgentReading) -> bool:
        """Whether a reading is older than the latest reading."""
        return self.latest is not None and reading[:2] < self.latest[:2]

    @property
    def worker(self) -> str:
        """The name of the worker process for its code. Only other agents of its bundle share the process."""
        key, i, _ = self.place
        return f"{key.origin} {key.sequence} {i}"


def reading_in(content: Content, beside: Participant, accuracy: str | None) -> AgentReading | None:
    """Return the reading in a notification; ``None`` unless it is a reading of the agent's publisher."""
    time, sequence = whole_number(content.get("time")), whole_number(content.get("sequence", UNNUMBERED))
    topic, source = content.get("topic"), content.get("source")
    if time is None or sequence is None or not EARLIEST <= time <= LATEST:
        return None
    if not isinstance(topic, str) or not isinstance(source, str):
        return None
    event = Event(topic, time, source, content, sequence, location_of(content))
    return reading_of(beside, accuracy, event)


def report_content(part: AgentParameters, report: AgentReport) -> dict[str, Any]:
    """Return the content of the notification for a report. Equal reports have equal contents."""
    content: dict[str, Any] = {RELATIONSHIP: part.relationship, "status": report.status, "source": report.by}
    scope = part.tie.scope if report.alternative is None else report.alternative
    if scope is not None:
        content["scope"] = scope
    if report.reading is not None:
        content |= {"time": report.reading.time, "sequence": report.reading.sequence}
    return content | ({"value": report.value} if report.value == report.value else {})
