"""One state filter at one broker: it lets pass what may move a bit somewhere on the way.  [S7, F14]

The subscriber runs the condition itself and has the last word.  Every broker on the way runs a replica
with bits of its own.  Replicas in series give the same as one, whatever else passes between them, so
several filters and plain subscriptions share a path.  A replica that does not know the bits of a scope,
or does not see all of its events, lets everything pass that could matter: extra data, not wrong data
[F15].

To learn the bits a replica asks the next one towards the subscriber and keeps a record of what it says
after the question; the answer, and then the record, give the bits as they are there now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from ...model.event import Event
from .condition import Replicated
from .content import Content
from .scopes import Scopes, contains, either, includes

LONGEST_RECORD = 1_000
"""How many events a record holds; if the answer takes longer, the question is asked again."""


@dataclass(frozen=True)
class Sight:
    """An event as a condition sees it, looked at once for all filters that are equal.  [S7]"""

    condition: Replicated
    event: Event

    @cached_property
    def keys(self) -> tuple[str, ...] | None:
        """The keys of the scopes that contain it, innermost first; nothing if none does."""
        chain = self.condition.chain(self.event)
        return None if chain is None else tuple(key for key in chain if key is not None)

    @cached_property
    def enters(self) -> bool:
        return self.condition.enter(self.event)

    @cached_property
    def leaves(self) -> bool:
        return self.condition.leave(self.event)

    @cached_property
    def matters(self) -> bool:
        ends = self.condition.ends
        return self.enters or (self.leaves if ends is None else ends(self.event))


def sighted(condition: Replicated, content: Content) -> Sight | None:
    """A notification as a condition sees it; nothing if it cannot matter."""
    event = condition.event(content)
    if event is None:
        return None
    sight = Sight(condition, event)
    if not condition.filterable:
        return sight
    return sight if sight.keys is not None and sight.matters else None


@dataclass(slots=True)
class Replica:
    """``bits`` are the keys of the scopes that hold, and ``doubted`` those of them of which events may be
    lost: the next one that satisfies the entrance passes there, too.  ``shared`` are the scopes of which no
    bit is kept here, and ``wanted`` those of which none will be once the question is answered."""

    condition: Replicated
    shared: Scopes = None
    wanted: Scopes = None
    bits: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    asking: bool = False
    questions: int = 0
    record: list[Sight | Scopes] = field(default_factory=list)

    def passes(self, sight: Sight) -> bool:
        """Whether an event that may matter can move a bit, here or elsewhere; those kept here move."""
        if not self.condition.filterable:
            return True
        if self.condition.momentary:
            return sight.enters
        if self.condition.ends is not None:
            return self._lets(sight)
        moved = False
        for key in sight.keys or ():
            if contains(self.shared, key):
                return True
            if not self._moves(key, sight):
                return moved
            moved = True
        return moved

    def _moves(self, key: str, sight: Sight) -> bool:
        """Whether an event moves the bit of a scope, or says that one in doubt is as it was."""
        held, doubted = key in self.bits, key in self.doubted
        if held and sight.leaves:
            self.bits.discard(key)
        elif sight.enters and (doubted or not held):
            self.bits.add(key)
        else:
            return False
        self.doubted.discard(key)
        return True

    def _lets(self, sight: Sight) -> bool:
        """Whether an event comes through a gate.  One that enters opens it for all scopes that contain it,
        since what passes the inner filter feeds the outer; only what happens directly in a scope closes its
        gate.  That may be open or closed more often than elsewhere: it is open while something holds."""
        keys = sight.keys or ()
        if not keys or contains(self.shared, keys[0]):
            return bool(keys)
        if sight.enters:
            self.bits.update(key for key in keys if not contains(self.shared, key))
            return True
        held = keys[0] in self.bits
        if held and sight.leaves:
            self.bits.discard(keys[0])
        return held

    def place(self, shared: Scopes) -> bool:
        """Be told which scopes are shared; whether there is something to ask for.

        What becomes shared is let pass at once; what is shared no longer, when its bits are known.
        """
        self.wanted = shared
        return self.unlearn(shared)

    def unlearn(self, scopes: Scopes) -> bool:
        """Keep no bits of some scopes from now on; whether there is something to ask for.

        A scope that no publisher reached from here is one: its bit may have moved elsewhere.
        """
        self.shared = either(self.shared, scopes)
        self.reset(self.shared)
        moves = self.condition.filterable and not self.condition.momentary
        return moves and not includes(self.wanted, self.shared)

    def ask(self) -> int:
        """The number of a new question; what goes out from now on is recorded."""
        self.questions += 1
        self.asking = True
        self.record.clear()
        return self.questions

    def note(self, said: Sight | Scopes) -> bool:
        """Record what went out, an event or the scopes of an interruption; whether to ask again."""
        if not self.asking:
            return False
        self.record.append(said)
        return len(self.record) > LONGEST_RECORD

    def learn(self, number: int, bits: Iterable[str], doubted: Iterable[str] = ()) -> bool:
        """Take the answer to the last question; one to an older question means nothing."""
        if not self.asking or number != self.questions:
            return False
        self.asking, self.shared = False, self.wanted
        self.bits, self.doubted = set(bits), set(doubted)
        self.reset(self.shared)
        record, self.record = self.record, []
        for said in record:
            if isinstance(said, Sight):
                self.passes(said)
            else:
                self.doubt(said)
        return True

    def doubt(self, scopes: Scopes) -> None:
        """Events of some scopes may be lost.  Through a gate passes all that could decide, doubt or not."""
        if self.condition.ends is None:
            self.doubted |= self.bits if scopes is None else self.bits & scopes

    def reset(self, scopes: Scopes) -> None:
        """Forget the bits of some scopes."""
        self.bits = set() if scopes is None else self.bits - scopes
        self.doubted &= self.bits
