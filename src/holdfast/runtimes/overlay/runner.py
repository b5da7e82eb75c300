"""A protocol machine at work in an event loop: its inputs one at a time, each at once and whole."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from ...model.instant import SECOND, Instant
from ...model.protocol import Asked, CancelTimer, Effect, Fired, Input, ProtocolMachine, SetTimer


class Runner:
    """The machine's state, its clock and its timers.

    ``perform`` does what the machine asks for, timers apart.  ``blame`` takes inputs that it could not
    handle, and the errors; those of its own user are the user's.
    """

    def __init__(
        self,
        machine: ProtocolMachine,
        perform: Callable[[Effect], None],
        blame: Callable[[Input, Exception], None],
    ) -> None:
        self.state = machine.initial()
        self._machine, self._perform, self._blame = machine, perform, blame
        self._inputs: deque[Input] = deque()
        self._busy = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._offset = time.time_ns() // 1_000 - time.monotonic_ns() // 1_000

    @property
    def now(self) -> Instant:
        """The time of day when the machine began, and what has passed since."""
        return time.monotonic_ns() // 1_000 + self._offset

    def tell(self, given: Input) -> None:
        """Give the machine an input, after those that wait already."""
        self._inputs.append(given)
        if self._busy:
            return
        self._busy = True
        try:
            while self._inputs:
                self._handle(self._inputs.popleft())
        finally:
            self._busy = False

    def stop(self) -> None:
        """Let no timer fire any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _handle(self, given: Input) -> None:
        try:
            self.state, effects = self._machine.handle(self.state, given)
        except Exception as error:
            if isinstance(given, Asked):
                raise
            self._blame(given, error)
            return
        for effect in effects:
            match effect:
                case SetTimer(timer, at):
                    self._cancel(timer)
                    wait = max(0, at - self.now) / SECOND
                    self._timers[timer] = asyncio.get_running_loop().call_later(wait, self._fire, timer)
                case CancelTimer(timer):
                    self._cancel(timer)
                case _:
                    self._perform(effect)

    def _fire(self, timer: str) -> None:
        del self._timers[timer]
        self.tell(Fired(self.now, timer))

    def _cancel(self, timer: str) -> None:
        if (running := self._timers.pop(timer, None)) is not None:
            running.cancel()
