"""Operators of checked mutes, and the explanations of mutes. The operators run one stage after the muted
condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...engine.operator import RETOLD, Operator, Presentation, digest, topic_of_condition
from ...lang.expressions.key_text import readable_key
from ...lang.ops import Levels
from ...model.event import Event
from ...model.instant import show_duration
from ...model.space import Forest
from ..derived import group_of, operator_over
from .check import OWN
from .condition import ClockCause, MuteCondition, ParentCause, StormCause
from .machine import Cause, Key, MuteBeyond, MuteMachine, MuteWhile


def operator(condition: MuteCondition) -> Operator:
    """Return the operator of a mute."""
    return replace(
        operator_over("mute", condition.name, machine(condition), meaning(condition)),
        presentation=Presentation(aliases={condition.name: condition.target}),
        extra_wait=condition.wait,
        starts_from_standings=False,
    )


def machine(condition: MuteCondition) -> MuteMachine:
    """Return the machine of a mute."""
    return MuteMachine(
        topic=topic_of_condition(condition.over),
        name=condition.topic.name,
        output_topic=condition.output_topic,
        own=tuple(attribute.name for attribute in OWN),
        dropped=frozenset(RETOLD),
        causes=tuple(_cause(cause) for cause in condition.causes),
        wait=condition.wait,
    )


def _cause(cause: ClockCause | ParentCause | StormCause) -> Cause:
    """Return a checked cause in the form that the machine uses."""
    match cause:
        case ClockCause():
            return cause
        case ParentCause(topic, keys, forest):
            return MuteWhile(topic_of_condition(topic), _key(keys, forest))
        case StormCause(most, within):
            keys = (within,) if within else ()
            return MuteBeyond(most, _key(keys, None), readable_key if within else lambda _key: None)


def _key(keys: Levels, forest: Forest | None) -> Key:
    """Return a function that computes the label of the scope that an event of a condition lies in."""
    group = group_of(keys, forest)

    def key(event: Event) -> str | None:
        found = group(event)
        return None if found is None else readable_key(found)

    return key


def meaning(condition: MuteCondition) -> str:
    """Return a digest that is equal for mutes with equal meaning."""
    return digest((condition.target, condition.over, condition.causes, condition.wait))


# --- in words ----------------------------------------------------------------------------------------


def describe(condition: MuteCondition) -> dict[str, str]:
    """Return the parts of a mute as text, by name, for the comparison of revisions."""
    causes = {f"cause {i}": _in_words(cause) for i, cause in enumerate(condition.causes, 1)}
    windows = {
        f"schedule {i}": digest(cause.schedule.windows)[:12]
        for i, cause in enumerate(condition.causes, 1)
        if isinstance(cause, ClockCause)
    }
    return {"condition": condition.target, **causes, **windows, "wait": show_duration(condition.wait)}


def _in_words(cause: ClockCause | ParentCause | StormCause) -> str:
    """Return a cause as text, for explanations and for the comparison of revisions."""
    match cause:
        case ClockCause(schedule):
            return f"by the clock of {schedule.zone}, {len(schedule.windows)} windows"
        case ParentCause(topic):
            return f"while {topic.name} is active"
        case StormCause(most, within):
            return (
                f"while more than {most} are active{' within one ' + ' and '.join(within) if within else ''}"
            )


def explain(condition: MuteCondition) -> Iterator[str]:
    """Explain a mute, line by line."""
    yield f"mute {condition.target}, which is still evaluated"
    for cause in condition.causes:
        yield f"  muted     {_in_words(cause)}"
    yield "  then      active scopes are notified with their start; those that ended are counted in a summary"
    more = f" and {show_duration(condition.wait)} more" if condition.wait else ""
    yield f"  waits     for the watermark{more}"
    yield "  keeps     active scopes, what subscribers know, and the last notification withheld"
