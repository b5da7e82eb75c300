"""A revised mute carries over which scopes are active and withheld; notifications that are no longer withheld
are emitted at once.
"""

from __future__ import annotations

from ..revision import Past, Revision, TakeOver
from .condition import Cause, ClockCause, MuteCondition, ParentCause
from .machine import MuteMachine
from .plan import operator


def refusal(was: MuteCondition, now: MuteCondition) -> str | None:
    """Why a mute cannot carry over the state of another one; `None` if it can."""
    if list(map(_place, was.causes)) != list(map(_place, now.causes)):
        return "it depends on other parents or siblings, whose active scopes are not known"
    return None if was.over.name == now.over.name else "it is of another condition"


def _place(cause: Cause) -> object:
    """How a cause groups scopes; a change of it makes the stored counts useless."""
    match cause:
        case ClockCause():
            return "clock"
        case ParentCause(topic, keys, forest):
            return topic.name, keys, forest
        case storm:
            return storm.within


def preview(_was: object, _now: object) -> str:
    """Describe in words the effect of a revision on muted scopes."""
    return "continues with what subscribers know and what is withheld; unmuted scopes are notified"


def is_preserved(_was: object, _now: object) -> bool:
    """Whether active scopes stay active: a mute changes only who is notified."""
    return True


def take_over(_was: MuteCondition, now: MuteCondition, past: Past) -> TakeOver:
    """Carry over the state of the mute of the same name."""
    new, ran = operator(now), past.operator.machine
    assert isinstance(new.machine, MuteMachine) and isinstance(ran, MuteMachine)
    state = new.machine.load(ran.dump(past.state))
    return TakeOver(new, state, new.machine.release_unmuted(state, ran, past.watermark))


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved, rebuilds=False)
