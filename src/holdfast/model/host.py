"""The host that runs a protocol machine and carries out its effects.

A host needs a clock, and a table with an action for each kind of effect: on TCP, UDP, queues in memory, or
the radio of a mote. It manages timers itself.
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
"""The action for each kind of effect."""


class Timing(Protocol):
    """The protocol of clocks: they can call an action at a given time. A node of the simulator is one."""

    @property
    def now(self) -> Instant: ...

    def at(self, when: Instant, action: Callable[[Any], None], argument: Any, /) -> Any:
        """Call ``action(argument)`` at the instant ``when``, or as soon as possible after it.

        Returns a handle for ``cancel``.
        """

    def cancel(self, timer: Any, /) -> None:
        """Cancel a call that has not been made yet, by its handle."""


class Handles(Protocol):
    """The part of a protocol machine that a host uses.

    Inputs and effects are those of `protocol`, or of one family of protocols.
    """

    def handle(self, state: Any, given: Any, /) -> tuple[Any, list[Any]]: ...


@dataclass(eq=False, slots=True)
class Host:
    """A machine's state, its queue of inputs, and its timers by name.

    Inputs are handled one at a time, each with all its effects. An input that an effect causes is queued.
    ``blame`` receives inputs that the machine could not handle, with the error. Without it, and for requests
    of the machine's own user, the error is raised. Once ``alive`` returns false, remaining effects are
    dropped.
    """

    machine: Handles
    state: Any
    clock: Timing
    actions: Actions
    blame: Callable[[Any, Exception], None] | None = None
    alive: Callable[[], bool] | None = None
    punctual: bool = False
    """Whether a timer in the past, or one that has just fired for the same instant, is an error. Such a
    timer fires at once, so a machine that sets it again and again stops simulated time."""
    timers: dict[str, Any] = field(default_factory=dict, init=False)
    """The running timers, each with the handle that the clock returned."""
    _inputs: deque[Any] = field(default_factory=deque, init=False)
    _busy: bool = field(default=False, init=False)
    _onward: Any = field(default=None, init=False)
    _given: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        own: Actions = {SetTimer: self._set, CancelTimer: self._cancel, Onward: self._goes_on}
        self.actions = {**own, **self.actions}

    def tell(self, kind: Callable[Concatenate[Instant, P], Any], *about: P.args, **more: P.kwargs) -> None:
        """Queue an input of a kind with the current time.

        It is handled at once unless another input is being handled.
        """
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
        """Queue a request of the machine's own user as an input."""
        self.tell(Asked, request)

    def peek(self, to: Point, message: Any) -> Any:
        """Offer the machine a message that passes through this node.

        Returns the message to forward, or ``None`` if the machine consumed it.
        """
        self._onward = None
        self.tell(Passing, to, message)
        return self._onward

    def fire(self, timer: str) -> None:
        """Queue the input for a timer that has fired."""
        del self.timers[timer]
        self.tell(Fired, timer)

    def stop(self) -> None:
        """Cancel all timers. The machine's state does not change."""
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
