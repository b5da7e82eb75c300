"""Checked mutes become machines and operators, of a stage after that of what they mute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...lang.condition import Clock, Condition, Muted, Parent, Storm
from ...lang.mute.check import OWN
from ...lang.ops import Levels, Truth
from ...machines.mute import Beyond, Cause, During, Key, Mute, While
from ...model.event import Event
from ...model.instant import show_duration
from ...model.qos import TIMELY
from ...model.space import Forest
from ...model.topic import Topic
from .. import scalar
from ..keys import shown
from ..operator import RETOLD, SCOPE, SINCE, STATUS, Operator, digest, told_as

FAMILY = "mutes"


def operators(mutes: Iterable[Muted], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each condition that is muted."""
    return [_operator(one) for one in mutes]


def _operator(one: Muted) -> Operator:
    run = machine(one)
    return Operator(
        family=FAMILY,
        machine=run,
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=((),),
        looks_at=dict.fromkeys(run.topics, frozenset()),
        key=(FAMILY, digest(one.name)),
        heard=frozenset(run.topics),
        called={one.name: one.target},
        waits=one.wait,
    )


def machine(one: Muted) -> Mute:
    """The machine of a mute."""
    own = tuple(a.name for a in OWN)
    return Mute(
        topic=told_as(one.over),
        name=one.topic.name,
        tells=one.tells,
        says=(STATUS, SCOPE, SINCE),
        own=(own[0], own[1], own[2]),
        dropped=frozenset(RETOLD),
        causes=tuple(_cause(cause, one.over) for cause in one.causes),
        wait=one.wait,
    )


def _cause(cause: Clock | Parent | Storm, over: Topic) -> Cause:
    match cause:
        case Clock(schedule):
            return During(schedule)
        case Parent(topic, keys, forest):
            return While(told_as(topic), _key(over, keys, forest))
        case Storm(most, within):
            keys = (within,) if within else ()
            return Beyond(most, _key(over, keys, None), shown if within else lambda _key: None)


def _key(over: Topic, keys: Levels, forest: Forest | None) -> Key:
    """The scope in which an event of a condition lies, as people read it."""
    place = Condition("", told_as(over), Truth(True), Truth(False), keys, forest, TIMELY)
    chain = scalar.chain(place)

    def key(event: Event) -> str | None:
        found = chain(event)
        return None if found is None or found[-1] is None else shown(found[-1])

    return key


def meaning(one: Muted) -> str:
    """Equal for mutes that mean the same."""
    return digest((one.target, one.over, one.causes, one.wait))


# --- in words ----------------------------------------------------------------------------------------


def in_words(one: Muted) -> dict[str, str]:
    """What a mute says, to tell what has changed."""
    causes = {f"cause {i}": _in_words(cause) for i, cause in enumerate(one.causes, 1)}
    windows = {
        f"schedule {i}": digest(cause.schedule.windows)[:12]
        for i, cause in enumerate(one.causes, 1)
        if isinstance(cause, Clock)
    }
    return {"condition": one.target, **causes, **windows, "wait": show_duration(one.wait)}


def _in_words(cause: Clock | Parent | Storm) -> str:
    match cause:
        case Clock(schedule):
            return f"by the clock of {schedule.zone}, {len(schedule.windows)} stretches"
        case Parent(topic):
            return f"while {topic.name} holds"
        case Storm(most, within):
            return f"while more than {most} hold{' within one ' + ' and '.join(within) if within else ''}"


def explained(mutes: Sequence[Muted]) -> Iterator[str]:
    """The plan of mutes, line by line."""
    return ("\n".join(_plan(one)) for one in mutes)


def _plan(one: Muted) -> Iterator[str]:
    yield f"mute {one.target}, which is evaluated all the same"
    for cause in one.causes:
        yield f"  muted     {_in_words(cause)}"
    yield "  then      what holds is told, with the time since when; what came and went is summed up"
    yield f"  waits     until a moment is over{f' and {show_duration(one.wait)} more' if one.wait else ''}"
    yield "  keeps     what holds, what people believe, and the last thing that was not told"
