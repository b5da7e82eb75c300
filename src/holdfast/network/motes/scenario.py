"""A scenario: a network, its tasks and its failures, as frozen values.

Scenarios can be created in Python. A YAML file describes the same values (see `convert`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ...model.instant import Duration
from ...model.quantity import Dbm, Decibels, Joules, Metres
from ..sim.energy import Rest
from ..sim.mac import Csma, Mac
from ..sim.propagation import LogDistance, UnitDisk
from .cbps import Cbps
from .dds import Dds
from .direct import Direct
from .failure import Failure
from .fault import ScenarioError
from .nodes import NodeChoice, NodeName, Nodes
from .qps import Qps
from .readings import Readings, Recorded
from .routing import Flooding, Routing
from .traffic import Flow, require_times

Protocol = Direct | Dds | Cbps | Qps
"""The protocols that bring events to subscribers. Add a new protocol here."""


@dataclass(frozen=True)
class AsMeasured:
    """A link model in which each link loses the measured share of frames."""

    kind: ClassVar = "measured"


Links = LogDistance | UnitDisk | AsMeasured


@dataclass(frozen=True, kw_only=True)
class Radio:
    """The type of transceiver, with optional changes of its parameters."""

    chip: Literal["cc2420", "cc2420-tossim", "cc1000"] = "cc2420"
    power: Dbm | None = None
    co_channel: Decibels | None = None
    """The ratio in dB by which a frame must exceed all simultaneous frames."""


@dataclass(frozen=True, kw_only=True)
class Energy:
    """The platform and power supply of the nodes."""

    platform: str = "micaz"
    """The name of a platform, or the path of a ``.toml`` file."""
    battery: Joules | None = None
    mains: tuple[NodeName, ...] = ()
    """The nodes with an unlimited supply."""
    rest: Rest = field(default_factory=Rest)
    """The currents between activities, which decide most comparisons."""
    delays: bool = False
    """Whether the processing time of a frame delays it. Its energy is charged in any case."""
    sampling: Duration = 0
    """The time in µs for which a publisher's processor works for each reading of its sensor. [D62]"""

    def __post_init__(self) -> None:
        if self.battery is not None and self.battery <= 0:
            raise ScenarioError("a battery holds more than nothing; leave it out for no limit", ("battery",))


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Nodes that publish readings of a topic of the definition."""

    topic: str
    from_: NodeChoice = "all"
    every: Duration | None = None
    """The period of readings in µs. With ``None``, which requires a recording, the readings keep their own
    times.
    """
    sampled: Duration | None = None
    """The period in µs at which the sensor is read. The mean of the values since the last reading is
    published. With ``None``, each reading is one value. [D62]
    """
    readings: Readings = field(default_factory=dict)
    recorded: Recorded | None = None
    """The file with readings, used in place of ``readings``."""
    phase: Literal["random", "together"] = "random"
    """Whether nodes start at random times within a period, or all together."""
    start: Duration = 0
    stop: Duration | None = None

    def __post_init__(self) -> None:
        require_times(1 if self.every is None else self.every, self.start, self.stop)
        if bool(self.readings) == (self.recorded is not None):
            raise ScenarioError("a publisher has readings, or they are recorded; one of the two")
        if self.every is None and self.recorded is None:
            raise ScenarioError("how often does it publish? Add 'every', such as 'every: 2 min'")
        if self.sampled is not None and not 0 < self.sampled <= (self.every or self.sampled):
            why = "a sensor is read several times in each 'every', such as each '250 ms'"
            raise ScenarioError(why, ("sampled",))


@dataclass(frozen=True, kw_only=True)
class Subscriber:
    """A node that subscribes to conditions of the definition, or to all events of topics."""

    node: NodeName
    to: str | tuple[str, ...] = ()
    """The names of conditions or topics; if empty, all conditions."""
    region: tuple[tuple[Metres, Metres], tuple[Metres, Metres]] | None = None
    """Two corners of a region. Only events published inside count. Not every protocol supports regions."""
    start: Duration = 0
    stop: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The complete description of a run except its seed. Equal scenarios with equal seeds give equal runs."""

    nodes: Nodes
    duration: Duration
    name: str = ""
    links: Links = field(default_factory=LogDistance)
    radio: Radio = Radio()
    mac: Mac = field(default_factory=Csma)
    routing: Routing = field(default_factory=Flooding)
    energy: Energy = Energy()
    traffic: tuple[Flow, ...] = ()
    definition: str = ""
    """The topics and conditions, as the name of a ``.hf`` file or as its text."""
    protocol: Protocol = field(default_factory=Direct)
    publishers: tuple[Publisher, ...] = ()
    subscribers: tuple[Subscriber, ...] = ()
    failures: tuple[Failure, ...] = ()
    warm_up: Duration = 0
    """The time in µs before which messages, events and energy are not counted."""
    until_first_death: bool = False
    """Whether the run ends when the first battery is empty."""

    def __post_init__(self) -> None:
        if self.duration <= 0:
            raise ScenarioError("a run takes some time, such as '100 s'", ("duration",))
        for i, subscriber in enumerate(self.subscribers):
            if subscriber.region is not None and not getattr(self.protocol, "regional", False):
                why = f"'{self.protocol.kind}' knows no places"
                raise ScenarioError(why, ("subscribers", i, "region"), hint="Take qps.")
        if self.warm_up >= self.duration:
            raise ScenarioError("the run is over before the warm-up is", ("warm-up",))
        for i, failure in enumerate(self.failures):
            if not 0 <= failure.at <= self.duration:
                raise ScenarioError("this is not within the duration of the run", ("failures", i, "at"))
