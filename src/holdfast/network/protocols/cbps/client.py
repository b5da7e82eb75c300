"""Publishers and subscribers: the client machine of an overlay.  [B51, B52]

A client has one connection, to a broker. Its advertisements and subscriptions have names and are sent again
whenever the connection returns. The client runs the conditions that it watches. When events may have been
lost, it reports each active condition as unknown until an event decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from ....errors import UsageError, did_you_mean
from ....model import event as model
from ....model.instant import Duration, Instant
from ....model.protocol import (
    Asked,
    CancelTimer,
    Deliver,
    Effect,
    Fired,
    Input,
    Joined,
    Left,
    Peer,
    Received,
    Send,
    SetTimer,
    Started,
    Undelivered,
)
from .bundle import has_interest, has_stored_part, is_empty, is_source, stored_part, transient_part
from .condition import (
    CompileCondition,
    CorrectionProgress,
    HostedCondition,
    ReplicatedCondition,
    SubscriberCondition,
)
from .content import Content, Filter, satisfies
from .context import content_of, passes_any
from .duplicates import DuplicateFilter
from .message import (
    Advertisement,
    Bundle,
    BundleContext,
    BundleKey,
    BundleRefusal,
    CbpsMessage,
    CbpsSubscription,
    CodeRequest,
    CodeText,
    ConditionText,
    Echo,
    HostedNotification,
    Interruption,
    Kind,
    PublishedNotification,
    Registration,
    Renewal,
    ScopePlacement,
    StateAnswer,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)
from .pairs import PairTracker
from .promises import PromiseIndex
from .promises import fulfils as fulfils
from .runner import ConditionRunner
from .scopes import Scopes, from_wire
from .source_filter import SourceFilter
from .watch import Emitter

RENEW = "renew"
"""The timer that fires when leases are to be renewed."""

NEW = BundleKey("", 0)
"""The key of a bundle that the client has not named yet."""

# --- what a user asks for ---


@dataclass(frozen=True, slots=True)
class Submit:
    """Request: send a bundle.

    The part that is stored is known under ``name`` until it is withdrawn. ``code`` is the source text that
    its active subscriptions name by digest; brokers request it when needed. ``exact`` is a condition that is
    evaluated at the client, behind the gates that the bundle requests from brokers.
    """

    bundle: Bundle
    name: str = ""
    code: str = ""
    exact: SubscriberCondition | None = None


@dataclass(frozen=True, slots=True)
class ReplaceActive:
    """Request: replace the active subscriptions submitted under a name; their agents go on.  [B64]"""

    name: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class WithdrawSubmission:
    """Request: withdraw everything submitted under a name."""

    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSubscription:
    """Request: deliver no further starts of the conditions under a name, and withdraw it after the
    last end."""

    name: str


@dataclass(frozen=True, slots=True)
class LeaveNetwork:
    """Request: withdraw everything. A client that leaves in this way has lost nothing, so no peer is in
    doubt."""


def advertise(name: str, filter_: Filter, *, flood_forward: bool = True, aggregation: bool = True) -> Submit:
    """Build the request that advertises notifications described by a filter."""
    advertisement = Advertisement(filter_, flood_forward, aggregation)
    return Submit(Bundle(NEW, advertisements=(advertisement,)), name)


def subscribe(
    name: str,
    filter_: Filter,
    *,
    incoming: tuple[Filter, ...] = (),
    flood_forward: bool = False,
    aggregation: bool = True,
) -> Submit:
    """Build the request for all notifications that satisfy a filter and one of the context filters."""
    subscription = CbpsSubscription(filter_, flood_forward, aggregation)
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch(name: str, definition: str, *, incoming: tuple[Filter, ...] = ()) -> Submit:
    """Build the request for the starts and ends of a condition."""
    subscription = CbpsSubscription(Filter(), state=ConditionText(definition))
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch_exactly(name: str, gates: Iterable[str], exact: SubscriberCondition) -> Submit:
    """Build the request for a condition that only this client can evaluate, because it uses a local lookup.

    Brokers run ``gates``, which pass every event that can matter to ``exact``.
    """
    subscriptions = tuple(CbpsSubscription(Filter(), state=ConditionText(definition)) for definition in gates)
    return Submit(Bundle(NEW, subscriptions=subscriptions), name, exact=exact)


def publish(content: Content, *, flood_forward: bool = False, outgoing: tuple[Filter, ...] = ()) -> Submit:
    """Build the request that publishes one notification."""
    return Submit(
        Bundle(NEW, outgoing=outgoing, notifications=(PublishedNotification(content, flood_forward),))
    )


# --- what a user is told ---


@dataclass(frozen=True, slots=True)
class ReceivedNotification:
    """A notification that satisfies a subscription, and what came with it."""

    subscription: str
    bundle: BundleKey
    content: Content
    context: BundleContext | None = None
    payloads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """The start or end of a condition that a subscription watches."""

    subscription: str
    notification: model.Notification


@dataclass(frozen=True, slots=True)
class ConditionUnknown:
    """An active condition became unknown, because events that could have ended it may be lost.

    If ``is_preserved``, the next event that decides confirms or ends it; otherwise it starts again.
    """

    subscription: str
    condition: str
    scope: str | None
    since: Instant
    why: str
    is_preserved: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionClosed:
    """Every start that was delivered under a released name has ended; the name is withdrawn."""

    name: str


@dataclass(frozen=True, slots=True)
class AddressedPayload:
    """The payloads of a bundle that a slip addressed to this client."""

    bundle: BundleKey
    payloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubmissionRefused:
    """A broker could not store what was submitted under a name; the name is withdrawn."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class AgentsInterrupted:
    """The connection is lost, so the relationships of an active subscription are unknown.  [B69]"""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class BundleUnsent:
    """Notifications were dropped because there is no connection."""

    bundle: BundleKey
    why: str


# --- the machine ---


@dataclass(slots=True)
class LocalCondition:
    """A condition that this client evaluates for a subscription; its result is final."""

    name: str
    condition: SubscriberCondition
    runner: ConditionRunner

    @property
    def preserves_activity(self) -> bool:
        """Whether an active scope stays active while it is in doubt."""
        return isinstance(self.condition, ReplicatedCondition)

    def mark_uncertain(self, scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Mark scopes as uncertain; return those that were active, and since when."""
        self.runner.state, lost = self.condition.mark_uncertain(self.runner.state, scopes)
        return lost


@dataclass(slots=True)
class RemoteCondition:
    """A condition that a broker evaluates for a subscription.

    ``active`` maps active scopes to their start. ``unknown`` are scopes last reported as unknown, which the
    broker may have forgotten since. ``ended`` are scopes that have ended, recorded only if the condition can
    become active without a notification.
    """

    name: str
    condition: HostedCondition
    active: dict[str | None, Instant] = field(default_factory=dict)
    unknown: set[str | None] = field(default_factory=set)
    ended: set[str | None] = field(default_factory=set)

    preserves_activity = False

    def mark_uncertain(self, _scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Forget the state of all scopes; return those that were active, and since when."""
        lost = list(self.active.items())
        for table in (self.active, self.unknown, self.ended):
            table.clear()
        return lost

    def record(self, change: model.Notification) -> bool:
        """Record a start or end; false if it does not follow from the known state.

        In that case the notification before it was lost, and the message that reports this is on its way.
        """
        scope, is_unknown, may_start_silently = (
            change.scope,
            change.scope in self.unknown,
            self.condition.may_start_silently,
        )
        match change.status:
            case "unknown":
                self.unknown.add(scope)
                return True
            case "ingress" if scope not in self.active or is_unknown:
                self.active[scope] = change.event.time
                self.ended.discard(scope)
            case "egress" if scope in self.active or (
                may_start_silently and (is_unknown or scope not in self.ended)
            ):
                self.active.pop(scope, None)
                if may_start_silently:
                    self.ended.add(scope)
            case "ingress" | "egress":
                return False
        self.unknown.discard(scope)
        return True


@dataclass(slots=True)
class CbpsClientState:
    """The state of a client."""

    broker: Peer | None = None
    sequence: int = 0
    bundles: dict[str, Bundle] = field(default_factory=dict)
    local_conditions: dict[SubscriptionRef, LocalCondition] = field(default_factory=dict)
    remote_conditions: dict[SubscriptionRef, RemoteCondition] = field(default_factory=dict)
    code: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By digest: the submitted code, and the name under which it was submitted."""
    pairing: PairTracker = field(default_factory=PairTracker)
    duplicates: DuplicateFilter = field(default_factory=DuplicateFilter)
    source_filter: SourceFilter = field(default_factory=SourceFilter)
    promises: PromiseIndex = field(default_factory=PromiseIndex)
    """The filters of its advertisements."""
    subscribing: dict[str, None] = field(default_factory=dict)
    """The names under which it has subscriptions, in order."""

    def store(self, name: str, bundle: Bundle) -> None:
        """Remember the stored part of a bundle under a name, in place of an earlier one."""
        if name in self.bundles:
            self.promises.remove(a.filter for a in self.bundles[name].advertisements)
        self.bundles[name] = bundle
        self.promises.add(a.filter for a in bundle.advertisements)
        if bundle.subscriptions:
            self.subscribing[name] = None
        else:
            self.subscribing.pop(name, None)

    def forget(self, name: str) -> None:
        """Forget the bundle under a name."""
        self.promises.remove(a.filter for a in self.bundles.pop(name).advertisements)
        self.subscribing.pop(name, None)


SUBSCRIBER_KINDS: tuple[Kind, ...] = ("notification", "context", "payload")
PUBLISHER_KINDS: tuple[Kind, ...] = ("subscription", *SUBSCRIBER_KINDS)
"""The kinds that a publisher accepts which drops unwanted events itself."""


@dataclass(frozen=True)
class CbpsClient:
    """The client machine.

    ``accepts`` are the kinds of components that brokers may send to it. With a ``lease``, in microseconds,
    brokers forget its bundles when it is silent for that long. A client that accepts subscriptions drops
    events that no subscription needs before it sends them.
    """

    name: str
    conditions: CompileCondition
    accepts: tuple[Kind, ...] = SUBSCRIBER_KINDS
    lease: Duration | None = None

    @property
    def filters_at_source(self) -> bool:
        """Whether the client drops events that no subscription needs."""
        return is_source(frozenset(self.accepts))

    def initial(self) -> CbpsClientState:
        """Return the state before the first input."""
        return CbpsClientState()

    def handle(self, state: CbpsClientState, given: Input) -> tuple[CbpsClientState, list[Effect]]:
        """Handle one input: update the state and return the effects."""
        match given:
            case Started(now, _):
                state.sequence = now
                effects: Iterator[Effect] = iter(())
            case Joined(now, peer):
                effects = self._on_joined(state, now, peer)
            case Left(_, _, why):
                effects = self._on_left(state, why)
            case Received(now, _, message):
                effects = self._on_message(state, now, message)
            case Undelivered(_, _, message):
                effects = self._on_undelivered(state, message)
            case Fired(now, timer):
                effects = self._on_timer(state, timer, now)
            case Asked(now, request):
                effects = self._on_request(state, request, now)
        return state, list(self._filter_pairs(state, effects))

    def _filter_pairs(self, state: CbpsClientState, effects: Iterable[Effect]) -> Iterator[Effect]:
        """Yield the effects without starts that were released, and without the ends of those starts.

        Afterwards withdraw released names of which everything has ended.
        """
        for effect in effects:
            match effect:
                case Deliver(ConditionChange(name, change)) if not state.pairing.should_deliver(name, change):
                    continue
                case Deliver(ConditionUnknown() as unknown) if not state.pairing.should_deliver_unknown(
                    unknown.subscription,
                    (unknown.condition, unknown.scope),
                    unknown.since,
                    is_preserved=unknown.is_preserved,
                ):
                    continue
                case Deliver(ReceivedNotification(name, _, content)) if self._is_report(state, name):
                    if not state.pairing.should_report(name, content):
                        continue
                case Deliver(AgentsInterrupted(name)):
                    state.pairing.on_interrupted(name)
            yield effect
        if state.pairing.released:
            for name in list(state.pairing.finished(partial(_correction_progress, state))):
                yield from self._withdraw(state, name)
                yield Deliver(SubscriptionClosed(name))

    def _is_report(self, state: CbpsClientState, name: str) -> bool:
        """Whether notifications under a name are reports of agents."""
        return name in state.bundles and bool(state.bundles[name].active)

    # --- the connection ---

    def _on_joined(self, state: CbpsClientState, now: Instant, peer: Peer) -> Iterator[Effect]:
        """Register with the broker, submit all bundles again and start to renew leases."""
        state.broker = peer
        yield Send(peer, Registration(self.accepts, request=True))
        for bundle in state.bundles.values():
            yield from self._send(state, bundle, now)
        if self.lease is not None:
            yield SetTimer(RENEW, now + self.lease // 3)

    def _on_left(self, state: CbpsClientState, why: str) -> Iterator[Effect]:
        """Report everything that depended on the connection as unknown."""
        state.broker = None
        state.source_filter.reset()
        yield CancelTimer(RENEW)
        why = why or "the connection to the broker is lost"
        for part in (*state.local_conditions, *state.remote_conditions):
            yield from _report_unknown(state, part, None, why)
        for name, bundle in state.bundles.items():
            if bundle.active:
                state.bundles[name] = replace(
                    bundle, active=tuple(replace(a, again=True) for a in bundle.active)
                )
                yield Deliver(AgentsInterrupted(name, why))

    def _renew_leases(self, state: CbpsClientState, now: Instant) -> Iterator[Effect]:
        """Renew the leases of all bundles and set the timer for the next renewal."""
        if state.broker is not None and self.lease is not None:
            keys = tuple(bundle.key for bundle in state.bundles.values())
            yield Send(state.broker, Renewal(keys), cause="renewal")
            yield SetTimer(RENEW, now + self.lease // 3)

    def _on_timer(self, state: CbpsClientState, timer: str, now: Instant) -> Iterator[Effect]:
        """Handle a timer: renew leases, or advance a condition that is due."""
        if timer == RENEW:
            yield from self._renew_leases(state, now)
        for part, watched in state.local_conditions.items():
            if timer == _timer_name(part):
                yield from _deliver_changes(state, part, watched, watched.runner.on_timer(now))

    def _on_undelivered(self, state: CbpsClientState, message: CbpsMessage) -> Iterator[Effect]:
        """Treat a bundle that could not be delivered as refused."""
        if isinstance(message, Bundle):
            yield from self._on_refusal(state, message.key, "the connection to the broker does not take it")

    def _on_refusal(self, state: CbpsClientState, key: BundleKey, why: str) -> Iterator[Effect]:
        """Withdraw and report the bundle with this key, which the broker has not stored."""
        names = [name for name, bundle in state.bundles.items() if bundle.key == key]
        for name in names:
            yield from self._withdraw(state, name)
            yield Deliver(SubmissionRefused(name, why))
        if not names:
            yield Deliver(BundleUnsent(key, why))

    # --- what the user asks ---

    def _on_request(self, state: CbpsClientState, request: Any, now: Instant) -> Iterator[Effect]:
        """Handle a request of the user."""
        match request:
            case Submit(bundle, name, code, exact):
                yield from self._submit(state, bundle, name, now, exact)
                if _correction_progress(state, name) is not None:
                    state.pairing.mark_correcting(name)
                if code:
                    state.code |= {active.code: (code, name) for active in bundle.active}
            case ReplaceActive(name, bundle):
                yield from self._replace(state, name, bundle, now)
            case WithdrawSubmission(name):
                yield from self._withdraw(state, name)
            case ReleaseSubscription(name):
                _submitted_bundle(state, name)
                state.pairing.release(name, _correction_progress(state, name))
                yield from _reset_timers(state, name)
            case LeaveNetwork():
                for name in list(state.bundles):
                    yield from self._withdraw(state, name)
            case _:
                raise UsageError(
                    f"a client can submit, replace, withdraw, release and leave; it cannot {request!r}"
                )

    def _submit(
        self,
        state: CbpsClientState,
        bundle: Bundle,
        name: str,
        now: Instant,
        exact: SubscriberCondition | None,
    ) -> Iterator[Effect]:
        """Check and name a bundle, start its conditions and send it if there is a connection."""
        if is_empty(bundle):
            raise UsageError("the bundle is empty: put something into it")
        if has_stored_part(stored_part(bundle)) and name in state.bundles:
            raise UsageError(f"'{name}' is taken; withdraw it first, or choose another name")
        self._check_promises(state, bundle)
        conditions = {
            i: self.conditions(subscription.state.definition)
            for i, subscription in enumerate(bundle.subscriptions)
            if subscription.state is not None
        }
        state.sequence += 1
        key = BundleKey(self.name, state.sequence)
        requested = [
            (replace(s, filter=input), conditions.get(i))
            for i, s in enumerate(bundle.subscriptions)
            for input in (conditions[i].inputs if i in conditions else (s.filter,))
        ]
        bundle = replace(bundle, key=key, subscriptions=tuple(s for s, _ in requested))
        to_store = stored_part(bundle)
        if has_stored_part(to_store):
            bundle = replace(bundle, lease=self.lease)
            state.store(name, replace(to_store, lease=self.lease))
        local = None if exact is None else LocalCondition(name, exact, ConditionRunner.start(exact))
        for i, (_, condition) in enumerate(requested):
            if local is not None:
                state.local_conditions[SubscriptionRef(key, i)] = local
            elif isinstance(condition, ReplicatedCondition):
                state.local_conditions[SubscriptionRef(key, i)] = LocalCondition(
                    name, condition, ConditionRunner.start(condition)
                )
            elif isinstance(condition, HostedCondition):
                state.remote_conditions[SubscriptionRef(key, i)] = RemoteCondition(name, condition)
        if state.broker is not None:
            yield from self._send(state, bundle, now)
        elif not is_empty(transient_part(bundle)):
            yield Deliver(BundleUnsent(key, "there is no connection to a broker"))

    def _check_promises(self, state: CbpsClientState, bundle: Bundle) -> None:
        """Raise an error if a notification is outside of what the advertisements promise.  [B51]"""
        promises = PromiseIndex()
        promises.add(a.filter for a in bundle.advertisements)
        for content in (notification.content for notification in bundle.notifications):
            if (state.promises or promises) and not (
                state.promises.fulfils_any(content) or promises.fulfils_any(content)
            ):
                raise UsageError(
                    f"{dict(content)!r} is not within what this client advertises; advertise it first"
                )

    def _replace(self, state: CbpsClientState, name: str, bundle: Bundle, now: Instant) -> Iterator[Effect]:
        """Replace an active subscription, and report it as interrupted if it becomes disabled."""
        old = _submitted_bundle(state, name)
        if not (old.active and bundle.active):
            raise UsageError(
                f"only active subscriptions are replaced; withdraw '{name}', and submit the other"
            )
        was_disabled, is_disabled = (any(a.disabled for a in version.active) for version in (old, bundle))
        if was_disabled and not is_disabled:  # what has changed meanwhile, nobody has seen
            bundle = replace(bundle, active=tuple(replace(a, again=True) for a in bundle.active))
        state.store(name, replace(stored_part(bundle), key=old.key, lease=self.lease))
        if state.broker is not None:
            yield from self._send(state, state.bundles[name], now)
        if is_disabled and not was_disabled:
            yield Deliver(AgentsInterrupted(name, "its agents are disabled"))

    def _withdraw(self, state: CbpsClientState, name: str) -> Iterator[Effect]:
        """Forget a bundle and its conditions, and withdraw it from the broker."""
        bundle = _submitted_bundle(state, name)
        state.forget(name)
        state.pairing.forget(name)
        state.code = {digest: code for digest, code in state.code.items() if code[1] != name}
        for i in range(len(bundle.subscriptions)):
            state.remote_conditions.pop(part := SubscriptionRef(bundle.key, i), None)
            watched = state.local_conditions.pop(part, None)
            if watched is not None and watched.runner.timer_at is not None:
                yield CancelTimer(_timer_name(part))
        state.source_filter.remove_promises(a.filter for a in bundle.advertisements)
        if state.broker is not None and has_interest(bundle):
            yield Send(state.broker, UnsubscribeBundle(bundle.key), cause="subscription")
        if state.broker is not None and bundle.advertisements:
            yield Send(state.broker, UnadvertiseBundle(bundle.key), cause="advertisement")

    def _send(self, state: CbpsClientState, bundle: Bundle, now: Instant) -> Iterator[Effect]:
        """Send a bundle unless it is filtered at the source, and place the replicas of its conditions."""
        assert state.broker is not None
        collected: list[Effect] = []
        if self.filters_at_source and not state.source_filter.should_send(
            bundle, Emitter(now, collected.append)
        ):
            return
        yield Send(state.broker, bundle)
        if self.filters_at_source and bundle.advertisements:
            filters = (a.filter for a in bundle.advertisements)
            collected.append(
                Send(
                    state.broker,
                    Echo(state.source_filter.add_promises(filters, Emitter(now, collected.append))),
                )
            )
        yield from collected
        for i in range(len(bundle.subscriptions)):
            if (part := SubscriptionRef(bundle.key, i)) in state.local_conditions:
                yield Send(state.broker, ScopePlacement(part, ()))

    # --- what the broker says ---

    def _on_message(self, state: CbpsClientState, now: Instant, message: CbpsMessage) -> Iterator[Effect]:
        """Handle a message of the broker."""
        match message:
            case Bundle():
                yield from self._on_bundle(state, now, message)
            case BundleRefusal(key, why):
                yield from self._on_refusal(state, key, why)
            case Echo(number):
                state.source_filter.answered = number
            case CodeRequest(digest) if digest in state.code and state.broker is not None:
                yield Send(state.broker, CodeText(digest, state.code[digest][0]))
            case UnsubscribeBundle(key):
                state.source_filter.remove_subscription(key)
            case ScopePlacement() | StateAnswer():
                collected: list[Effect] = []
                state.source_filter.on_condition_message(message, Emitter(now, collected.append))
                yield from collected
            case StateRequest(part, number) if part in state.local_conditions:
                watched = state.local_conditions[part]
                bits = sorted(watched.condition.bits(watched.runner.state))
                doubted = sorted(watched.condition.uncertain_bits(watched.runner.state))
                assert state.broker is not None
                yield Send(state.broker, StateAnswer(part, number, tuple(bits), tuple(doubted)))
            case Interruption(part, scopes):
                yield from _report_unknown(state, part, from_wire(scopes), "a connection on the way is lost")
            case HostedNotification(part, change) if (
                part in state.remote_conditions and state.remote_conditions[part].record(change)
            ):
                yield Deliver(ConditionChange(state.remote_conditions[part].name, change))

    def _on_bundle(self, state: CbpsClientState, now: Instant, bundle: Bundle) -> Iterator[Effect]:
        """Deliver a bundle to each matching subscription, once; take over subscriptions that it carries."""
        if bundle.subscriptions and self.filters_at_source and state.broker is not None:
            collected: list[Effect] = []
            emitter = Emitter(now, collected.append)
            state.source_filter.add_subscription(
                state.broker, bundle, self.conditions, state.promises, emitter
            )
            yield from collected
        if not state.duplicates.is_first(bundle.key):
            return
        seen = content_of(bundle.context, now) if bundle.context is not None else None
        is_delivered = False
        for notification in bundle.notifications:
            for name, part, subscription, incoming in _all_subscriptions(state):
                if not satisfies(subscription.filter, notification.content):
                    continue
                if seen is not None and not passes_any(incoming, seen):
                    continue
                if part in state.remote_conditions:
                    continue
                is_delivered = True
                if part in state.local_conditions:
                    yield from self._react(state, part, notification.content, now)
                else:
                    content = notification.content
                    yield Deliver(
                        ReceivedNotification(name, bundle.key, content, bundle.context, bundle.payloads)
                    )
        if bundle.payloads and not is_delivered:
            yield Deliver(AddressedPayload(bundle.key, bundle.payloads))

    def _react(
        self, state: CbpsClientState, part: SubscriptionRef, content: Content, now: Instant
    ) -> Iterator[Effect]:
        """Pass a notification to a condition that is evaluated here."""
        watched = state.local_conditions[part]
        event = watched.condition.event(content)
        if event is not None:
            yield from _deliver_changes(state, part, watched, watched.runner.process(event, now))


def _submitted_bundle(state: CbpsClientState, name: str) -> Bundle:
    """Return the bundle submitted under a name; an error suggests a similar name if there is none."""
    if name not in state.bundles:
        hint = did_you_mean(name, state.bundles) or ""
        raise UsageError(f"nothing was submitted under the name '{name}'. {hint}".rstrip())
    return state.bundles[name]


def _report_unknown(
    state: CbpsClientState, part: SubscriptionRef, scopes: Scopes, why: str
) -> Iterator[Effect]:
    """Report the condition of a subscription as unknown in the given scopes."""
    if (condition := state.local_conditions.get(part) or state.remote_conditions.get(part)) is not None:
        for scope, since in condition.mark_uncertain(scopes):
            yield Deliver(
                ConditionUnknown(
                    condition.name, condition.condition.name, scope, since, why, condition.preserves_activity
                )
            )


def _deliver_changes(
    state: CbpsClientState,
    part: SubscriptionRef,
    watched: LocalCondition,
    changes: Iterable[model.Notification],
) -> Iterator[Effect]:
    """Deliver the notifications of a local condition and set its next timer."""
    for notification in changes:
        yield Deliver(ConditionChange(watched.name, notification))
    if (at := watched.runner.next_timer(_final_time(state, watched))) is not None:
        yield SetTimer(_timer_name(part), at)


def _final_time(state: CbpsClientState, watched: LocalCondition) -> Instant | None:
    """Return the time that must pass so that a released condition can be corrected no more, if it is
    released."""
    progress = (
        _correction_progress(state, watched.name) if watched.name in state.pairing.corrections_until else None
    )
    if progress is None or progress.final_until > (last := state.pairing.settled_after(watched.name)):
        return None
    return last + progress.lag


def _reset_timers(state: CbpsClientState, name: str) -> Iterator[Effect]:
    """Set the timers of the released conditions under a name again."""
    for part, watched in state.local_conditions.items():
        if watched.name == name:
            yield from _deliver_changes(state, part, watched, ())


def _correction_progress(state: CbpsClientState, name: str) -> CorrectionProgress | None:
    """Return the correction progress of the condition under a name, if it corrects its notifications."""
    conditions = (condition for condition in state.local_conditions.values() if condition.name == name)
    progresses = (condition.condition.progress(condition.runner.state) for condition in conditions)
    return next((progress for progress in progresses if progress is not None), None)


def _timer_name(part: SubscriptionRef) -> str:
    """Return the name of the timer of a local condition."""
    return f"due {part.place} {part.bundle.sequence}"


def _all_subscriptions(
    state: CbpsClientState,
) -> Iterator[tuple[str, SubscriptionRef, CbpsSubscription, tuple[Filter, ...]]]:
    """Yield every subscription with its name, its reference and its context filters."""
    for name in state.subscribing:
        bundle = state.bundles[name]
        for i, subscription in enumerate(bundle.subscriptions):
            yield name, SubscriptionRef(bundle.key, i), subscription, bundle.incoming
