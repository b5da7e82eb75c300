"""The plan of guarded states in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...lang.condition import Guarded
from ...lang.show import show
from ...model.guard import Hold
from ...model.instant import show_duration
from ..filters import explain as filters
from .machine import lengths_of, operators


def explained(conditions: Iterable[Guarded]) -> Iterator[str]:
    """The plan of every machine that they need."""
    for equal, some in _machines(conditions):
        yield "\n".join([*_head(equal, some), *_tail(some)])


def explained_on_spark(conditions: Iterable[Guarded]) -> Iterator[Iterator[str]]:
    """The plan of every machine on Spark, line by line."""
    for equal, some in _machines(conditions):
        yield iter([*_head(equal, some), f"  shuffle   {_shuffled(some[0])}", *_tail(some)])


def _machines(
    conditions: Iterable[Guarded],
) -> Iterator[tuple[tuple[tuple[str, ...], ...], list[Guarded]]]:
    """The names that each machine serves, and the states that it runs."""
    by_name = {condition.name: condition for condition in conditions}
    for operator in operators(by_name.values()):
        yield operator.names, [by_name[names[0]] for names in operator.names]


def _head(equal: Iterable[tuple[str, ...]], some: Sequence[Guarded]) -> Iterator[str]:
    for names, one in zip(equal, some, strict=True):
        yield from _said(names, one)
    yield f"  scopes    {filters.scopes(some[0])}"


def _said(names: tuple[str, ...], one: Guarded) -> Iterator[str]:
    yield f"guarded state {', '.join(names)} on {one.topic.name}"
    yield f"  starts    {show(one.enter)}{_held(one.care.enter)}"
    yield f"  ends      {show(one.exit)}{_held(one.care.exit)}"
    yield from in_silence(one)
    if one.care.initially != "off" or one.care.quietly:
        yield f"  begins    {one.care.initially}" + ", without a word" * one.care.quietly
    if one.roster:
        yield f"  expects   {len(one.roster)} scope{'s' * (len(one.roster) != 1)} before they speak"


def in_silence(one: Guarded) -> Iterator[str]:
    """What becomes of a scope without readings."""
    if one.care.unknown is not None:
        after = show_duration(one.care.unknown)
        yield f"  unknown   {after} after the last reading; told once, the status stays as it was"
    if one.care.forget is not None:
        yield f"  forgets   a scope {show_duration(one.care.forget)} after its last reading"


def _tail(some: Sequence[Guarded]) -> Iterator[str]:
    yield f"  delivery  {filters.delivery(some[0])}"
    yield f"  wakes     {_wakes(some)}"
    yield f"  drops     {_dropped(some[0])}"
    yield (
        f"  keeps     for each scope {8 + 40 * len(some)} bytes, its name (about 30 bytes and the text), and "
        f"the reading{'s' * (len(some) > 1)} that {'are' if len(some) > 1 else 'is'} told when time alone "
        "decides"
    )
    yield from filters.remembers(some[0])


def _held(hold: Hold) -> str:
    if hold.readings:
        return f", at {hold.readings} readings in a row" if hold.readings > 1 else ", at one reading"
    if hold.column:
        return f", for {hold.column} without interruption"
    return f", for {show_duration(hold.length)} without interruption" if hold.length else ""


def _wakes(some: Sequence[Guarded]) -> str:
    """When time alone makes them speak."""
    guards = any(hold.length or hold.column for one in some for hold in (one.care.enter, one.care.exit))
    quiet = any(lengths_of(one) for one in some)
    return " and ".join(
        words
        for words, is_so in (
            ("when a guard has lasted", guards),
            ("when a scope has been silent for long enough", quiet),
            ("when a scope becomes unknown", any(one.care.unknown is not None for one in some)),
            ("when a scope is forgotten", any(one.care.forget is not None for one in some)),
        )
        if is_so
    ) or "never: only readings make it speak"  # fmt: skip


def _dropped(one: Guarded) -> str:
    if one.delivery.wait is not None:
        return "events in no scope, where they are read"
    return "events in no scope; of what is in order already, readings between others that say the same"


def _shuffled(one: Guarded) -> str:
    if one.roster:
        return "to one shard: who is expected must be known in one place"
    return filters.shuffled(one)


def in_words(one: Guarded) -> dict[str, str]:
    """What a condition says, to tell what has changed."""
    care = one.care
    return filters.in_words(one) | {
        "guard of the start": _held(care.enter),
        "guard of the end": _held(care.exit),
        "time until it is unknown": "" if care.unknown is None else show_duration(care.unknown),
        "time until it is forgotten": "" if care.forget is None else show_duration(care.forget),
        "beginning": care.initially + ", quietly" * care.quietly,
        "roster": ", ".join(",".join(row) for row in one.roster),
    }
