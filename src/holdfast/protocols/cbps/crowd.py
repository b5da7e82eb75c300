"""What all connections of a broker have in sight, in one table of each kind.

The forwarding database searches connection by connection and stops at the first match of each [B24]: the
best there is for a few neighbours with much in store.  For a crowd of clients with little each, one
search among all of them is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ...model.protocol import Peer
from .content import MATCHES, Box, Kind
from .database import Database, Item, Table

MANY = 16
"""From how many connections on they are a crowd."""


@dataclass(frozen=True, slots=True, eq=False)
class Others(Set[Peer]):
    """All connections but some.  They are not copied: a message costs what those cost whom it concerns."""

    all: Collection[Peer]
    but: Set[Peer]

    def __contains__(self, peer: object) -> bool:
        return peer in self.all and peer not in self.but

    def __iter__(self) -> Iterator[Peer]:
        return (peer for peer in self.all if peer not in self.but)

    def __len__(self) -> int:
        return len(self.all) - sum(peer in self.all for peer in self.but)

    def __sub__(self, other: Set[Any]) -> Set[Peer]:
        return Others(self.all, {*self.but, *other})

    @classmethod
    def _from_iterable(cls, it: Iterable[Peer]) -> set[Peer]:  # type: ignore[override]
        return set(it)


@dataclass(slots=True)
class Crowd:
    """The items in sight of all connections."""

    _tables: dict[Kind, Table] = field(default_factory=dict)

    def show(self, peer: Peer, kind: Kind, item: Item) -> None:
        """An item of a connection has come in sight."""
        table = self._tables.setdefault(kind, Table(kind))
        table.insert(Item((peer, item.key), item.filter, (peer, item), None))

    def hide(self, peer: Peer, kind: Kind, item: Item) -> None:
        """An item of a connection has gone out of sight."""
        self._tables[kind].delete((peer, item.key))

    def search(self, row: Kind, box: Box, column: Kind) -> Iterator[tuple[Peer, Item]]:
        """What an item of one kind matches among the stored ones of another, and whose it is."""
        if column in self._tables:
            for found in self._tables[column].search(box, MATCHES[row, column]):
                yield found.bundle


def gathered(database: Database) -> Crowd:
    """All that a database has in sight."""
    crowd = Crowd()
    for peer, kind, table in database.tables():
        for item in table.active():
            crowd.show(peer, kind, item)
    return crowd
