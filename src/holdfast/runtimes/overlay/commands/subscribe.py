"""What a subscriber hears, as JSON lines."""

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
from ....protocols.agents.following import Following
from ....protocols.cbps.client import Closed, Heard, Interrupted, Refused, Release, Submit, Told, Unknown
from ....protocols.cbps.ranges import Value
from ..client import Connector
from ..tcp import TcpHost


async def subscribe(
    connect: Connector,
    requests: Iterable[Submit],
    followed: Mapping[str, Following],
    *,
    count: int | None,
    subscribed: Callable[[str], None],
    complain: Callable[[str], None] = lambda why: print(f"warning: {why}", file=sys.stderr),
    pairs: bool = False,
) -> None:
    """Print what is heard, until it is enough or somebody stops us; say when the broker knows.  ``followed``
    are the relationships that agents report.  With ``pairs`` what was told to start is waited for.  What the
    broker refuses ends alone, with a complaint."""
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with connect(deliver=heard.put_nowait) as node:
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
                is_released = _released(node, names)
            try:
                what = heard.get_nowait() if not heard.empty() else await node.unless_failed(heard.get())
            except asyncio.CancelledError:
                if not pairs or is_released:
                    raise
                cast("asyncio.Task[Any]", asyncio.current_task()).uncancel()
                is_released = _released(node, names)
                continue
            for line in lines(what, followed, node.now):
                sys.stdout.buffer.write(line.encode("utf-8", "replace"))
                sys.stdout.buffer.flush()
                printed += 1
            if isinstance(what, Refused | Closed):
                _end(what, names, complain)


def _end(what: Refused | Closed, names: list[str], complain: Callable[[str], None]) -> None:
    """A subscription has ended; if it was refused and no other is left, that is the end of all."""
    names.remove(what.name)
    if isinstance(what, Refused):
        why = f"the broker refuses '{what.name}': {what.why}"
        if not names:
            raise UsageError(why)
        complain(why)


def _released(node: TcpHost, names: Iterable[str]) -> bool:
    """Ask for no more starts."""
    for name in names:
        node.ask(Release(name))
    return True


def lines(what: Any, followed: Mapping[str, Following], now: Instant) -> Iterator[str]:
    """What was heard, as lines."""
    match what:
        case Refused(name, why) if name in followed and followed[name].since:
            yield from lines(Interrupted(name, why), followed, now)
        case Heard(name) | Interrupted(name) if name in followed:
            for one in followed[name].hear(what, now):
                yield event_line(one) if isinstance(one, Notification) else _unknown_line(one, now)
        case _:
            if (line := shown(what, now)) is not None:
                yield line


def shown(what: Any, now: Instant) -> str | None:
    """What was heard as a line, if it is for people."""
    match what:
        case Told(_, notification):
            return event_line(notification)
        case Heard():
            return event_line(Notification(what.subscription, _event(what, now), "atomic", None, None))
        case Unknown():
            return _unknown_line(what, now)
    return None


def _event(heard: Heard, now: Instant) -> Event:
    """The event of a notification; if it is none of ours, as much of one as it is."""
    content = heard.content
    topic, source = content.get("topic"), content.get("source")
    time, sequence = content.get("time"), content.get("sequence")
    return Event(
        topic if isinstance(topic, str) else "",
        time if type(time) is int else now,
        source if isinstance(source, str) else heard.bundle.origin,
        {name: value for name, value in content.items() if name not in RESERVED},
        sequence if type(sequence) is int else heard.bundle.sequence,
        _location(content.get(axis) for axis in ("x", "y", "z")),
        place if isinstance(place := content.get("place"), str) else None,
    )


def _location(found: Iterable[Value | None]) -> tuple[float, ...] | None:
    return tuple(float(at) for at in found if isinstance(at, int | float)) or None


def _unknown_line(what: Unknown, now: Instant) -> str:
    """A condition that held, and of which nobody knows any more."""
    said: dict[str, Any] = {
        "id": notification_id(what.condition, what.scope, "unknown", what.since, "", UNNUMBERED),
        "subscription": what.condition,
        "scope": what.scope,
        "status": "unknown",
        "time": show_instant(now),
        "since": show_instant(what.since),
        "topic": None,
        "source": None,
        "location": None,
        "attributes": {},
        "why": what.why,
    }
    return json.dumps(said, ensure_ascii=False) + "\n"
