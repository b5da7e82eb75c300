"""One host for all protocol machines: queued inputs, ordered effects, timers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.model.host import Host
from holdfast.model.protocol import (
    Asked,
    CancelTimer,
    Deliver,
    Drop,
    Fired,
    Joined,
    Left,
    Received,
    Send,
    SetTimer,
    Started,
)


@dataclass
class ManualClock:
    """Shows what it is set to; its timers are called by hand."""

    now: int = 0
    waiting: list[tuple[int, Callable[[Any], None], Any]] = field(default_factory=list)

    def at(self, when, action, argument):
        self.waiting.append(timer := (when, action, argument))
        return timer

    def cancel(self, timer):
        self.waiting.remove(timer)


class Scripted:
    """Answers each input by a table and remembers all inputs."""

    def __init__(self, table):
        self.table = table

    def initial(self):
        return ()

    def handle(self, state, given):
        effects = self.table.get(type(given), [])
        if isinstance(effects, Exception):
            raise effects
        return (*state, given), effects


def host_of(table, **options):
    """A host, its clock, and what it did."""
    clock, done = ManualClock(), []
    machine = Scripted(table)
    actions = dict.fromkeys((Send, Deliver, Drop), done.append)
    return Host(machine, machine.initial(), clock, actions, **options), clock, done


def test_an_input_receives_the_time_and_its_effects_are_performed_in_order():
    effects = [Send("b", "hello"), Deliver("good"), Drop("c", "too loud")]
    host, clock, done = host_of({Received: effects})
    clock.now = 7
    host.tell(Received, "a", "hello")
    assert host.state == (Received(7, "a", "hello"),)
    assert done == effects


def test_inputs_caused_by_an_effect_wait_until_the_other_effects_are_done():
    host, clock, done = host_of({Asked: [Drop("b", "enough"), Send("c", 1)], Left: [Send("c", 2)]})

    def drop(effect):
        host.tell(Left, effect.peer, effect.why)
        clock.now += 1
        done.append(effect)

    host.actions[Drop] = drop
    host.ask("go")
    assert host.state == (Asked(0, "go"), Left(0, "b", "enough"))
    assert done == [Drop("b", "enough"), Send("c", 1), Send("c", 2)]


def test_a_repeated_timer_is_replaced_and_a_cancelled_one_is_removed():
    table = {
        Started: [SetTimer("beat", 5), SetTimer("beat", 9), SetTimer("other", 3), CancelTimer("other")],
        Fired: [CancelTimer("beat")],
    }
    host, clock, _ = host_of(table)
    host.tell(Started, 1)
    ((when, fire, timer),) = clock.waiting
    assert (when, timer) == (9, "beat")
    assert list(host.timers) == ["beat"]
    clock.waiting.clear()
    clock.now = 9
    fire(timer)
    assert host.state[-1] == Fired(9, "beat")
    assert not host.timers


def test_no_timer_fires_after_a_stop():
    host, clock, _ = host_of({Started: [SetTimer("beat", 5), SetTimer("other", 6)]})
    host.tell(Started, 1)
    host.stop()
    assert clock.waiting == []
    assert host.timers == {}


def test_an_input_that_raises_is_reported_and_the_next_one_is_handled():
    error, blamed = ValueError("nonsense"), []
    host, _, _ = host_of({Received: error}, blame=lambda given, why: blamed.append((given, why)))
    host.tell(Received, "a", "?")
    host.tell(Joined, "b")
    assert blamed == [(Received(0, "a", "?"), error)]
    assert host.state == (Joined(0, "b"),)


def test_an_error_in_a_request_is_raised_to_its_caller():
    blamed = []
    host, _, _ = host_of({Asked: ValueError("no such topic")}, blame=lambda *what: blamed.append(what))
    with pytest.raises(ValueError, match="no such topic"):
        host.ask("subscribe")
    assert not blamed
    host.tell(Joined, "b")
    assert host.state == (Joined(0, "b"),)


def test_an_error_without_a_handler_is_raised():
    host, _, _ = host_of({Received: ValueError("nonsense")})
    with pytest.raises(ValueError, match="nonsense"):
        host.tell(Received, "a", "?")


def test_a_host_that_dies_between_effects_performs_no_more():
    alive = [True]
    host, _, done = host_of({Asked: [Drop("b", "die"), Send("c", 1)]}, alive=lambda: alive[0])

    def die(effect):
        alive[0] = False
        done.append(effect)

    host.actions[Drop] = die
    host.ask("go")
    assert done == [Drop("b", "die")]
    assert host.state == (Asked(0, "go"),)
