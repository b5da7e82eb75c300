"""One search table for all connections of a broker.

The forwarding database searches each connection separately and stops at its first match [B24]. That is
fastest for a few neighbours with large tables. For many clients with small tables, one search in a common
table is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ....model.protocol import Peer
from .content import MATCHES, Box, Kind
from .database import ForwardingDatabase, Item, ItemTable

MANY = 16
"""The greatest number of connections for which the database is searched without the shared index."""


@dataclass(frozen=True, slots=True, eq=False)
class AllExcept(Set[Peer]):
    """A set of connections with exceptions, as a view that copies no elements."""

    all: Collection[Peer]
    excluded: Set[Peer]

    def __contains__(self, peer: object) -> bool:
        return peer in self.all and peer not in self.excluded

    def __iter__(self) -> Iterator[Peer]:
        return (peer for peer in self.all if peer not in self.excluded)

    def __len__(self) -> int:
        return len(self.all) - sum(peer in self.all for peer in self.excluded)

    def __sub__(self, other: Set[Any]) -> Set[Peer]:
        return AllExcept(self.all, {*self.excluded, *other})

    @classmethod
    def _from_iterable(cls, it: Iterable[Peer]) -> set[Peer]:  # type: ignore[override]
        return set(it)


@dataclass(slots=True)
class SharedIndex:
    """The active items of all connections, by kind."""

    _tables: dict[Kind, ItemTable] = field(default_factory=dict)

    def add(self, peer: Peer, kind: Kind, item: Item) -> None:
        """Add an item of a connection that became active."""
        table = self._tables.setdefault(kind, ItemTable(kind))
        table.insert(Item((peer, item.key), item.filter, (peer, item), None))

    def remove(self, peer: Peer, kind: Kind, item: Item) -> None:
        """Remove an item of a connection that became covered or was deleted."""
        self._tables[kind].delete((peer, item.key))

    def search(self, row: Kind, box: Box, column: Kind) -> Iterator[tuple[Peer, Item]]:
        """Yield the stored items of one kind that match an item of another kind, each with its connection."""
        if column in self._tables:
            for found in self._tables[column].search(box, MATCHES[row, column]):
                yield found.bundle


def build_shared_index(database: ForwardingDatabase) -> SharedIndex:
    """Build the index from all active items of a database."""
    index = SharedIndex()
    for peer, kind, table in database.tables():
        for item in table.active():
            index.add(peer, kind, item)
    return index
