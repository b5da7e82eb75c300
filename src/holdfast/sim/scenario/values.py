"""A scenario as values: what stands in the file, typed, with its defaults."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from .quantity import Dbm, Decibels, Joules, Metres, Ppm, Span

Count = Annotated[int, Meta(ge=0)]
Some = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Named = int | str
"""A node, by its name."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Part of a scenario."""


class _Kind(_Part, frozen=True, tag_field="kind"):
    """A part that comes in several kinds, told apart by ``kind``."""


# --- nodes -----------------------------------------------------------------------------------------


class Grid(_Kind, frozen=True, tag="grid"):
    """Rows of nodes, numbered row by row from 0."""

    rows: Annotated[int, Meta(ge=1, le=1000)]
    columns: Annotated[int, Meta(ge=1, le=1000)]
    spacing: Metres


class Uniform(_Kind, frozen=True, tag="uniform"):
    """Nodes anywhere in a rectangle, all connected over ``reach``."""

    count: Annotated[int, Meta(ge=1, le=10_000)]
    width: Metres
    height: Metres
    reach: Metres
    seed: int | None = None
    """The same placement in all runs; without it, each run's seed draws its own."""


class Csv(_Kind, frozen=True, tag="csv"):
    """Your own: a table node,x,y and, measured, a table sender,receiver,quality."""

    file: str
    links: str | None = None


class IntelLab(_Kind, frozen=True, tag="intel-lab"):
    """The 54 motes of the Intel Berkeley lab: a folder with mote_locs.txt and connectivity.txt."""

    folder: str


class Redwood(_Kind, frozen=True, tag="redwood"):
    """One of the two redwoods of Sonoma, by mote-location-data.txt."""

    file: str
    tree: Literal["interior", "edge"] = "interior"


Nodes = Grid | Uniform | Csv | IntelLab | Redwood

# --- links and radio -------------------------------------------------------------------------------


class LogDistance(_Kind, frozen=True, tag="log-distance"):
    """Path loss with shadowing; reception by signal, noise and interference."""

    exponent: Annotated[float, Meta(ge=0, le=10)] = 3.0
    shadowing: Decibels = Decibels(0)
    asymmetry: Decibels = Decibels(0)
    loss_at_1_m: Decibels | None = field(default=None, name="loss-at-1-m")


class Disk(_Kind, frozen=True, tag="disk"):
    """Everything within a range is heard unless two signals overlap."""

    range: Metres
    interference: Metres | None = None


class Measured(_Kind, frozen=True, tag="measured"):
    """Each link loses what was measured for it."""


Links = LogDistance | Disk | Measured


class Radio(_Part, frozen=True):
    """The transceiver."""

    chip: Literal["cc2420", "cc1000"] = "cc2420"
    power: Dbm | None = None


# --- MAC -------------------------------------------------------------------------------------------


class Csma(_Kind, frozen=True, tag="csma"):
    """802.15.4 CSMA/CA, unslotted."""

    min_exponent: Annotated[int, Meta(ge=0, le=20)] = 3
    max_exponent: Annotated[int, Meta(ge=0, le=20)] = 5
    backoffs: Count = 4
    retries: Count = 3
    acknowledged: bool = True
    queue: Some = 16


class RtsCts(_Kind, frozen=True, tag="rts-cts"):
    """RTS and CTS as in 802.11."""

    window_min: Count = 15
    window_max: Count = 1023
    short_retries: Count = 7
    long_retries: Count = 4
    threshold: Count = 0
    queue: Some = 16


class LowPowerListening(_Kind, frozen=True, tag="low-power-listening"):
    """Radios sleep and look for a signal in every interval."""

    interval: Span = Span(100_000)
    wake: Literal["strobes", "preamble"] = "strobes"
    linger: Span = Span(10_000)
    backoffs: Count = 8
    retries: Count = 2
    queue: Some = 16


class Tdma(_Kind, frozen=True, tag="tdma"):
    """Time slots; nodes with a neighbour in common have different ones."""

    sleep: bool = False
    slot: Span | None = None
    guard: Span = Span(500)
    retries: Count = 3
    queue: Some = 16


class Aloha(_Kind, frozen=True, tag="aloha"):
    """Send at once, listen to nobody."""

    queue: Some = 16


Mac = Csma | RtsCts | LowPowerListening | Tdma | Aloha

# --- routing ---------------------------------------------------------------------------------------


class IdGrid(_Kind, frozen=True, tag="id-grid"):
    """The rules of ID-based routing; nodes must be a grid."""

    resends: Count = 3
    patience: Span | None = None
    distrust: Span = Span(30_000_000)


class Geographic(_Kind, frozen=True, tag="geographic"):
    """Greedy, with perimeters round the holes."""

    beacons: Span | None = None
    distrust: Span = Span(10_000_000)


class Flooding(_Kind, frozen=True, tag="flooding"):
    """Everybody repeats everything once."""

    limit: Some = 32
    jitter: Span | None = None


class OnDemand(_Kind, frozen=True, tag="on-demand"):
    """Requests, replies and errors, as in DYMO."""

    keep: Span = Span(60_000_000)
    wait: Span | None = None
    tries: Some = 3


class Tree(_Kind, frozen=True, tag="tree"):
    """A tree to each sink; by default the destinations of the traffic."""

    sinks: list[Named] | None = None
    metric: Literal["etx", "hops"] = "etx"
    beacons: Span | None = None


Routing = IdGrid | Geographic | Flooding | OnDemand | Tree

# --- energy ----------------------------------------------------------------------------------------


class Rest(_Part, frozen=True):
    """What is drawn when nothing happens; it decides most comparisons."""

    radio: Literal["listen", "idle", "sleep"] = "listen"
    mcu: Literal["idle", "sleep"] = "idle"


class Energy(_Part, frozen=True):
    """Platform and supply."""

    platform: str = "micaz"
    battery: Joules | None = None
    mains: list[Named] = []
    """Nodes whose supply does not end."""
    rest: Rest = Rest()


# --- traffic ---------------------------------------------------------------------------------------


class Drawn(_Part, frozen=True):
    """So many nodes, drawn by the seed."""

    any: Some


class Spot(_Part, frozen=True):
    """A point: the node nearest to it, found by geographic routing."""

    x: Metres
    y: Metres


class Flow(_Part, frozen=True):
    """Messages that somebody sends to somebody, again and again."""

    sources: Named | list[Named] | Drawn = field(name="from")
    to: Named | list[Named] | Spot
    every: Span
    arrivals: Literal["periodic", "poisson"] = "periodic"
    phase: Literal["random", "together"] = "random"
    """Whether periodic senders begin at their own moments within a period, or all at once."""
    size: Some = 20
    name: str | None = None
    """For accounts; by default its place in the list."""
    start: Span = Span(0)
    stop: Span | None = None


# --- failures --------------------------------------------------------------------------------------


class Kill(_Kind, frozen=True, tag="kill"):
    """Nodes go down."""

    at: Span
    nodes: list[Named]


class Restart(_Kind, frozen=True, tag="restart"):
    """Nodes come up again and remember nothing."""

    at: Span
    nodes: list[Named]


class Cut(_Kind, frozen=True, tag="cut"):
    """Pairs of nodes no longer hear each other."""

    at: Span
    links: list[tuple[Named, Named]]


class Mend(_Kind, frozen=True, tag="mend"):
    """Pairs of nodes hear each other again."""

    at: Span
    links: list[tuple[Named, Named]]


class Partition(_Kind, frozen=True, tag="partition"):
    """Nodes hear only those of their own group; those in none are one group together."""

    at: Span
    groups: list[list[Named]]


class Heal(_Kind, frozen=True, tag="heal"):
    """All links are as at the beginning."""

    at: Span


class Drift(_Kind, frozen=True, tag="drift"):
    """Clocks of nodes run fast, or slow, by so much."""

    at: Span
    nodes: list[Named]
    by: Ppm


Failure = Kill | Restart | Cut | Mend | Partition | Heal | Drift

# --- all of it -------------------------------------------------------------------------------------


class Scenario(_Part, frozen=True):
    """A network, what it has to do, and what goes wrong."""

    nodes: Nodes
    duration: Span
    name: str = ""
    links: Links = LogDistance()
    radio: Radio = Radio()
    mac: Mac = Csma()
    routing: Routing = msgspec.field(default_factory=Flooding)
    energy: Energy = Energy()
    traffic: list[Flow] = []
    failures: list[Failure] = []
    warm_up: Span = Span(0)
    """What is sent and drawn before is not counted."""
    until_first_death: bool = False
    """Whether a run ends with the first battery."""
