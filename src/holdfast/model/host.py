"""A protocol machine at work: the one place where its effects are carried out.

What lies below a host (TCP, UDP, queues in memory, the radio of a mote) is a clock and a table: for each kind
of effect what is to be done.  Timers are the host's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol

from ..errors import UsageError
from .instant import Instant, show_duration
from .protocol import Asked, CancelTimer, Fired, Onward, Passing, SetTimer
from .space import Point

P = ParamSpec("P")

Actions = Mapping[type, Callable[[Any], object]]
"""What is done for an effect, by its kind."""


class Timing(Protocol):
    """What time it is for a machine, and how it is called at another; a node of the simulator is one."""

    @property
    def now(self) -> Instant: ...

    def at(self, when: Instant, action: Callable[[Any], None], argument: Any, /) -> Any:
        """Have ``action(argument)`` called at a time, or as soon as can be; what ``cancel`` needs to know."""

    def cancel(self, timer: Any, /) -> None:
        """Forget a call that is still to come."""


class Handles(Protocol):
    """As much of a machine as a host needs; the words are those of ``protocol`` or a family's own."""

    def handle(self, state: Any, given: Any, /) -> tuple[Any, list[Any]]: ...


@dataclass(eq=False, slots=True)
class Host:
    """A machine's state, its inputs in line, and its timers by name.

    Inputs are taken one at a time, each with all its effects: what an effect brings about waits.  ``blame``
    gets the inputs that the machine could not handle, and the errors; without it, and for what the machine's
    own user asked, they are raised.  Once ``alive`` says no, the effects that are left are left undone.
    """

    machine: Handles
    state: Any
    clock: Timing
    actions: Actions
    blame: Callable[[Any, Exception], None] | None = None
    alive: Callable[[], bool] | None = None
    punctual: bool = False
    """Whether it is an error to set a timer in the past, or one that has just fired for the same moment: it
    fires at once, and where a machine sets it again and again simulated time stands still."""
    timers: dict[str, Any] = field(default_factory=dict, init=False)
    """Those that run, and what the clock said of each."""
    _inputs: deque[Any] = field(default_factory=deque, init=False)
    _busy: bool = field(default=False, init=False)
    _onward: Any = field(default=None, init=False)
    _given: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        own: Actions = {SetTimer: self._set, CancelTimer: self._cancel, Onward: self._goes_on}
        self.actions = {**own, **self.actions}

    def tell(self, kind: Callable[Concatenate[Instant, P], Any], *about: P.args, **more: P.kwargs) -> None:
        """Give the machine an input of a kind, as of now, after those that wait already."""
        self._inputs.append(kind(self.clock.now, *about, **more))
        if self._busy:
            return
        self._busy = True
        try:
            while self._inputs:
                self._take(self._inputs.popleft())
        finally:
            self._busy = False

    def ask(self, request: Any) -> None:
        """The machine's own user wants something."""
        self.tell(Asked, request)

    def peek(self, to: Point, message: Any) -> Any:
        """A message passes on its way to a point: what goes on of it, nothing if the machine has taken it."""
        self._onward = None
        self.tell(Passing, to, message)
        return self._onward

    def fire(self, timer: str) -> None:
        """A timer has run out."""
        del self.timers[timer]
        self.tell(Fired, timer)

    def stop(self) -> None:
        """Let no timer fire any more."""
        for running in self.timers.values():
            self.clock.cancel(running)
        self.timers.clear()

    def _take(self, given: Any) -> None:
        self._given = given
        try:
            self.state, effects = self.machine.handle(self.state, given)
        except Exception as error:
            if self.blame is None or isinstance(given, Asked):
                raise
            self.blame(given, error)
            return
        for effect in effects:
            if self.alive is not None and not self.alive():
                return
            self.actions[type(effect)](effect)

    def _goes_on(self, effect: Onward) -> None:
        self._onward = effect.message

    def _set(self, effect: SetTimer) -> None:
        again = isinstance(self._given, Fired) and self._given.timer == effect.timer
        if self.punctual and effect.at < self.clock.now + again:
            raise UsageError(
                f"timer '{effect.timer}' is set for {show_duration(effect.at)}, which is over: it is "
                f"{show_duration(self.clock.now)}. A timer has a time, not a delay: "
                f"SetTimer('{effect.timer}', given.now + delay)"
            )
        self._cancel(effect)
        self.timers[effect.timer] = self.clock.at(effect.at, self.fire, effect.timer)

    def _cancel(self, effect: SetTimer | CancelTimer) -> None:
        if effect.timer in self.timers:
            self.clock.cancel(self.timers.pop(effect.timer))
