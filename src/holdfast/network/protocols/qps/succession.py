"""The transfer of roles between nodes: hand-over, heartbeats, copies, and replacement of failed nodes.

[F46, F47, F49]
"""

from __future__ import annotations

from collections.abc import Iterable

from ....model.instant import Instant
from ....model.protocol import Nearby, SetTimer
from . import tables
from .envelope import RoleHeartbeat, RoleOffer, RoleTables, RoleTaken, RoleVacant, cause_of
from .forwarding import store_latest
from .message import At, QpsMessage, QpsSource, SubscriberGone
from .role_messaging import (
    KnownHolder,
    OwnRole,
    Role,
    RoleHandover,
    RoleMessaging,
    UndeliveredEvent,
)
from .state import LogicalBroker
from .tree import QuadScope


class RoleSuccession(RoleMessaging):
    """Handles the part of an input that concerns the holders of roles."""

    # --- having a role ---

    def take_role(self, role: Role, logical: LogicalBroker) -> None:
        """Take a role, with the given tables."""
        self.state.holders.pop(role, None)
        self.state.broker.logical[role] = logical
        self.state.own_roles[role] = OwnRole(self.suits(role))
        self._send_heartbeat(role, logical)

    def _resume_role(self, role: Role, logical: LogicalBroker) -> None:
        """Take a role from another node, and announce this to all nodes that send to it."""
        self.take_role(role, logical)
        step = self.broker.step(self.state.broker, self.now)
        step.announce_move(logical)
        self.carry_out(step.effects)
        self._send_copies(role, self.state.own_roles[role], logical)  # it may fail before its next check

    def _send_heartbeat(self, role: Role, logical: LogicalBroker) -> None:
        """Send a heartbeat for a role."""
        self.seek(role, RoleHeartbeat(*role, self.at, logical.turn))

    def on_heartbeat(self, given: RoleHeartbeat) -> None:
        """Handle a heartbeat of another holder.

        Of two holders, the nearer one stays where roles belong to the nearest node, otherwise the later one.
        [F47]
        """
        role, known = given.role, self.state.holders.get(given.role)
        if role in self.state.own_roles and self.is_nearer(role, self.at, given.at):
            self._claim_role(role, given)
        elif role in self.state.own_roles:
            self.on_taken(role, given.at, given.turn)
        elif given.at != self.at and (known is None or (known.turn, known.at) <= (given.turn, given.at)):
            last_heartbeat = self.now if known is None else max(self.now, known.last_heartbeat)
            self.state.holders[role] = KnownHolder(given.at, given.turn, last_heartbeat)
            copy = next(iter(self.state.copies.get(role, {}).values()), None)
            if copy is not None and copy.turn < given.turn:
                del self.state.copies[role]

    def compare_heartbeats(self, given: RoleHeartbeat) -> None:
        """Compare the heartbeats of all holders of a role, which meet at this node, and inform the earlier
        holder.

        Where roles belong to the nearest node and this is the nearest, it offers to take the role.
        """
        role = given.role
        if self.is_nearer(role, self.at, given.at):
            if role not in self.state.own_roles:
                self.direct(given.at, RoleOffer(*role, self.at))
            return
        if role in self.state.own_roles:
            other = (self.state.broker.logical[role].turn, self.at)
        elif role in self.state.holders:
            other = (self.state.holders[role].turn, self.state.holders[role].at)
        else:
            return
        first, last = sorted([other, (given.turn, given.at)])
        if first[1] not in (last[1], self.at):
            self.direct(first[1], RoleHeartbeat(*role, last[1], last[0]))

    def _claim_role(self, role: Role, given: RoleHeartbeat) -> None:
        """Claim a role that another node has, under a later turn."""
        logical = self.state.broker.logical[role]
        if logical.turn <= given.turn:
            logical.turn = max(self.now, given.turn + 1)
            self._resume_role(role, logical)
        self.direct(given.at, RoleHeartbeat(*role, self.at, logical.turn))

    def set_check_timer(self) -> None:
        """Set the timer for the next check of roles."""
        when = self.deployment.after(self.now, self.mapping.check, self.state.broker.chance)
        self.effects.append(SetTimer("check", when))

    def check_roles(self) -> None:
        """Compare this node's fit for its roles, send heartbeats, and forget holders without a heartbeat.
        [F46, F47]
        """
        state = self.state
        self.set_check_timer()
        old = self.now - 3 * self.mapping.check
        state.holders = {role: known for role, known in state.holders.items() if known.last_heartbeat >= old}
        for role, held in list(state.own_roles.items()):
            logical = state.broker.logical[role]
            if logical.is_empty:
                del state.own_roles[role], state.broker.logical[role]
                state.handovers.pop(role, None)
                continue
            if role not in state.handovers and self.mapping.compare(held.original, self.suits(role)):
                self._start_handover(role)
                self.seek(role, RoleVacant(*role, self.at), left=(self.at,))
            self._send_heartbeat(role, logical)  # also during a hand-over: the role is still here
            self._send_copies(role, held, logical)

    # --- hand-over ---

    def _tables_of(
        self, role: Role, logical: LogicalBroker, rows: tuple[QpsMessage, ...]
    ) -> Iterable[RoleTables]:
        """Yield the tables of a role in parts."""
        some, version = tables.split_rows(rows, self.mapping.room), max(logical.version, self.now)
        for number, part in enumerate(some):
            yield RoleTables(*role, self.at, logical.turn, version, number, len(some), part)

    def _start_handover(self, role: Role) -> RoleHandover:
        """Start a hand-over, and set the timer for its end."""
        giving = self.state.handovers[role] = RoleHandover()
        self.effects.append(SetTimer(_handover_timer(role), self.now + self.mapping.patience))
        return giving

    def on_offer(self, offer: RoleOffer) -> None:
        """Send the tables of a role to a successor that has offered itself: role transfer."""
        role = offer.role
        giving = self.state.handovers.get(role)
        if giving is None and role in self.state.own_roles and self.is_nearer(role, offer.at, self.at):
            giving = self._start_handover(role)
        if giving is None or giving.to is not None:
            return
        logical = self.state.broker.logical[role]
        giving.to, giving.sent = offer.at, tuple(tables.rows(logical))
        for part in self._tables_of(role, logical, giving.sent):
            self.direct(offer.at, part)

    def on_tables(self, given: RoleTables) -> None:
        """Take a role when all parts of its tables have arrived, and announce this: parallel subscribe and
        unsubscribe.

        The announcement is one message that replaces the old and the new subscription.
        """
        role, state = given.role, self.state
        logical = self._complete_tables(state.incoming_tables, given)
        if logical is None:
            return
        if role in state.own_roles:  # both acted for a while
            for message in tables.subscriber_messages(logical):
                self.direct(self.at, message)
            for event in logical.latest.values():
                store_latest(state.broker.logical[role].latest, event)
            if not logical.is_empty:  # the other holder may have ended requests at brokers below
                step = self.broker.step(state.broker, self.now)
                step.ask_again(state.broker.logical[role])
                self.carry_out(step.effects)
        else:
            logical.turn = max(self.now, given.turn + 1)
            self._resume_role(role, logical)
        self.direct(given.at, RoleTaken(*role, self.at, state.broker.logical[role].turn))

    def _complete_tables(
        self, incomplete: dict[Role, dict[int, RoleTables]], given: RoleTables
    ) -> LogicalBroker | None:
        """Return a broker from its tables once all parts have arrived; ``None`` before."""
        role = given.role
        some = _with_part(incomplete.get(role, {}), given)
        if len(some) < given.parts:
            incomplete[role] = some
            return None
        incomplete.pop(role, None)
        rows = (row for number in sorted(some) for row in some[number].rows)
        return tables.broker_from(role, rows, given.turn, given.version, self.now)

    def on_taken(self, role: Role, at: At, turn: Instant) -> None:
        """Remove a role that another node has taken, and forward the messages that arrived in the
        meantime.
        """
        state = self.state
        if role not in state.own_roles:
            return
        logical = state.broker.logical[role]
        if (turn, at) <= (logical.turn, self.at):
            return
        giving = state.handovers.pop(role, RoleHandover())
        sent = giving.sent if giving.to == at else ()
        del state.own_roles[role], state.broker.logical[role]
        state.holders[role] = KnownHolder(at, turn, self.now + 3 * self.mapping.check)
        rows = tuple(logical.latest.values()) if sent else tuple(tables.rows(logical))
        missed = tuple(row for row in rows if row not in sent)
        for part in self._tables_of(role, logical, missed) if missed else ():
            self.direct(at, part)
        for message in giving.waiting:
            self.direct(at, message)
        self.effects.append(Nearby(RoleHeartbeat(*role, at, turn), "here"))

    def on_handover_timeout(self, timer: str) -> None:
        """Keep a role for which no successor was found in time."""
        role = next((role for role in self.state.handovers if _handover_timer(role) == timer), None)
        if role is not None:
            for message in self.state.handovers.pop(role).waiting:
                self.direct(self.at, message)

    # --- failures ---

    def _send_copies(self, role: Role, held: OwnRole, logical: LogicalBroker) -> None:
        """Send a copy of the tables to nearby nodes if the tables have changed."""
        rows = tuple(tables.rows(logical))
        if rows != held.copied:
            held.copied = rows
            self.effects += [Nearby(part, cause_of(part)) for part in self._tables_of(role, logical, rows)]

    def on_copy(self, given: RoleTables) -> None:
        """Store a copy of a broker's tables, for the case that its node fails."""
        role = given.role
        if role not in self.state.own_roles:
            self.state.copies[role] = _with_part(self.state.copies.get(role, {}), given)
            self.on_heartbeat(RoleHeartbeat(*role, given.at, given.turn))

    def adopt_role(self, role: Role, left: tuple[At, ...]) -> None:
        """Take the role of a failed node if this node has a complete copy of its tables."""
        some = self.state.copies.get(role, {})
        last = next(iter(some.values()), None)
        if last is None or last.at not in left or len(some) < last.parts:
            return
        del self.state.copies[role]
        rows = (row for number in sorted(some) for row in some[number].rows)
        self._resume_role(role, tables.broker_from(role, rows, last.turn + 1, last.version, self.now))

    def store_event(self, event: UndeliveredEvent) -> None:
        """Store an event for a node that does not answer, to send it again later."""
        self.state.undelivered_events.append(event)
        if len(self.state.undelivered_events) == 1:
            self.effects.append(SetTimer("stored", self.now + self.mapping.patience))

    def retry_events(self) -> None:
        """Send stored events again. Report nodes that did not answer after all attempts as gone."""
        stored, self.state.undelivered_events = self.state.undelivered_events, []
        for each in stored:
            source = each.event.source
            if each.tries < self.mapping.tries:
                self.direct(each.at, each.event, each.tries + 1)
            elif source.scope is not None:
                self.direct(source.at, SubscriberGone(each.event.topic, QpsSource(each.at), source.scope))


def _with_part(some: dict[int, RoleTables], given: RoleTables) -> dict[int, RoleTables]:
    """Return the parts of one version of tables, with a further part. Parts of older versions are dropped."""
    same = (given.at, given.turn, given.version, given.parts)
    remaining = {n: t for n, t in some.items() if (t.at, t.turn, t.version, t.parts) == same}
    return {**remaining, given.part: given}


def _handover_timer(role: tuple[str, QuadScope]) -> str:
    return f"giving/{role[0]}/{role[1]}"
