"""The tables of a logical broker as the messages that made them, and back.  [F46, F49]"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace as changed

from ...model.instant import Instant
from .message import Advertise, Coverage, Message, Publication, Source, Subscribe, Unsubscribe, bytes_of
from .state import Advert, Key, Logical
from .tree import Scope
from .wishes import Asked, Kind, Patch, Wishes


def rows(role: Logical) -> Iterator[Message]:
    """What its subscribers and advertisers said (``to`` is its scope, or none if a part was passed below),
    what it has said itself, and the latest events."""
    topic, scope = role.topic, role.scope
    for key, wishes in role.links.items():
        source = Source(wishes.at, key if isinstance(key, Scope) else None, wishes.turn)
        for p in wishes.patches:
            if p.kind == "over":
                yield Unsubscribe(topic, source, scope, p.area, p.version)
            else:
                to = scope if p.kind == "here" else None
                yield Subscribe(topic, source, to, p.area, p.epsilon, p.fulfil, p.version)
        if wishes.unfulfilled:
            yield Coverage(topic, source, scope, wishes.unfulfilled, False, wishes.newest)
    for at, advert in role.adverts.items():
        yield Advertise(topic, Source(at), scope, advert.area, advert.version)
    for at, advert in role.covering.items():
        yield Coverage(topic, Source(at), scope, advert.area, True, advert.version)
    for below, report in role.reports.items():
        yield Coverage(topic, Source(_NOWHERE, below), scope, report.area, False, report.version)
    for asked in role.asked:
        own = Source(_NOWHERE, scope)
        yield Subscribe(topic, own, scope, asked.area, asked.epsilon, asked.fulfil, asked.version)
    if role.missing:
        yield Coverage(topic, Source(_NOWHERE, scope), scope, role.missing, False, role.version)
    yield from role.latest.values()


def said(role: Logical) -> Iterator[Message]:
    """What its subscribers and advertisers said, as messages to whoever is the broker now."""
    for row in rows(role):
        if row.source.scope != role.scope and not isinstance(row, Coverage | Publication):
            yield changed(row, to=role.scope)


_NOWHERE = (0.0, 0.0)
"""Where a broker stands is for its successor to say."""


def logical(
    of: tuple[str, Scope], given: Iterable[Message], turn: Instant, version: Instant, now: Instant
) -> Logical:
    """The broker with these tables; everything counts as said now."""
    role, scope = Logical(*of, turn=turn, version=version), of[1]
    for row in given:
        match row:
            case Subscribe(source=Source(scope=own)) if own == scope:
                role.asked.append(Asked(row.area, row.epsilon, row.fulfil, row.version))
            case Subscribe():
                kind: Kind = "below" if row.to is None else "here"
                _wishes(role, row).patches.append(
                    Patch(row.area, row.version, kind, row.epsilon, row.fulfil, now)
                )
            case Unsubscribe():
                _wishes(role, row).patches.append(Patch(row.area, row.version, "over"))
            case Advertise():
                role.adverts[row.source.at] = Advert(row.area, row.version, now)
            case Coverage():
                _covered(role, row, now)
            case Publication():
                role.latest[row.home, row.publisher] = row
    return role


def _covered(role: Logical, row: Coverage, now: Instant) -> None:
    match row.source.scope:
        case _ if row.covered:
            role.covering[row.source.at] = Advert(row.area, row.version, now)
        case role.scope:
            role.missing = row.area
        case Scope() as below if below.level > role.scope.level:
            role.reports[below] = Advert(row.area, row.version, now)
        case _:
            _wishes(role, row).unfulfilled = row.area


def _wishes(role: Logical, row: Subscribe | Unsubscribe | Coverage) -> Wishes:
    source = row.source
    key: Key = source.scope or source.at
    wishes = role.links.setdefault(key, Wishes(source.at, source.turn))
    wishes.newest = max(wishes.newest, row.version)
    return wishes


def parts(given: Iterable[Message], room: int | None) -> list[tuple[Message, ...]]:
    """Rows by messages of so many bytes; one that is longer goes alone."""
    found: list[list[Message]] = [[]]
    left = room
    for row in given:
        size = bytes_of(row)
        if left is not None and room is not None:
            if found[-1] and size > left:
                found.append([])
                left = room
            left -= size
        found[-1].append(row)
    return [tuple(some) for some in found]
