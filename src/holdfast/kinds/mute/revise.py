"""Revisions of mutes: a revised mute carries over the active and the withheld scopes.

Notifications that are no longer withheld are emitted at once.
"""

from __future__ import annotations

from ..revision import Past, Revision, TakeOver
from .condition import Cause, ClockCause, MuteCondition, ParentCause
from .machine import MuteMachine
from .plan import operator


def refusal(was: MuteCondition, now: MuteCondition) -> str | None:
    """Return the reason why a mute cannot carry over the state of another one, or `None` if it can."""
    if list(map(_place, was.causes)) != list(map(_place, now.causes)):
        return "it depends on other parents or siblings, whose active scopes are not known"
    return None if was.over.name == now.over.name else "it is of another condition"


def _place(cause: Cause) -> object:
    """Return the way in which a cause groups scopes. If it changes, the stored counts cannot be used."""
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
    """Whether active scopes stay active. This is always so, because a mute changes only notifications."""
    return True


def take_over(_was: MuteCondition, now: MuteCondition, past: Past) -> TakeOver:
    """Carry over the state of the mute with the same name."""
    new, ran = operator(now), past.operator.machine
    assert isinstance(new.machine, MuteMachine) and isinstance(ran, MuteMachine)
    state = new.machine.load(ran.dump(past.state))
    return TakeOver(new, state, new.machine.release_unmuted(state, ran, past.watermark))


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved, rebuilds=False)
