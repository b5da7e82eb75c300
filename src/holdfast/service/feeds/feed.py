"""The protocol of feeds: the methods that the service requires of a connection to a source of readings."""

from __future__ import annotations

from typing import Protocol, TypedDict

from ...model.instant import Instant


class FeedStatus(TypedDict):
    """The status of a feed, as the status page and the metrics show it. The keys are part of the HTTP API."""

    name: str
    kind: str
    connected: bool
    trouble: str | None
    """Why the feed delivers nothing, if it does not."""
    caught_up: bool
    """Whether everything that was published is in the log."""
    lag: float | None
    """Seconds that the latest reading took from its time to its arrival."""
    messages: int
    waiting: int
    """Messages that have arrived and are not in the log."""
    dropped: int


class Feed(Protocol):
    """The protocol of feeds, which are sources of readings.

    The service calls all members in its event loop. It first calls ``status`` for the name of the feed, then
    ``serves`` and ``read_until``, before the feed delivers anything. Then it calls ``run`` once, as a task of
    its own. While that runs, ``serves`` and ``read_until`` are called five times per second and ``status``
    for every status request. These three must return at once and must not raise.

    ``run`` calls ``Service.submit`` with readings. It acknowledges messages to their source only after that
    call returns, because only then the log has them. A message that cannot be used goes to
    ``Service.reject``; it must not end the feed. If ``run`` raises or returns, the service logs that and
    calls it again after a delay. It must release its resources when it is cancelled.
    """

    async def run(self) -> None:
        """Submit readings until cancelled. The service calls this once, as a task of its own."""

    def serves(self, topic: str, /) -> bool:
        """Whether this feed may deliver readings of a topic. Timers over the topic wait for it."""

    def read_until(self) -> Instant | None:
        """Return the wall clock time up to which the log has everything that was published.

        Returns ``None`` if the feed is not connected or may have a backlog. Timers then wait.
        """

    def status(self) -> FeedStatus:
        """Return the status of the feed."""
