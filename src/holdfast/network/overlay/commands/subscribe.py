"""The command ``subscribe``: prints deliveries to a subscriber as JSON lines."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from ....errors import UsageError
from ....files.write import event_line
from ....model.event import UNNUMBERED, Event, Notification, notification_id
from ....model.instant import Instant, show_instant
from ....model.topic import RESERVED
from ...protocols.agents.follower import ReportFollower
from ...protocols.cbps.client import (
    AgentsInterrupted,
    ConditionChange,
    ConditionUnknown,
    ReceivedNotification,
    ReleaseSubscription,
    SubmissionRefused,
    Submit,
    SubscriptionClosed,
)
from ..client import Connector
from ..tcp import TcpHost


async def subscribe(
    connect: Connector,
    requests: Iterable[Submit],
    followed: Mapping[str, ReportFollower],
    *,
    count: int | None,
    subscribed: Callable[[str], None],
    complain: Callable[[str], None] = lambda why: print(f"warning: {why}", file=sys.stderr),
    pairs: bool = False,
) -> None:
    """Print deliveries until ``count`` is reached or the task is cancelled.

    ``subscribed`` is called when the broker has the subscriptions. ``followed`` are the relationships that
    agents report. With ``pairs``, the command waits for the end of every printed start. A subscription that
    the broker refuses ends alone, with a complaint.
    """
    deliveries: asyncio.Queue[Any] = asyncio.Queue()
    async with connect(deliver=deliveries.put_nowait) as node:
        names = []
        for request in requests:
            node.ask(request)
            names.append(request.name)
        subscribed(str((await node.unless_failed(node.inquire()))["name"]))
        printed, is_released = 0, False
        while names:
            is_enough = count is not None and printed >= count
            if is_enough and not pairs:
                return
            if is_enough and not is_released:
                is_released = _release_all(node, names)
            try:
                delivery = (
                    deliveries.get_nowait()
                    if not deliveries.empty()
                    else await node.unless_failed(deliveries.get())
                )
            except asyncio.CancelledError:
                if not pairs or is_released:
                    raise
                cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
                is_released = _release_all(node, names)
                continue
            for line in lines(delivery, followed, node.now):
                sys.stdout.buffer.write(line.encode("utf-8", "replace"))
                sys.stdout.buffer.flush()
                printed += 1
            if isinstance(delivery, SubmissionRefused | SubscriptionClosed):
                _end(delivery, names, complain)


def _end(
    what: SubmissionRefused | SubscriptionClosed, names: list[str], complain: Callable[[str], None]
) -> None:
    """Remove an ended subscription. Raise a `UsageError` if the broker refused the last one."""
    names.remove(what.name)
    if isinstance(what, SubmissionRefused):
        why = f"the broker refuses '{what.name}': {what.why}"
        if not names:
            raise UsageError(why)
        complain(why)


def _release_all(node: TcpHost, names: Iterable[str]) -> bool:
    """Request that no further starts are delivered, and return true."""
    for name in names:
        node.ask(ReleaseSubscription(name))
    return True


def lines(what: Any, followed: Mapping[str, ReportFollower], now: Instant) -> Iterator[str]:
    """Yield the lines to print for a delivery."""
    match what:
        case SubmissionRefused(name, why) if name in followed and followed[name].since:
            yield from lines(AgentsInterrupted(name, why), followed, now)
        case ReceivedNotification(name) | AgentsInterrupted(name) if name in followed:
            for one in followed[name].process(what, now):
                yield event_line(one) if isinstance(one, Notification) else _unknown_line(one, now)
        case _:
            if (line := delivery_line(what, now)) is not None:
                yield line


def delivery_line(delivery: Any, now: Instant) -> str | None:
    """Return a delivery as a line; ``None`` if it is not for users."""
    match delivery:
        case ConditionChange(_, notification):
            return event_line(notification)
        case ReceivedNotification():
            event = _event(delivery, now)
            return event_line(Notification(delivery.subscription, event, "atomic", None, None))
        case ConditionUnknown():
            return _unknown_line(delivery, now)
    return None


def _event(delivery: ReceivedNotification, now: Instant) -> Event:
    """Return the event of a notification. Missing fields get default values."""
    content = delivery.content
    topic, source = content.get("topic"), content.get("source")
    time, sequence = content.get("time"), content.get("sequence")
    place, axes = content.get("place"), [content.get(axis) for axis in ("x", "y", "z")]
    return Event(
        topic if isinstance(topic, str) else "",
        time if type(time) is int else now,
        source if isinstance(source, str) else delivery.bundle.origin,
        {name: value for name, value in content.items() if name not in RESERVED},
        sequence if type(sequence) is int else delivery.bundle.sequence,
        tuple(float(at) for at in axes if isinstance(at, int | float)) or None,
        place if isinstance(place, str) else None,
    )


def _unknown_line(unknown: ConditionUnknown, now: Instant) -> str:
    """Return the line of a condition that became unknown."""
    fields: dict[str, Any] = {
        "id": notification_id(unknown.condition, unknown.scope, "unknown", unknown.since, "", UNNUMBERED),
        "subscription": unknown.condition,
        "scope": unknown.scope,
        "status": "unknown",
        "time": show_instant(now),
        "since": show_instant(unknown.since),
        **dict.fromkeys(("topic", "source", "location")),
        "attributes": {},
        "why": unknown.why,
    }
    return json.dumps(fields, ensure_ascii=False) + "\n"
