"""The conditions that a broker watches for its connections."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...model.protocol import Peer
from .condition import Condition, Hosted, Replicated
from .content import MATCHES, Content, box_of
from .context import passes
from .database import Item
from .filtering import Filtering
from .hosting import Hosting
from .message import Part
from .routing import Routing, Stored
from .watch import Moment, Watch


@dataclass(slots=True)
class Watching:
    """All watches of a broker, by connection and part; one that looks at several kinds of notifications
    has several parts, and goes by the first."""

    routing: Routing
    watches: dict[Peer, dict[Part, Watch]] = field(default_factory=dict)
    hosts: dict[str, Hosting] = field(default_factory=dict)
    """Those that may be run here, by their timers."""

    def __len__(self) -> int:
        return sum(map(len, self.watches.values()))

    def all(self) -> dict[Watch, None]:
        """Every watch, once."""
        return {watch: None for watches in self.watches.values() for watch in watches.values()}

    @property
    def hosted(self) -> int:
        """How many conditions are run here."""
        return sum(host.where == "here" for host in self.hosts.values())

    def of(self, stored: Stored) -> dict[Watch, None]:
        """The watches for a bundle's subscriptions."""
        mine = self.watches.get(stored.source, {})
        parts = (Part(stored.bundle.key, i) for i in range(len(stored.bundle.subscriptions)))
        return {mine[part]: None for part in parts if part in mine}

    def find(self, part: Part) -> Watch | None:
        """The watch for a subscription that is in force."""
        stored = self.routing.in_force.get(part.bundle)
        return None if stored is None else self.watches.get(stored.source, {}).get(part)

    # --- coming and going ---

    def begin(self, stored: Stored, part: Part, condition: Condition) -> None:
        """Watch for a subscription that has just been stored."""
        watch = self._watch(stored, part, condition)
        self.watches.setdefault(stored.source, {})[part] = watch
        box = stored.bundle.subscriptions[part.place].filter.box
        for peer in self.routing.database.peers("advertisement"):
            if peer == stored.source:
                continue
            table = self.routing.database.table(peer, "advertisement")
            for item in table.search(box, MATCHES["subscription", "advertisement"]):
                watch.advertised(peer, item.filter)

    def _watch(self, stored: Stored, part: Part, condition: Condition) -> Watch:
        if isinstance(condition, Replicated):
            return Filtering(part, stored, condition)
        assert isinstance(condition, Hosted)
        same = (watch for watch in self.of(stored) if watch.condition is condition)
        if (known := next(same, None)) is not None:
            return known
        host = Hosting(part, stored, condition)
        self.hosts[host.timer] = host
        return host

    def end(self, watch: Watch, moment: Moment) -> None:
        """Watch no longer."""
        if isinstance(watch, Hosting):
            watch.stop(moment)
            del self.hosts[watch.timer]
        mine = self.watches[watch.peer]
        for i in range(len(watch.stored.bundle.subscriptions)):
            if mine.get(part := Part(watch.stored.bundle.key, i)) is watch:
                del mine[part]
        if not mine:
            del self.watches[watch.peer]

    def advertised(self, peer: Peer, item: Item) -> Iterator[Watch]:
        """An advertisement of a connection has come in sight; the watches that it concerns."""
        for watch in self._concerned_by(peer, item):
            watch.advertised(peer, item.filter)
            yield watch

    def unadvertised(self, peer: Peer, item: Item) -> Iterator[Watch]:
        """An advertisement of a connection has gone out of sight; the watches that it concerns."""
        for watch in self._concerned_by(peer, item):
            watch.unadvertised(peer, item.filter)
            yield watch

    def _concerned_by(self, peer: Peer, advertisement: Item) -> list[Watch]:
        return [
            self.watches[stored.source][part]
            for alike in self.routing.watchers("advertisement", advertisement.filter.box)
            for part, stored in alike.items()
            if stored.source != peer
        ]

    # --- events ---

    def concerned(
        self, content: Content, peers: Collection[Peer], context: Content | None = None
    ) -> Iterator[tuple[Watch, Any]]:
        """The watches of some connections that a notification may matter to, and how they see it.

        Equal conditions look at it together.
        """
        for alike in self.routing.watchers("notification", box_of(content)):
            seen: Any = None
            for part, stored in alike.items():
                if stored.source not in peers or not (
                    context is None or passes(stored.bundle.incoming, context)
                ):
                    continue
                watch = self.watches[stored.source][part]
                if seen is None:
                    seen = watch.sees(content)
                    if seen is None:
                        break
                yield watch, seen
