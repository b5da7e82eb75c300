"""The forwarding database: what each connection has stored, and which of it matches.  [B22–B25]

One table for each connection and kind of item, so that the search of a connection can stop at its
first success.  An item that another one of its table covers stays in the table, out of sight, and
comes back when the other goes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from ...model.protocol import Peer
from .attributes import Shelf, Stretch
from .columns import Columns
from .content import COVERED_BY, COVERS, MATCHES, Box, Filter, Kind, Relation, related
from .ranges import Line, line

MANY = 1000
"""With more candidates than this a search goes by columns, if it can; they are kept from then on."""

FEW = 64
"""With more than this it does so when the columns are there already."""

BY_COLUMNS: Mapping[Relation, Callable[[Columns, Box], Iterator[int]]] = {
    Relation("superset", "subset"): Columns.containing,
    Relation("subset", "superset"): Columns.within,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A stored filter, the bundle that it came in, and the group in which it may cover and be covered.

    An item whose group is ``None`` takes no part in covering [B13].  ``pinned`` are the attributes that tell
    which scopes it reaches: what covers it pins no others.
    """

    key: Hashable
    filter: Filter
    bundle: Any = None
    group: Hashable = ()
    pinned: frozenset[str] = frozenset()


class Inserted(NamedTuple):
    """What an insertion changed: who covers the new item, or else what it covers from now on."""

    covered_by: Item | None
    covered: tuple[Item, ...]


class Deleted(NamedTuple):
    """What a deletion changed: the item, whether it was in sight, and what came in sight again."""

    item: Item
    active: bool
    restored: tuple[Item, ...]


@dataclass(slots=True)
class Table:
    """The items of one kind from one connection; those that no other covers are *active*."""

    kind: Kind
    _active: dict[int, Item] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _covered: dict[Hashable, tuple[Item, Hashable]] = field(default_factory=dict)
    _beneath: dict[Hashable, dict[Hashable, None]] = field(default_factory=dict)
    _shelves: dict[int, dict[tuple[str, Line], Shelf]] = field(default_factory=dict)
    """By the number of an item's fields, then by attribute."""
    _odd: dict[int, None] = field(default_factory=dict)
    """Items without fields, or with one that nothing satisfies."""
    _columns: Columns | None = field(default=None, compare=False)
    """All but the odd ones, once a search had too many candidates."""
    _next: int = 0

    def __len__(self) -> int:
        return len(self._numbers) + len(self._covered)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers or key in self._covered

    def get(self, key: Hashable) -> Item | None:
        """The item of that key, in sight or not."""
        if key in self._numbers:
            return self._active[self._numbers[key]]
        return self._covered[key][0] if key in self._covered else None

    def active(self) -> Iterator[Item]:
        """The items that no other covers."""
        return iter(self._active.values())

    def items(self) -> Iterator[Item]:
        """All items."""
        yield from self._active.values()
        yield from (item for item, _ in self._covered.values())

    def insert(self, item: Item) -> Inserted:
        """Store an item under a new key; covering is looked at in both directions.  [B12]"""
        assert item.key not in self, f"there is an item {item.key!r} already"
        coverer = next((one for one in self._related(item, COVERED_BY) if one.pinned <= item.pinned), None)
        if coverer is not None:
            self._hide(item, coverer.key)
            return Inserted(coverer, ())
        covered = tuple(one for one in self._related(item, COVERS) if item.pinned <= one.pinned)
        self._show(item)
        for other in covered:
            self._withdraw(other)
            self._hide(other, item.key)
            for key in self._beneath.pop(other.key, ()):
                self._hide(self._covered[key][0], item.key)
        return Inserted(None, covered)

    def delete(self, key: Hashable) -> Deleted | None:
        """Remove an item; what only it covered is in sight again.  Nothing if there is none."""
        if key in self._covered:
            item, coverer = self._covered.pop(key)
            self._beneath[coverer].pop(key)
            return Deleted(item, False, ())
        if key not in self._numbers:
            return None
        item = self._active[self._numbers[key]]
        self._withdraw(item)
        beneath = [self._covered.pop(other)[0] for other in self._beneath.pop(key, ())]
        for other in beneath:
            self.insert(other)
        return Deleted(item, True, tuple(other for other in beneath if other.key in self._numbers))

    def _related(self, item: Item, covering: Mapping[Kind, Relation]) -> Iterator[Item]:
        if item.group is None or self.kind not in covering:
            return iter(())
        found = self.search(item.filter.box, covering[self.kind])
        return (other for other in found if other.group == item.group)

    def _hide(self, item: Item, coverer: Hashable) -> None:
        self._covered[item.key] = (item, coverer)
        self._beneath.setdefault(coverer, {})[item.key] = None

    def _show(self, item: Item) -> None:
        number, self._next = self._next, self._next + 1
        self._active[number] = item
        self._numbers[item.key] = number
        box = item.filter.box
        if not box or item.filter.empty:
            self._odd[number] = None
            return
        if self._columns is not None:
            if self._columns.fits(box):
                self._columns.add({number: box})
            else:
                self._columns = None
        shelves = self._shelves.setdefault(len(box), {})
        for name, values in box.items():
            shelves.setdefault((name, line(values)), Shelf()).add(number, values)

    def _withdraw(self, item: Item) -> None:
        number, box = self._numbers.pop(item.key), item.filter.box
        del self._active[number]
        if number in self._odd:
            del self._odd[number]
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

    def search(self, asked: Box, relation: Relation) -> Iterator[Item]:
        """The active items to which a box is so related.

        Counting [B24], as far as it must go: an item that is related in ``needed`` of ``n`` attributes
        is among the candidates of any ``n - needed + 1`` of them, so the shortest lists are enough to
        find it.  Stop whenever you have enough; do not change the table before.
        """
        if not all(asked.values()) or not asked:
            numbers: Iterable[int] = self._active
        else:
            numbers = chain(self._candidates(asked, relation), self._odd)
        for number in numbers:
            if related(asked, self._active[number].filter.box, relation):
                yield self._active[number]

    def _candidates(self, asked: Box, relation: Relation) -> Iterable[int]:
        """The numbers of items among which all are that a box is so related to."""
        stretches = [
            stretch
            for size, shelves in self._shelves.items()
            for stretch in _shortest(shelves, asked, relation, size)
        ]
        enough = MANY if self._columns is None else FEW
        if sum(stretch.size for stretch in stretches) > enough and relation in BY_COLUMNS:
            if self._columns is None:
                self._columns = Columns(
                    {n: i.filter.box for n, i in self._active.items() if n not in self._odd}
                )
            return BY_COLUMNS[relation](self._columns, asked)
        return dict.fromkeys(chain.from_iterable(stretch.numbers() for stretch in stretches))


def _shortest(
    shelves: Mapping[tuple[str, Line], Shelf], asked: Box, relation: Relation, size: int
) -> Iterator[Stretch]:
    """The shortest lists that find every item of so many fields."""
    needed = len(asked) if relation.fields == "subset" else size
    if needed > min(size, len(asked)):
        return iter(())
    lists = sorted(
        (
            shelves[name, line(values)].candidates(values, relation.contents)
            if (name, line(values)) in shelves
            else []
            for name, values in asked.items()
        ),
        key=lambda stretches: sum(stretch.size for stretch in stretches),
    )
    return chain.from_iterable(lists[: len(asked) - needed + 1])


@dataclass(slots=True)
class Database:
    """The tables of a broker, by kind and connection."""

    _tables: dict[Kind, dict[Peer, Table]] = field(default_factory=dict)

    def table(self, peer: Peer, kind: Kind) -> Table:
        """What a connection has stored of a kind; an empty table if nothing."""
        return self._tables.get(kind, {}).get(peer) or Table(kind)

    def tables(self) -> Iterator[tuple[Peer, Kind, Table]]:
        """All that there are, each with whose it is and of what."""
        for kind, of_kind in self._tables.items():
            yield from ((peer, kind, table) for peer, table in of_kind.items())

    def insert(self, peer: Peer, kind: Kind, item: Item) -> Inserted:
        """Store an item of a connection."""
        return self._tables.setdefault(kind, {}).setdefault(peer, Table(kind)).insert(item)

    def delete(self, peer: Peer, kind: Kind, key: Hashable) -> Deleted | None:
        """Remove an item of a connection."""
        tables = self._tables.get(kind, {})
        if peer not in tables:
            return None
        deleted = tables[peer].delete(key)
        if not tables[peer]:
            self._drop(peer, kind)
        return deleted

    def forget(self, peer: Peer) -> dict[Kind, tuple[Item, ...]]:
        """Drop all items of a connection, and say which they were.  [B21]"""
        mine = [kind for kind, tables in self._tables.items() if peer in tables]
        return {kind: tuple(self._drop(peer, kind).items()) for kind in mine}

    def _drop(self, peer: Peer, kind: Kind) -> Table:
        dropped = self._tables[kind].pop(peer)
        if not self._tables[kind]:
            del self._tables[kind]
        return dropped

    def peers(self, kind: Kind) -> tuple[Peer, ...]:
        """The connections that have stored something of a kind."""
        return tuple(self._tables.get(kind, ()))

    def __len__(self) -> int:
        return sum(len(table) for _, _, table in self.tables())

    def find_matches(
        self,
        row: Kind,
        asked: Box,
        column: Kind,
        peers: Iterable[Peer],
        callback: Callable[[Peer, Item], bool],
    ) -> list[Peer]:
        """Call back with each match of each connection, until the callback is satisfied there.  [B25]

        The connections with which it was satisfied, in the order given.
        """
        relation = MATCHES.get((row, column))
        if relation is None:
            return []
        return [
            peer
            for peer in peers
            if any(callback(peer, item) for item in self.table(peer, column).search(asked, relation))
        ]
