"""The forwarding database: the items that each connection has stored, and the search for matches. [B22–B25]

Each connection has a table for each kind of item, so that the search of a connection can stop at its first
match. An item that is covered by another item of its table stays in the table as inactive. It becomes active
when the covering item is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from ....model.protocol import Peer
from .attribute_index import AttributeIndex, EntrySlice
from .columns import BoxColumns
from .content import COVERED_BY, COVERS, MATCHES, Box, BoxRelation, Filter, Kind, is_related
from .ranges import Line, line

MANY = 1000
"""With more candidates than this, a search builds columns if the relation allows it. The columns are
stored.
"""

FEW = 64
"""With more candidates than this, a search uses columns that exist already."""

BY_COLUMNS: Mapping[BoxRelation, Callable[[BoxColumns, Box], Iterator[int]]] = {
    BoxRelation("superset", "subset"): BoxColumns.containing,
    BoxRelation("subset", "superset"): BoxColumns.within,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A stored filter, with the bundle that it belongs to and its covering group.

    An item covers only items of its group. An item whose group is ``None`` takes no part in covering [B13].
    ``pinned`` are the attributes that determine its scopes. An item that covers it must not pin other
    attributes.
    """

    key: Hashable
    filter: Filter
    bundle: Any = None
    group: Hashable = ()
    pinned: frozenset[str] = frozenset()


class InsertResult(NamedTuple):
    """The result of an insertion: the item that covers the new item, or else the items that the new item
    covers.
    """

    covered_by: Item | None
    covered: tuple[Item, ...]


class DeleteResult(NamedTuple):
    """The result of a deletion: the item, whether it was active, and the items that became active as a
    result.
    """

    item: Item
    was_active: bool
    restored: tuple[Item, ...]


@dataclass(slots=True)
class ItemTable:
    """The items of one kind from one connection; items that no other item covers are *active*."""

    kind: Kind
    _active: dict[int, Item] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _covered: dict[Hashable, tuple[Item, Hashable]] = field(default_factory=dict)
    _covered_by: dict[Hashable, dict[Hashable, None]] = field(default_factory=dict)
    _shelves: dict[int, dict[tuple[str, Line], AttributeIndex]] = field(default_factory=dict)
    """The indexes of the active items, by the number of an item's fields and then by attribute."""
    _unindexed: dict[int, None] = field(default_factory=dict)
    """The numbers of items without fields, or with a field that no value satisfies."""
    _columns: BoxColumns | None = field(default=None, compare=False)
    """The columns of all items except unindexed ones, built when a search had too many candidates."""
    _next: int = 0

    def __len__(self) -> int:
        return len(self._numbers) + len(self._covered)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers or key in self._covered

    def get(self, key: Hashable) -> Item | None:
        """Return the item with a key, active or covered."""
        if key in self._numbers:
            return self._active[self._numbers[key]]
        return self._covered[key][0] if key in self._covered else None

    def active(self) -> Iterator[Item]:
        """Iterate over the items that no other item covers."""
        return iter(self._active.values())

    def items(self) -> Iterator[Item]:
        """Iterate over all items: first the active ones, then the covered ones."""
        yield from self._active.values()
        yield from (item for item, _ in self._covered.values())

    def insert(self, item: Item) -> InsertResult:
        """Store an item under a new key and check covering in both directions. [B12]"""
        assert item.key not in self, f"there is an item {item.key!r} already"
        wider = (other for other in self._related(item, COVERED_BY) if other.pinned <= item.pinned)
        coverer = next(wider, None)
        if coverer is not None:
            self._cover(item, coverer.key)
            return InsertResult(coverer, ())
        covered = tuple(other for other in self._related(item, COVERS) if item.pinned <= other.pinned)
        self._activate(item)
        for covered_item in covered:
            self._deactivate(covered_item)
            self._cover(covered_item, item.key)
            for key in self._covered_by.pop(covered_item.key, ()):
                self._cover(self._covered[key][0], item.key)
        return InsertResult(None, covered)

    def delete(self, key: Hashable) -> DeleteResult | None:
        """Delete an item; return ``None`` if there is no item with this key. Items that only it covered
        become active.
        """
        if key in self._covered:
            item, coverer = self._covered.pop(key)
            self._covered_by[coverer].pop(key)
            return DeleteResult(item, False, ())
        if key not in self._numbers:
            return None
        item = self._active[self._numbers[key]]
        self._deactivate(item)
        beneath = [self._covered.pop(other)[0] for other in self._covered_by.pop(key, ())]
        for other in beneath:
            self.insert(other)
        return DeleteResult(item, True, tuple(other for other in beneath if other.key in self._numbers))

    def _related(self, item: Item, covering: Mapping[Kind, BoxRelation]) -> Iterator[Item]:
        if item.group is None or self.kind not in covering:
            return iter(())
        found = self.search(item.filter.box, covering[self.kind])
        return (other for other in found if other.group == item.group)

    def _cover(self, item: Item, coverer: Hashable) -> None:
        self._covered[item.key] = (item, coverer)
        self._covered_by.setdefault(coverer, {})[item.key] = None

    def _activate(self, item: Item) -> None:
        """Add an item to the active items and to the indexes."""
        number, self._next = self._next, self._next + 1
        self._active[number] = item
        self._numbers[item.key] = number
        box = item.filter.box
        if not box or item.filter.is_empty:
            self._unindexed[number] = None
            return
        if self._columns is not None:
            if self._columns.fits(box):
                self._columns.add({number: box})
            else:
                self._columns = None
        shelves = self._shelves.setdefault(len(box), {})
        for name, values in box.items():
            shelves.setdefault((name, line(values)), AttributeIndex()).add(number, values)

    def _deactivate(self, item: Item) -> None:
        """Remove an item from the active items and from the indexes."""
        number, box = self._numbers.pop(item.key), item.filter.box
        del self._active[number]
        if number in self._unindexed:
            del self._unindexed[number]
            return
        if self._columns is not None:
            self._columns.remove(number)
        shelves = self._shelves[len(box)]
        for name, values in box.items():
            place = name, line(values)
            shelves[place].remove(number, values)
            if not shelves[place]:
                del shelves[place]
        if not shelves:
            del self._shelves[len(box)]

    def search(self, box: Box, relation: BoxRelation) -> Iterator[Item]:
        """Yield the active items to which a box has a relation.

        The search counts matching attributes [B24]. An item that must match in ``needed`` of ``n`` attributes
        is among the candidates of any ``n - needed + 1`` attributes, so only the shortest lists are scanned.
        The table must not change during the iteration.
        """
        if not all(box.values()) or not box:
            numbers: Iterable[int] = self._active
        else:
            numbers = chain(self._candidates(box, relation), self._unindexed)
        for number in numbers:
            if is_related(box, self._active[number].filter.box, relation):
                yield self._active[number]

    def _candidates(self, box: Box, relation: BoxRelation) -> Iterable[int]:
        """Return the numbers of a superset of the items to which a box has a relation."""
        lists = (_shortest(shelves, box, relation, size) for size, shelves in self._shelves.items())
        slices = list(chain.from_iterable(lists))
        enough = MANY if self._columns is None else FEW
        if sum(slice_.size for slice_ in slices) > enough and relation in BY_COLUMNS:
            if self._columns is None:
                indexed = {n: i for n, i in self._active.items() if n not in self._unindexed}
                self._columns = BoxColumns({number: item.filter.box for number, item in indexed.items()})
            return BY_COLUMNS[relation](self._columns, box)
        return dict.fromkeys(chain.from_iterable(slice_.item_numbers() for slice_ in slices))


def _shortest(
    shelves: Mapping[tuple[str, Line], AttributeIndex], box: Box, relation: BoxRelation, size: int
) -> Iterator[EntrySlice]:
    """Return the shortest lists that contain every matching item with ``size`` fields."""
    needed = len(box) if relation.fields == "subset" else size
    if needed > min(size, len(box)):
        return iter(())
    lists = []
    for name, values in box.items():
        index = shelves.get((name, line(values)))
        lists.append([] if index is None else index.candidates(values, relation.contents))
    lists.sort(key=lambda slices: sum(slice_.size for slice_ in slices))
    return chain.from_iterable(lists[: len(box) - needed + 1])


@dataclass(slots=True)
class ForwardingDatabase:
    """The tables of a broker, by kind and connection."""

    _tables: dict[Kind, dict[Peer, ItemTable]] = field(default_factory=dict)

    def table(self, peer: Peer, kind: Kind) -> ItemTable:
        """Return the table of a connection and kind; an empty one if nothing is stored."""
        return self._tables.get(kind, {}).get(peer) or ItemTable(kind)

    def tables(self) -> Iterator[tuple[Peer, Kind, ItemTable]]:
        """Yield every table with its connection and kind."""
        for kind, of_kind in self._tables.items():
            yield from ((peer, kind, table) for peer, table in of_kind.items())

    def insert(self, peer: Peer, kind: Kind, item: Item) -> InsertResult:
        """Store an item of a connection; return its covering relations."""
        return self._tables.setdefault(kind, {}).setdefault(peer, ItemTable(kind)).insert(item)

    def delete(self, peer: Peer, kind: Kind, key: Hashable) -> DeleteResult | None:
        """Delete an item of a connection; return ``None`` if there is no item with this key."""
        tables = self._tables.get(kind, {})
        if peer not in tables:
            return None
        deleted = tables[peer].delete(key)
        if not tables[peer]:
            self._drop(peer, kind)
        return deleted

    def forget(self, peer: Peer) -> dict[Kind, tuple[Item, ...]]:
        """Delete all items of a connection and return them by kind.  [B21]"""
        kinds = [kind for kind, tables in self._tables.items() if peer in tables]
        return {kind: tuple(self._drop(peer, kind).items()) for kind in kinds}

    def _drop(self, peer: Peer, kind: Kind) -> ItemTable:
        dropped = self._tables[kind].pop(peer)
        if not self._tables[kind]:
            del self._tables[kind]
        return dropped

    def peers(self, kind: Kind) -> tuple[Peer, ...]:
        """Return the connections that have stored items of a kind."""
        return tuple(self._tables.get(kind, ()))

    def __len__(self) -> int:
        return sum(len(table) for _, _, table in self.tables())

    def find_matches(
        self, row: Kind, box: Box, column: Kind, peers: Iterable[Peer], callback: Callable[[Peer, Item], bool]
    ) -> list[Peer]:
        """Call ``callback`` with each match of each connection until it returns true for that connection.
        [B25]

        Return the connections for which ``callback`` returned true, in the order of ``peers``.
        """
        relation = MATCHES.get((row, column))
        if relation is None:
            return []
        found = ((peer, self.table(peer, column).search(box, relation)) for peer in peers)
        return [peer for peer, items in found if any(callback(peer, item) for item in items)]
