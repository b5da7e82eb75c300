"""Energy accounting during a run: time in each state for each cause, converted to joules when read.

Every change of state of radio and processor is accounted as Δt·V·I [D33–D35]. Times are integers in µs, so
causes add up to the total exactly, and reading changes nothing [D37].

This module corrects two listings of the thesis. Energy accumulates; listing 5.2 assigned it. Rest is the time
between two changes of state; listing 5.1 added all rest since the beginning again in every round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from operator import mul
from typing import TYPE_CHECKING, Literal

from ...model.instant import Duration, Instant
from .clock import Clock, Entry
from .platforms import Platform

if TYPE_CHECKING:
    from .trace import Trace

# States of the radio.  OFF draws nothing: the node is down.  LISTEN: on, but not receiving a frame.
OFF, SLEEP, LISTEN, RECEIVE, TRANSMIT = range(5)
RADIO_STATES = ("off", "sleep", "listen", "receive", "transmit")

# States of the processor.
REST, ACTIVE = 1, 2
MCU_STATES = ("off", "rest", "active")

NO_CAUSE = ""
"""The cause of energy that no message causes, such as listening and sleeping."""

JOULES = 1e-9  # of a mW·µs


@dataclass(frozen=True, slots=True)
class Rest:
    """The currents between activities. They decide most comparisons, so every result prints them.

    ``listen`` charges a radio that only listens as if it received, which is what real radios draw. ``idle``
    and ``sleep`` charge the lower current although the radio still receives, as if an ideal wake-up signal
    existed. A MAC that switches its radio off is charged ``sleep`` for that time in every case.
    """

    radio: Literal["listen", "idle", "sleep"] = "listen"
    mcu: Literal["idle", "sleep"] = "idle"

    def __str__(self) -> str:
        return f"radio {self.radio}, mcu {self.mcu}"


@dataclass(frozen=True, slots=True)
class Draw:
    """The power in mW for each state of radio and processor, by the index of the state."""

    radio: tuple[float, ...]
    mcu: tuple[float, ...]


def draw(platform: Platform, rest: Rest, power_dbm: float) -> Draw:
    """Return the power of a platform in each state if it transmits at ``power_dbm``."""
    volts, radio, mcu = platform.volts, platform.radio, platform.mcu
    listening = {"listen": radio.receive, "idle": radio.idle, "sleep": radio.sleep}[rest.radio]
    resting = {"idle": mcu.idle, "sleep": mcu.sleep}[rest.mcu]
    return Draw(
        tuple(volts * ma for ma in (0.0, radio.sleep, listening, radio.receive, radio.at(power_dbm))),
        tuple(volts * ma for ma in (0.0, resting, mcu.active)),
    )


Observer = Callable[[Instant, int], None]
"""A function to call with time and state at every change, used by batteries and traces. A processor's change
to rest is reported late, when its next task arrives.
"""


class StateTimes(dict[str, list[Duration]]):
    """The time in µs in each state, by cause. A new cause starts with zeros."""

    def __missing__(self, cause: str) -> list[Duration]:
        times = self[cause] = [0] * len(RADIO_STATES)
        return times


class RadioMeter:
    """Measures the time that a radio spends in each state, for each cause."""

    __slots__ = ("_by_cause", "_charged", "_mw", "_since", "observers", "state")

    def __init__(self, mw: tuple[float, ...]) -> None:
        self.state = OFF
        self.observers: list[Observer] = []
        self._mw = mw
        self._by_cause = StateTimes()
        self._charged = self._by_cause[NO_CAUSE]
        self._since: Instant = 0

    def change(self, now: Instant, state: int, cause: str = NO_CAUSE) -> None:
        """Enter a state at ``now``, and charge its time to ``cause``."""
        self._charged[self.state] += now - self._since
        self._since = now
        self.state = state
        self._charged = self._by_cause[cause]
        for observer in self.observers:
            observer(now, state)

    def times(self, now: Instant) -> dict[str, list[Duration]]:
        """Return the time in µs in each state, by cause, up to ``now``."""
        found = {cause: times.copy() for cause, times in self._by_cause.items()}
        current = next(cause for cause, times in self._by_cause.items() if times is self._charged)
        found[current][self.state] += now - self._since
        return found

    def nanojoules(self, now: Instant) -> float:
        """Return the energy used up to ``now``, in nJ."""
        mw = self._mw
        used = (now - self._since) * mw[self.state]
        for times in self._by_cause.values():
            used += sum(map(mul, times, mw))
        return used

    def power(self) -> float:
        """Return the present power in mW."""
        return self._mw[self.state]


class McuMeter:
    """Measures the time for which a processor is active, for each cause. Tasks run one after the other."""

    __slots__ = ("_by_cause", "_mw", "_on", "_since", "_tasks", "busy_until", "observers")

    def __init__(self, mw: tuple[float, ...]) -> None:
        self.busy_until: Instant = 0
        self.observers: list[Observer] = []
        self._mw = mw
        self._tasks: deque[tuple[Instant, Instant, str]] = deque()  # from, to, cause; not yet charged
        self._by_cause: dict[str, Duration] = {}
        self._on: Duration = 0
        self._since: Instant | None = None  # switched on

    def start(self, now: Instant) -> None:
        """Switch the processor on at ``now``; it is at rest until its first task."""
        self._since = self.busy_until = now
        self._notify(now, REST)

    def stop(self, now: Instant) -> None:
        """Switch the processor off, even during a task."""
        assert self._since is not None
        self._by_cause, _ = self.times(now)
        self._tasks.clear()
        self._on += now - self._since
        self._since, self.busy_until = None, now
        self._notify(now, OFF)

    def work(self, now: Instant, length: Duration, cause: str = NO_CAUSE) -> None:
        """Queue a task of ``length`` µs behind the tasks that are already queued. [D34]"""
        if self._tasks:
            self.settle(now)
        if not length or self._since is None:
            return
        start = now if now > self.busy_until else self.busy_until
        self.busy_until = start + length
        self._tasks.append((start, self.busy_until, cause))
        if start == now:
            self._notify(now, ACTIVE)

    def settle(self, now: Instant) -> None:
        """Charge the tasks that are finished at ``now``, and report the change to rest."""
        tasks = self._tasks
        while tasks and tasks[0][1] <= now:
            start, end, cause = tasks.popleft()
            self._by_cause[cause] = self._by_cause.get(cause, 0) + end - start
            if not tasks:
                self._notify(end, REST)

    def times(self, now: Instant) -> tuple[dict[str, Duration], Duration]:
        """Return the active time in µs by cause, and the time at rest in µs, up to ``now``."""
        self.settle(now)
        found = dict(self._by_cause)
        if self._tasks:
            start, _, cause = self._tasks[0]
            found[cause] = found.get(cause, 0) + now - start
        on = self._on + (now - self._since if self._since is not None else 0)
        return found, on - sum(found.values())

    def nanojoules(self, now: Instant) -> float:
        """Return the energy used up to ``now``, in nJ."""
        active, rest = self.times(now)
        return sum(active.values()) * self._mw[ACTIVE] + rest * self._mw[REST]

    def power(self, now: Instant) -> float:
        """Return the present power in mW."""
        return self._mw[OFF if self._since is None else ACTIVE if now < self.busy_until else REST]

    def _notify(self, at: Instant, state: int) -> None:
        for observer in self.observers:
            observer(at, state)


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """The energy used up to the time of reading, in joules, by part and state. [D37]"""

    radio: dict[str, float]
    mcu: dict[str, float]

    @property
    def radio_joules(self) -> float:
        return sum(self.radio.values())

    @property
    def mcu_joules(self) -> float:
        return sum(self.mcu.values())

    @property
    def joules(self) -> float:
        return self.radio_joules + self.mcu_joules


class NodeEnergy:
    """The energy account of one node, which can be read at any time during a run. [D37]"""

    __slots__ = ("_battery", "_draw", "mcu", "radio")

    def __init__(self, draw: Draw) -> None:
        self.radio = RadioMeter(draw.radio)
        self.mcu = McuMeter(draw.mcu)
        self._draw = draw
        self._battery: Battery | None = None

    def supply(self, joules: float, clock: Clock, empty: Callable[[], None]) -> None:
        """Install a battery with a capacity in joules. ``empty`` is called when it is exhausted."""
        self._battery = Battery(joules, self, clock, empty)
        self.radio.observers.append(self._battery.on_change)
        self.mcu.observers.append(self._battery.on_change)

    def record(self, node: int, trace: Trace) -> None:
        """Write every change of state to a trace, unless the trace excludes this node."""
        if trace.states_of is not None and node not in trace.states_of:
            return
        add = trace.states.append
        self.radio.observers.append(lambda at, state: add(at, node, "radio", RADIO_STATES[state]))
        self.mcu.observers.append(lambda at, state: add(at, node, "mcu", MCU_STATES[state]))

    def nanojoules(self, now: Instant) -> float:
        return self.radio.nanojoules(now) + self.mcu.nanojoules(now)

    def joules(self, now: Instant) -> float:
        """Return the energy used up to ``now``, in joules."""
        return self.nanojoules(now) * JOULES

    @property
    def capacity(self) -> float | None:
        """The capacity of the battery in joules; ``None`` for an unlimited supply."""
        return None if self._battery is None else self._battery.joules

    def residual(self, now: Instant) -> float | None:
        """Return the remaining energy of the battery in joules; ``None`` for an unlimited supply."""
        return None if self._battery is None else max(0.0, self._battery.joules - self.joules(now))

    def power(self, now: Instant) -> float:
        """Return the present power in mW."""
        return self.radio.power() + self.mcu.power(now)

    def read(self, now: Instant) -> EnergyReading:
        """Return the energy used up to ``now`` in joules, by part and state."""
        states = [sum(column) for column in zip(*self.radio.times(now).values(), strict=True)]
        active, rest = self.mcu.times(now)
        on = zip(RADIO_STATES[1:], states[1:], self._draw.radio[1:], strict=True)
        radio = {name: us * mw * JOULES for name, us, mw in on}
        mcu = {"rest": rest * self._draw.mcu[REST] * JOULES}
        mcu["active"] = sum(active.values()) * self._draw.mcu[ACTIVE] * JOULES
        return EnergyReading(radio, mcu)

    def by_cause(self, now: Instant) -> dict[str, float]:
        """Return the energy used up to ``now`` in joules, by cause. Energy without a cause is under
        ``""``.
        """
        found = {
            cause: sum(us * mw for us, mw in zip(times, self._draw.radio, strict=True)) * JOULES
            for cause, times in self.radio.times(now).items()
        }
        active, rest = self.mcu.times(now)
        for cause, us in active.items():
            found[cause] = found.get(cause, 0.0) + us * self._draw.mcu[ACTIVE] * JOULES
        found[NO_CAUSE] += rest * self._draw.mcu[REST] * JOULES
        return found


class Battery:
    """A battery with a capacity in joules. The node dies when the energy is used up. [D50]

    A timer is set for the time at which the battery is empty at the present power. If the power falls, the
    timer fires too early and is set again. If the power rises, the timer is set again at once.
    """

    __slots__ = ("_account", "_clock", "_empty", "_expected", "_timer", "joules")

    def __init__(self, joules: float, account: NodeEnergy, clock: Clock, empty: Callable[[], None]) -> None:
        self.joules = joules
        self._account, self._clock, self._empty = account, clock, empty
        self._expected = 0.0
        """The power in mW for which the present timer was computed."""
        self._timer: Entry | None = None

    def on_change(self, *_: int) -> None:
        """Set the timer again if the power has risen. Called at every change of state."""
        if self._account.power(self._clock.now) > self._expected:
            self._plan()

    def _plan(self) -> None:
        now = self._clock.now
        self._expected = self._account.power(now)
        if self._timer is not None:
            Clock.cancel(self._timer)
            self._timer = None
        if self._expected:
            left = max(0.0, self.joules / JOULES - self._account.nanojoules(now))
            self._timer = self._clock.after(ceil(left / self._expected), self._on_timer)

    def _on_timer(self, _: None) -> None:
        self._timer = None
        if self._account.joules(self._clock.now) >= self.joules * (1 - 1e-12):
            self._empty()
        else:
            self._plan()
