"""The scopes of a condition that publishers reach, and the scopes that several connections share. [F11, S5]

A broker may drop events of a scope for a state filter only if it receives all events of that scope, that is,
if no publisher of the scope is elsewhere. Advertisements decide this. An advertisement that pins every
attribute of the scope's key reaches that scope; any other advertisement may reach all scopes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from ....model.protocol import Peer

Scopes = frozenset[str] | None
"""Keys of scopes; ``None`` means all scopes."""

NO_SCOPES: frozenset[str] = frozenset()


def union(a: Scopes, b: Scopes) -> Scopes:
    """Return the union of two sets of scopes."""
    return None if a is None or b is None else a | b


def intersect(a: Scopes, b: Scopes) -> Scopes:
    """Return the intersection of two sets of scopes."""
    return b if a is None else a if b is None else a & b


def contains(a: Scopes, key: str) -> bool:
    """Whether a scope is in a set of scopes."""
    return a is None or key in a


def includes(a: Scopes, b: Scopes) -> bool:
    """Whether every scope of ``b`` is in ``a``."""
    return a is None or (b is not None and b <= a)


def to_wire(a: Scopes) -> tuple[str, ...] | None:
    """Return the scopes as a message lists them."""
    return None if a is None else tuple(sorted(a))


def from_wire(a: Iterable[str] | None) -> Scopes:
    """Return the scopes that a message lists."""
    return None if a is None else frozenset(a)


@dataclass(slots=True)
class ScopeReach:
    """The scopes that each connection reaches, counted by advertisement."""

    _anywhere: Counter[Peer] = field(default_factory=Counter)
    _keys: defaultdict[Peer, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _through: defaultdict[str, set[Peer]] = field(default_factory=lambda: defaultdict(set))
    _shared_keys: set[str] = field(default_factory=set)

    def add(self, peer: Peer, scopes: Scopes) -> Scopes:
        """Add the scopes of an advertisement; return those that no connection reached before."""
        anywhere = bool(self._anywhere)
        if scopes is None:
            self._anywhere[peer] += 1
            return NO_SCOPES if anywhere else None
        new = frozenset(key for key in scopes if key not in self._through)
        self._keys[peer].update(scopes)
        for key in scopes:
            self._through[key].add(peer)
            if len(self._through[key]) > 1:
                self._shared_keys.add(key)
        return NO_SCOPES if anywhere else new

    def remove(self, peer: Peer, scopes: Scopes) -> None:
        """Remove the scopes of a withdrawn advertisement."""
        if scopes is None:
            self._anywhere[peer] -= 1
            self._anywhere += Counter()  # without zeros
            return
        self._keys[peer].subtract(scopes)
        for key in scopes:
            if self._keys[peer][key] == 0:
                del self._keys[peer][key]
                self._through[key].discard(peer)
                if len(self._through[key]) < 2:
                    self._shared_keys.discard(key)
                if not self._through[key]:
                    del self._through[key]
        if not self._keys[peer]:
            del self._keys[peer]

    def through(self, peer: Peer) -> Scopes:
        """Return the scopes that a connection reaches."""
        return None if self._anywhere[peer] else frozenset(self._keys.get(peer, ()))

    def shared(self, peer: Peer, beyond: Scopes) -> Scopes:
        """Return the scopes of a connection that are reached elsewhere too.

        Elsewhere is another connection, or ``beyond``, the scopes on the subscriber's side.
        """
        others_reach_all = beyond is None or any(other_peer != peer for other_peer in self._anywhere)
        if others_reach_all:
            return self.through(peer)
        assert beyond is not None
        if self._anywhere[peer]:
            return beyond | {key for key, peers in self._through.items() if peers != {peer}}
        keys = self._keys.get(peer, Counter[str]())
        return frozenset(_common(keys.keys(), self._shared_keys) | _common(keys.keys(), beyond))


def _common(a: Set[str], b: Set[str]) -> Set[str]:
    """Return the intersection of two sets in time proportional to the smaller set."""
    few, many = (a, b) if len(a) < len(b) else (b, a)
    return {key for key in few if key in many}
