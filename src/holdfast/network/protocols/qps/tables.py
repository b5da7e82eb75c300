"""Conversion of a logical broker's tables to messages and back.  [F46, F49]"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace as changed

from ....model.instant import Instant
from .message import (
    AreaCoverage,
    QpsAdvertise,
    QpsMessage,
    QpsSource,
    QpsSubscribe,
    QpsUnsubscribe,
    RoutedPublication,
    bytes_of,
)
from .request_table import AreaPatch, AreaRequest, Kind, RequestTable
from .state import AdvertArea, Key, LogicalBroker
from .tree import QuadScope


def rows(role: LogicalBroker) -> Iterator[QpsMessage]:
    """Yield the tables of a broker as messages.

    These are the messages of its subscribers and advertisers, its own messages, and the latest events. In a
    message of a subscriber, ``to`` is the broker's scope, or ``None`` if the part was passed below.
    """
    topic, scope = role.topic, role.scope
    for key, wishes in role.links.items():
        source = QpsSource(wishes.at, key if isinstance(key, QuadScope) else None, wishes.turn)
        for p in wishes.patches:
            if p.kind == "over":
                yield QpsUnsubscribe(topic, source, scope, p.area, p.version)
            else:
                yield QpsSubscribe(topic, source, scope if p.kind == "here" else None, *p.terms)
        if wishes.unfulfilled:
            yield AreaCoverage(topic, source, scope, wishes.unfulfilled, False, wishes.newest)
    for at, advert in role.adverts.items():
        yield QpsAdvertise(topic, QpsSource(at), scope, advert.area, advert.version)
    for at, advert in role.covering.items():
        yield AreaCoverage(topic, QpsSource(at), scope, advert.area, True, advert.version)
    for below, report in role.reports.items():
        yield AreaCoverage(topic, QpsSource(_NOWHERE, below), scope, report.area, False, report.version)
    for asked in role.requests:
        own = QpsSource(_NOWHERE, scope)
        yield QpsSubscribe(topic, own, scope, asked.area, asked.epsilon, asked.fulfil, asked.version)
    if role.missing:
        yield AreaCoverage(topic, QpsSource(_NOWHERE, scope), scope, role.missing, False, role.version)
    yield from role.latest.values()


def subscriber_messages(role: LogicalBroker) -> Iterator[QpsMessage]:
    """Yield the messages of a broker's subscribers and advertisers, addressed to the current holder of the
    role.
    """
    for row in rows(role):
        if row.source.scope != role.scope and not isinstance(row, AreaCoverage | RoutedPublication):
            yield changed(row, to=role.scope)


_NOWHERE = (0.0, 0.0)
"""Placeholder for the broker's address, which its successor sets."""


def broker_from(
    of: tuple[str, QuadScope], given: Iterable[QpsMessage], turn: Instant, version: Instant, now: Instant
) -> LogicalBroker:
    """Build a broker from its tables as messages. All entries count as renewed at ``now``."""
    role, scope = LogicalBroker(*of, turn=turn, version=version), of[1]
    for row in given:
        match row:
            case QpsSubscribe(source=QpsSource(scope=own)) if own == scope:
                role.requests.append(AreaRequest(row.area, row.epsilon, row.fulfil, row.version))
            case QpsSubscribe():
                kind: Kind = "below" if row.to is None else "here"
                patch = AreaPatch(row.area, row.version, kind, row.epsilon, row.fulfil, now)
                _requests_of(role, row).patches.append(patch)
            case QpsUnsubscribe():
                _requests_of(role, row).patches.append(AreaPatch(row.area, row.version, "over"))
            case QpsAdvertise():
                role.adverts[row.source.at] = AdvertArea(row.area, row.version, now)
            case AreaCoverage():
                _add_coverage(role, row, now)
            case RoutedPublication():
                role.latest[row.home, row.publisher] = row
    return role


def _add_coverage(role: LogicalBroker, row: AreaCoverage, now: Instant) -> None:
    """Add a coverage message to the table of a broker that it belongs to."""
    match row.source.scope:
        case _ if row.covered:
            role.covering[row.source.at] = AdvertArea(row.area, row.version, now)
        case role.scope:
            role.missing = row.area
        case QuadScope() as below if below.level > role.scope.level:
            role.reports[below] = AdvertArea(row.area, row.version, now)
        case _:
            _requests_of(role, row).unfulfilled = row.area


def _requests_of(role: LogicalBroker, row: QpsSubscribe | QpsUnsubscribe | AreaCoverage) -> RequestTable:
    source = row.source
    key: Key = source.scope or source.at
    wishes = role.links.setdefault(key, RequestTable(source.at, source.turn))
    wishes.newest = max(wishes.newest, row.version)
    return wishes


def split_rows(given: Iterable[QpsMessage], room: int | None) -> list[tuple[QpsMessage, ...]]:
    """Divide rows into messages of at most ``room`` bytes. A longer row gets a message of its own."""
    found: list[list[QpsMessage]] = [[]]
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
