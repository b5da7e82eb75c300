"""A mute whose causes change while it runs keeps what people believe, what holds, and what is held back; what
is no longer muted is told at once."""

from __future__ import annotations

from typing import Any

from ...lang.condition import Cause, Clock, Muted, Parent
from ...machines.mute import Mute
from ..guarded.revise import Revised, require
from ..operator import Past
from .machine import operators


def why_not(was: object, now: object) -> str | None:
    """Why a mute cannot take over what another knows; ``None`` if it can."""
    assert isinstance(was, Muted) and isinstance(now, Muted)
    if list(map(_place, was.causes)) != list(map(_place, now.causes)):
        return "it looks at other parents or siblings, of which nobody knows who holds"
    return None if was.over.name == now.over.name else "it is of another condition"


def _place(cause: Cause) -> object:
    """Where a cause sees scopes."""
    match cause:
        case Clock():
            return "clock"
        case Parent(topic, keys, forest):
            return topic.name, keys, forest
        case storm:
            return storm.within


def outlook(_was: object, _now: object) -> str:
    """What will become of what is muted, in words."""
    return "goes on with what people know and what is held back; what is no longer muted is told"


def outlives(_was: object, _now: object) -> bool:
    """What holds does, whoever is told of it."""
    return True


def revised(was: Any, now: Any, past: Past) -> Revised:
    """Let a mute take over what another of its name knows."""
    require(was, now, why_not)
    (operator,) = operators([now])
    machine, ran = operator.machine, past.operator.machine
    assert isinstance(machine, Mute) and isinstance(ran, Mute)
    state = machine.from_bytes(ran.to_bytes(past.state))
    return Revised(operator, state, machine.freed(state, ran, past.at))
