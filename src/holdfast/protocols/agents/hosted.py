"""An agent at work: who it is, what it makes of readings, and what its reports look like."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ...model.event import UNNUMBERED
from ...model.instant import EARLIEST, LATEST
from ...model.protocol import Peer
from ...model.relation import Member
from ..cbps.client import Client, ClientState, Heard
from ..cbps.content import Content
from ..cbps.event import location_of, whole_number
from ..cbps.message import Key, Strategy
from .library import RELATIONSHIP, Made, Part, address, name_of
from .placing import Place
from .talk import Reading, Report, reading_of


@dataclass(slots=True)
class Hosted:
    """An agent, and the client through which it speaks; ``code`` is its text, if that is shipped.

    Where several brokers have publishers of one source, each runs an *instance* of its agent, and one of them
    *leads*: it alone takes part in the strategy.  The others send it the readings that they receive.
    """

    place: Place
    peer: Peer
    strategy: Strategy
    part: Part
    made: Made
    client: Client
    code: str = ""
    in_doubt: bool = False
    """Whether agents were there before, of which nobody knows what they reported."""
    state: ClientState = field(init=False)
    partners: dict[str, str] = field(init=False)
    """The other agents that it talks to: by address, the names that it knows them by."""
    addresses: dict[str, str] = field(init=False)
    reached: dict[str, Key] = field(default_factory=dict)
    """Those that can be reached, and the way to each."""
    successors: dict[str, str] = field(default_factory=dict)
    """By address: the instance that is to continue for the one that was reached last."""
    others: dict[str, frozenset[Key]] = field(default_factory=dict)
    """By address: the ways that instances had laid, when the successor was first waited for."""
    heard: set[str] = field(default_factory=set)
    """The addresses of partners that have sent a message since they were reached."""
    kept: list[Heard] = field(default_factory=list)
    """What others said before they could be answered."""
    leads: bool = False
    succeeds_lost: bool = False
    """Whether it leads because another instance is lost, and what that knew."""
    is_shared: bool = False
    """Whether other brokers may run an instance, which have to know of this one."""
    siblings: set[str] = field(default_factory=set)
    """The names of the other instances that can be reached."""
    claims: Counter[str] = field(default_factory=Counter)
    """By name: what instances have claimed, this one among them.  Claims only grow; the greatest leads.
    Without a reading there is no claim (0)."""
    latest: Reading | None = None
    """The latest reading of its publisher that this instance knows."""
    relayed: tuple[str, int] = ("", 0)
    """The instance from which the last readings came, and how many did in a row."""

    def __post_init__(self) -> None:
        self.state = self.client.initial()
        before = len(name_of(self.part.relationship, self.part.tie, ""))
        self.partners = {address(self.place[0], name): name[before:] for name, _ in self.part.partners}
        self.addresses = {name: at for at, name in self.partners.items()}

    @property
    def name(self) -> str:
        """The name of this instance as a maker of bundles."""
        return self.client.name

    @property
    def address(self) -> str:
        """The name that all its instances share."""
        return address(self.place[0], self.part.name)

    @property
    def claim(self) -> int:
        return self.claims[self.name]

    @property
    def leader(self) -> str:
        """The instance that leads, as far as is known here."""
        return max((self.name, *self.siblings), key=self.rank)

    def rank(self, name: str) -> tuple[int, str]:
        """Of two instances, the one of the greater rank leads."""
        return self.claims[name], name

    def is_late(self, reading: Reading) -> bool:
        """Whether a reading is older than the latest."""
        return self.latest is not None and reading[:2] < self.latest[:2]

    @property
    def worker(self) -> str:
        """Where its code runs: together with that of other agents of its bundle, and nobody else's."""
        key, i, _ = self.place
        return f"{key.origin} {key.sequence} {i}"


def reading_in(content: Content, beside: Member, accuracy: str | None) -> Reading | None:
    """What an agent makes of a reading, if it is one of its publisher's."""
    if (content.get("topic"), content.get("source")) != (beside.topic, beside.source):
        return None
    time, sequence = whole_number(content.get("time")), whole_number(content.get("sequence", UNNUMBERED))
    if time is None or sequence is None or not EARLIEST <= time <= LATEST:
        return None
    return reading_of(beside, accuracy, (time, sequence), content, location_of(content))


def told(part: Part, report: Report) -> dict[str, Any]:
    """A report as a notification; the same report has the same content, whoever says it."""
    content: dict[str, Any] = {RELATIONSHIP: part.relationship, "status": report.status, "source": report.by}
    scope = part.tie.scope if report.also is None else report.also
    if scope is not None:
        content["scope"] = scope
    if report.reading is not None:
        content |= {"time": report.reading.time, "sequence": report.reading.sequence}
    return content | ({"value": report.value} if report.value == report.value else {})
