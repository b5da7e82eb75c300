"""A replica of one state filter at one broker: it passes events that may change a bit on the path. [S7, F14]

The subscriber evaluates the condition itself, and its result is final. Every broker on the path runs a
replica with its own bits. Replicas in series give the same result as one replica, whatever other events pass
between them. So several filters and plain subscriptions can share a path. A replica that does not know the
bits of a scope, or does not receive all its events, passes every relevant event. This sends too many events,
but it gives no wrong result [F15].

To learn the bits, a replica requests them from the next replica towards the subscriber. It records the events
that it forwards after the request. The answer and the record together give the current bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from ....model.event import Event
from .condition import ReplicatedCondition
from .content import Content
from .scopes import Scopes, contains, includes, union

LONGEST_RECORD = 1_000
"""The greatest number of events in a record. If the answer takes longer, the request is repeated."""


@dataclass(frozen=True)
class ConditionInput:
    """A notification as a condition evaluates it; computed once for all equal filters. [S7]"""

    condition: ReplicatedCondition
    event: Event

    @cached_property
    def keys(self) -> tuple[str, ...] | None:
        """The keys of the scopes that contain the event, innermost first; ``None`` if no scope
        contains it.
        """
        chain = self.condition.chain(self.event)
        return None if chain is None else tuple(key for key in chain if key is not None)

    @cached_property
    def enters(self) -> bool:
        """Whether the event satisfies the entrance predicate."""
        return self.condition.enter(self.event)

    @cached_property
    def leaves(self) -> bool:
        """Whether the event satisfies the exit predicate."""
        return self.condition.leave(self.event)

    @cached_property
    def is_relevant(self) -> bool:
        """Whether the event can change a bit of this condition, or of a condition behind the gate."""
        ends = self.condition.ends
        return self.enters or (self.leaves if ends is None else ends(self.event))


def condition_input(condition: ReplicatedCondition, content: Content) -> ConditionInput | None:
    """Convert a notification to the input of a condition; ``None`` if it is not relevant."""
    event = condition.event(content)
    if event is None:
        return None
    sight = ConditionInput(condition, event)
    if not condition.is_filterable:
        return sight
    return sight if sight.keys is not None and sight.is_relevant else None


@dataclass(slots=True)
class FilterReplica:
    """The bits of a state filter at one broker.

    ``bits`` are the keys of the active scopes. ``uncertain_bits`` are the keys among them whose events may be
    lost; there the next event that satisfies the entrance passes too. ``shared`` are the scopes whose bits
    are not stored here. ``target_shared`` are the scopes for which this will be so once the request is
    answered.
    """

    condition: ReplicatedCondition
    shared: Scopes = None
    target_shared: Scopes = None
    bits: set[str] = field(default_factory=set)
    uncertain_bits: set[str] = field(default_factory=set)
    is_waiting: bool = False
    requests: int = 0
    record: list[ConditionInput | Scopes] = field(default_factory=list)

    def passes(self, sight: ConditionInput) -> bool:
        """Apply a relevant event to the stored bits; return whether it may change a bit here or elsewhere."""
        if not self.condition.is_filterable:
            return True
        if self.condition.is_momentary:
            return sight.enters
        if self.condition.ends is not None:
            return self._passes_gate(sight)
        has_changed = False
        for key in sight.keys or ():
            if contains(self.shared, key):
                return True
            if not self._apply(key, sight):
                return has_changed
            has_changed = True
        return has_changed

    def _apply(self, key: str, sight: ConditionInput) -> bool:
        """Apply an event to the bit of one scope; return whether it changes the bit or confirms an uncertain
        bit.
        """
        is_set, is_uncertain = key in self.bits, key in self.uncertain_bits
        if is_set and sight.leaves:
            self.bits.discard(key)
        elif sight.enters and (is_uncertain or not is_set):
            self.bits.add(key)
        else:
            return False
        self.uncertain_bits.discard(key)
        return True

    def _passes_gate(self, sight: ConditionInput) -> bool:
        """Return whether an event passes a gate, and update the gate.

        An event that enters opens the gate for all scopes that contain it, because the output of the inner
        filter is the input of the outer one. Only an event directly in a scope closes its gate. The gate may
        be open more often than necessary, but it is open while a condition behind it is active.
        """
        keys = sight.keys or ()
        if not keys or contains(self.shared, keys[0]):
            return bool(keys)
        if sight.enters:
            self.bits.update(key for key in keys if not contains(self.shared, key))
            return True
        is_open = keys[0] in self.bits
        if is_open and sight.leaves:
            self.bits.discard(keys[0])
        return is_open

    def set_shared(self, shared: Scopes) -> bool:
        """Set the shared scopes; return whether bits have to be requested.

        Events of a scope that becomes shared pass immediately. A scope that is no longer shared is filtered
        when its bits are known.
        """
        self.target_shared = shared
        return self.forget_bits(shared)

    def forget_bits(self, scopes: Scopes) -> bool:
        """Forget the bits of ``scopes``; return whether bits have to be requested.

        This also applies to a scope that gets its first publisher on this side, because its bit may have
        changed elsewhere.
        """
        self.shared = union(self.shared, scopes)
        self.clear_bits(self.shared)
        moves = self.condition.is_filterable and not self.condition.is_momentary
        return moves and not includes(self.target_shared, self.shared)

    def ask(self) -> int:
        """Return the number of a new request and start to record outputs."""
        self.requests += 1
        self.is_waiting = True
        self.record.clear()
        return self.requests

    def record_output(self, output: ConditionInput | Scopes) -> bool:
        """Record an output (an event or the scopes of an interruption); return whether to repeat the
        request.
        """
        if not self.is_waiting:
            return False
        self.record.append(output)
        return len(self.record) > LONGEST_RECORD

    def on_answer(self, number: int, bits: Iterable[str], uncertain: Iterable[str] = ()) -> bool:
        """Apply the answer to the last request; return false for an answer to an older request, which is
        ignored.
        """
        if not self.is_waiting or number != self.requests:
            return False
        self.is_waiting, self.shared = False, self.target_shared
        self.bits, self.uncertain_bits = set(bits), set(uncertain)
        self.clear_bits(self.shared)
        record, self.record = self.record, []
        for output in record:
            if isinstance(output, ConditionInput):
                self.passes(output)
            else:
                self.mark_uncertain(output)
        return True

    def mark_uncertain(self, scopes: Scopes) -> None:
        """Mark active scopes as uncertain. A gate needs no mark, because it passes every event that could
        decide.
        """
        if self.condition.ends is None:
            self.uncertain_bits |= self.bits if scopes is None else self.bits & scopes

    def clear_bits(self, scopes: Scopes) -> None:
        """Forget the bits of ``scopes``; ``None`` stands for all scopes."""
        self.bits = set() if scopes is None else self.bits - scopes
        self.uncertain_bits &= self.bits
