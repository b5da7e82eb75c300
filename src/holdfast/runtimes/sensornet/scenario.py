"""A scenario: a network, what it has to do, and what goes wrong, as frozen values.

Python makes them as they stand; a file says the same in YAML (`convert`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ...model.instant import Duration
from ...model.quantity import Dbm, Decibels, Joules, Metres
from ...sim.energy import Rest
from ...sim.mac import Csma, Mac
from ...sim.propagation import LogDistance, UnitDisk
from .cbps import Cbps
from .dds import Dds
from .direct import Direct
from .failure import Failure
from .fault import Fault
from .nodes import Chosen, Named, Nodes
from .qps import Qps
from .readings import Readings, Recorded
from .routing import Flooding, Routing
from .traffic import Flow, require_times

Protocol = Direct | Dds | Cbps | Qps
"""How events come to subscribers; a further one is put into this list."""


@dataclass(frozen=True)
class AsMeasured:
    """Each link loses what was measured for it."""

    kind: ClassVar = "measured"


Links = LogDistance | UnitDisk | AsMeasured


@dataclass(frozen=True, kw_only=True)
class Radio:
    """The transceiver, and what of it is not as usual."""

    chip: Literal["cc2420", "cc2420-tossim", "cc1000"] = "cc2420"
    power: Dbm | None = None
    co_channel: Decibels | None = None
    """What a frame needs over all others that are on the air with it."""


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Platform and supply."""

    platform: str = "micaz"
    """The name of one, or a ``.toml`` file."""
    battery: Joules | None = None
    mains: tuple[Named, ...] = ()
    """Nodes whose supply does not end."""
    rest: Rest = field(default_factory=Rest)
    """What is drawn when nothing happens; it decides most comparisons."""
    delays: bool = False
    """Whether the processor's time for a frame delays it, and not only costs energy."""
    sampling: Duration = 0
    """How long a publisher's processor works for each reading of its sensor.  [D62]"""

    def __post_init__(self) -> None:
        if self.battery is not None and self.battery <= 0:
            raise Fault("a battery holds more than nothing; leave it out for no limit", ("battery",))


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Nodes that publish readings of a topic of the definition, again and again."""

    topic: str
    from_: Chosen = "all"
    every: Duration | None = None
    """The time between two readings; none of what is recorded: each then has its own time."""
    sampled: Duration | None = None
    """How often the sensor is read; the mean of what was read since is published.  None: once.  [D62]"""
    readings: Readings = field(default_factory=dict)
    recorded: Recorded | None = None
    """Readings from a file, in place of ``readings``."""
    phase: Literal["random", "together"] = "random"
    """Whether nodes begin at their own moments within a period, or all at once."""
    start: Duration = 0
    stop: Duration | None = None

    def __post_init__(self) -> None:
        require_times(1 if self.every is None else self.every, self.start, self.stop)
        if bool(self.readings) == (self.recorded is not None):
            raise Fault("a publisher has readings, or they are recorded; one of the two")
        if self.every is None and self.recorded is None:
            raise Fault("how often does it publish? Add 'every', such as 'every: 2 min'")
        if self.sampled is not None and not 0 < self.sampled <= (self.every or self.sampled):
            raise Fault("a sensor is read several times in each 'every', such as each '250 ms'", ("sampled",))


@dataclass(frozen=True, kw_only=True)
class Subscriber:
    """A node that wants to know: subscriptions of the definition, or all samples of topics."""

    node: Named
    to: str | tuple[str, ...] = ()
    """Their names; none: all subscriptions."""
    region: tuple[tuple[Metres, Metres], tuple[Metres, Metres]] | None = None
    """Only what is published there: two corners; for protocols that know places."""
    start: Duration = 0
    stop: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """All of it but the seed: equal scenarios with equal seeds give equal runs."""

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
    """Topics and subscriptions: a ``.hf`` file, or its text."""
    protocol: Protocol = field(default_factory=Direct)
    publishers: tuple[Publisher, ...] = ()
    subscribers: tuple[Subscriber, ...] = ()
    failures: tuple[Failure, ...] = ()
    warm_up: Duration = 0
    """What is sent, published and drawn before is not counted."""
    until_first_death: bool = False
    """Whether a run ends with the first battery."""

    def __post_init__(self) -> None:
        if self.duration <= 0:
            raise Fault("a run takes some time, such as '100 s'", ("duration",))
        for i, subscriber in enumerate(self.subscribers):
            if subscriber.region is not None and not getattr(self.protocol, "regional", False):
                raise Fault(
                    f"'{self.protocol.kind}' knows no places", ("subscribers", i, "region"), hint="Take qps."
                )
        if self.warm_up >= self.duration:
            raise Fault("the run is over before the warm-up is", ("warm-up",))
        for i, failure in enumerate(self.failures):
            if not 0 <= failure.at <= self.duration:
                raise Fault("this is not within the duration of the run", ("failures", i, "at"))
