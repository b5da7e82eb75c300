"""The client machine of an overlay, for publishers and subscribers. [B51, B52]

A client has one connection, to a broker. Its advertisements and subscriptions have names. The client sends
them again whenever the connection is restored. It evaluates the conditions that it watches. When events may
have been lost, it reports each active condition as unknown until a later event decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
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
from .bundle import (
    compile_conditions,
    has_interest,
    has_stored_part,
    is_empty,
    is_source,
    stored_part,
    subscription_refs,
    transient_part,
)
from .condition import (
    CompileCondition,
    CorrectionProgress,
    HostedCondition,
    NetworkCondition,
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
from .routing import StoredBundle
from .runner import ConditionRunner
from .scopes import Scopes, from_wire
from .source_filter import SourceFilter
from .watch import Emitter

RENEW = "renew"
"""The timer for the renewal of leases."""

NEW = BundleKey("", 0)
"""The key of a bundle to which the client has not yet assigned a key."""

Filters = tuple[Filter, ...]

# --- requests of a user ---


class Submit(msgspec.Struct, frozen=True):
    """Request: send a bundle.

    The stored part of the bundle is known under ``name`` until it is withdrawn. ``code`` is the source text
    that its active subscriptions name by digest; brokers request it when they need it. ``exact`` is a
    condition that the client evaluates, behind the gates that the bundle requests from brokers.
    """

    bundle: Bundle
    name: str = ""
    code: str = ""
    exact: SubscriberCondition | None = None


class ReplaceActive(msgspec.Struct, frozen=True):
    """Request: replace the active subscriptions submitted under a name. Their agents continue to run.
    [B64]
    """

    name: str
    bundle: Bundle


class WithdrawSubmission(msgspec.Struct, frozen=True):
    """Request: withdraw all bundles submitted under a name."""

    name: str


class ReleaseSubscription(msgspec.Struct, frozen=True):
    """Request: deliver no further starts of the conditions under a name, and withdraw the name after the last
    end.
    """

    name: str


class LeaveNetwork(msgspec.Struct, frozen=True):
    """Request: withdraw all bundles. A client that leaves in this way loses no events, so no peer becomes
    uncertain.
    """


def advertise(name: str, filter_: Filter, *, flood_forward: bool = True, aggregation: bool = True) -> Submit:
    """Build the request that advertises notifications described by a filter."""
    advertisement = Advertisement(filter_, flood_forward, aggregation)
    return Submit(Bundle(NEW, advertisements=(advertisement,)), name)


def subscribe(
    name: str,
    filter_: Filter,
    *,
    incoming: Filters = (),
    flood_forward: bool = False,
    aggregation: bool = True,
) -> Submit:
    """Build the request for all notifications that satisfy ``filter_`` and one of the context filters
    ``incoming``.
    """
    subscription = CbpsSubscription(filter_, flood_forward, aggregation)
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch(name: str, definition: str, *, incoming: Filters = ()) -> Submit:
    """Build the request for the starts and ends of the condition in ``definition``."""
    subscription = CbpsSubscription(Filter(), state=ConditionText(definition))
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch_exactly(name: str, gates: Iterable[str], exact: SubscriberCondition) -> Submit:
    """Build the request for a condition that only this client can evaluate, because the condition uses a
    local lookup.

    Brokers evaluate ``gates``, which pass every event that is relevant to ``exact``.
    """
    subscriptions = tuple(CbpsSubscription(Filter(), state=ConditionText(definition)) for definition in gates)
    return Submit(Bundle(NEW, subscriptions=subscriptions), name, exact=exact)


def publish(content: Content, *, flood_forward: bool = False, outgoing: Filters = ()) -> Submit:
    """Build the request that publishes one notification."""
    notification = PublishedNotification(content, flood_forward)
    return Submit(Bundle(NEW, outgoing=outgoing, notifications=(notification,)))


# --- deliveries to a user ---


class ReceivedNotification(msgspec.Struct, frozen=True):
    """A notification that satisfies a subscription, with its context and the payloads of its bundle."""

    subscription: str
    bundle: BundleKey
    content: Content
    context: BundleContext | None = None
    payloads: tuple[str, ...] = ()


class ConditionChange(msgspec.Struct, frozen=True):
    """The start or end of a condition that a subscription watches."""

    subscription: str
    notification: model.Notification


class ConditionUnknown(msgspec.Struct, frozen=True):
    """Reports that an active condition became unknown, because events that could have ended it may be lost.

    If ``is_preserved``, the next event that decides confirms or ends the condition. Otherwise the condition
    starts again.
    """

    subscription: str
    condition: str
    scope: str | None
    since: Instant
    why: str
    is_preserved: bool = False


class SubscriptionClosed(msgspec.Struct, frozen=True):
    """Reports that every delivered start of a released name has ended, and that the name is withdrawn."""

    name: str


class AddressedPayload(msgspec.Struct, frozen=True):
    """The payloads of a bundle that a slip addressed to this client."""

    bundle: BundleKey
    payloads: tuple[str, ...]


class SubmissionRefused(msgspec.Struct, frozen=True):
    """Reports that a broker could not store a bundle, and that its name is withdrawn."""

    name: str
    why: str


class AgentsInterrupted(msgspec.Struct, frozen=True):
    """Reports that the connection is lost, so the relationships of an active subscription are
    unknown. [B69]
    """

    name: str
    why: str


class BundleUnsent(msgspec.Struct, frozen=True):
    """Reports that notifications were dropped because there is no connection."""

    bundle: BundleKey
    why: str


# --- the machine ---


@dataclass(slots=True)
class LocalCondition:
    """A condition that this client evaluates for a subscription. No broker decides its result."""

    name: str
    condition: SubscriberCondition
    runner: ConditionRunner

    @property
    def preserves_activity(self) -> bool:
        """Return whether an active scope stays active while it is uncertain."""
        return isinstance(self.condition, ReplicatedCondition)

    def mark_uncertain(self, scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Mark scopes as uncertain; return the scopes that were active, each with its start."""
        self.runner.state, lost = self.condition.mark_uncertain(self.runner.state, scopes)
        return lost


@dataclass(slots=True)
class RemoteCondition:
    """A condition that a broker evaluates for a subscription.

    ``active`` maps active scopes to their start. ``unknown`` are the scopes last reported as unknown, which
    the broker may have forgotten since. ``ended`` are scopes that have ended; they are recorded only if the
    condition can become active without a notification.
    """

    name: str
    condition: HostedCondition
    active: dict[str | None, Instant] = field(default_factory=dict)
    unknown: set[str | None] = field(default_factory=set)
    ended: set[str | None] = field(default_factory=set)

    preserves_activity = False

    def mark_uncertain(self, _scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Forget the state of all scopes; return the scopes that were active, each with its start."""
        lost = list(self.active.items())
        for table in (self.active, self.unknown, self.ended):
            table.clear()
        return lost

    def record(self, change: model.Notification) -> bool:
        """Record a start or end; return false if it does not follow from the known state.

        In that case the notification before it was lost, and the message that reports the loss is on its way.
        """
        scope, may_start_silently = change.scope, self.condition.may_start_silently
        is_unknown = scope in self.unknown
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
    """The state of a client: its bundles, its conditions, and its connection."""

    broker: Peer | None = None
    sequence: int = 0
    bundles: dict[str, Bundle] = field(default_factory=dict)
    local_conditions: dict[SubscriptionRef, LocalCondition] = field(default_factory=dict)
    remote_conditions: dict[SubscriptionRef, RemoteCondition] = field(default_factory=dict)
    code: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The submitted code and the name under which it was submitted, by the digest of the code."""
    pairing: PairTracker = field(default_factory=PairTracker)
    duplicates: DuplicateFilter = field(default_factory=DuplicateFilter)
    source_filter: SourceFilter = field(default_factory=SourceFilter)
    promises: PromiseIndex = field(default_factory=PromiseIndex)
    """The filters of the client's advertisements."""
    subscribing: dict[str, None] = field(default_factory=dict)
    """The names with subscriptions, in the order of submission."""

    def store(self, name: str, bundle: Bundle) -> None:
        """Store the part of a bundle that lasts under a name, in place of an earlier bundle."""
        if name in self.bundles:
            self.promises.remove(a.filter for a in self.bundles[name].advertisements)
        self.bundles[name] = bundle
        self.promises.add(a.filter for a in bundle.advertisements)
        if bundle.subscriptions:
            self.subscribing[name] = None
        else:
            self.subscribing.pop(name, None)

    def forget(self, name: str) -> None:
        """Forget the bundle that is stored under a name."""
        self.promises.remove(a.filter for a in self.bundles.pop(name).advertisements)
        self.subscribing.pop(name, None)


SUBSCRIBER_KINDS: tuple[Kind, ...] = ("notification", "context", "payload")
PUBLISHER_KINDS: tuple[Kind, ...] = ("subscription", *SUBSCRIBER_KINDS)
"""The kinds that a publisher accepts if it drops unwanted events itself."""


@dataclass(frozen=True)
class CbpsClient:
    """The client machine.

    ``accepts`` are the kinds of components that brokers may send to the client. With a ``lease`` in µs,
    brokers forget its bundles when the client is silent for that long. A client that accepts subscriptions
    drops events that no subscription needs before it sends them.
    """

    name: str
    conditions: CompileCondition
    accepts: tuple[Kind, ...] = SUBSCRIBER_KINDS
    lease: Duration | None = None

    @property
    def filters_at_source(self) -> bool:
        """Return whether the client drops events that no subscription needs."""
        return is_source(frozenset(self.accepts))

    def initial(self) -> CbpsClientState:
        """Return the state of the machine before its first input."""
        return CbpsClientState()

    def handle(self, state: CbpsClientState, given: Input) -> tuple[CbpsClientState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        step = _ClientStep(self, state, given.now)
        match given:
            case Started(now, _):
                state.sequence = now
            case Joined(_, peer):
                step.on_joined(peer)
            case Left(_, _, why):
                step.on_left(why)
            case Received(_, _, message):
                step.on_message(message)
            case Undelivered(_, _, Bundle(key=key)):
                step.on_refusal(key, "the connection to the broker does not take it")
            case Fired(_, timer):
                step.on_timer(timer)
            case Asked(_, request):
                step.on_request(request)
        step.close_finished()
        return state, step.effects


class _ClientStep:
    """Handles one input of a client and collects the effects."""

    def __init__(self, client: CbpsClient, state: CbpsClientState, now: Instant) -> None:
        self.client, self.state, self.now = client, state, now
        self.effects: list[Effect] = []
        self.emit = self.effects.append
        self.emitter = Emitter(now, self.emit)

    def send(self, message: CbpsMessage, cause: str = "") -> None:
        """Send a message to the broker. The client must have a connection."""
        assert self.state.broker is not None
        self.emit(Send(self.state.broker, message, cause))

    def deliver(self, what: Any) -> None:
        """Deliver an answer to the user, except released starts and the ends of those starts."""
        pairing, bundles, is_wanted = self.state.pairing, self.state.bundles, True
        match what:
            case ConditionChange(name, change):
                is_wanted = pairing.should_deliver(name, change)
            case ConditionUnknown(name, condition, scope, since):
                pair, is_preserved = (condition, scope), what.is_preserved
                is_wanted = pairing.should_deliver_unknown(name, pair, since, is_preserved=is_preserved)
            case ReceivedNotification(name, _, content) if name in bundles and bundles[name].active:
                is_wanted = pairing.should_report(name, content)
            case AgentsInterrupted(name):
                pairing.on_interrupted(name)
        if is_wanted:
            self.emit(Deliver(what))

    def close_finished(self) -> None:
        """Withdraw the released names whose delivered starts have all ended."""
        if self.state.pairing.released:
            for name in list(self.state.pairing.finished(self._progress)):
                self._withdraw(name)
                self.emit(Deliver(SubscriptionClosed(name)))

    # --- the connection ---

    def on_joined(self, peer: Peer) -> None:
        """Register with the broker, submit all bundles again and start to renew leases."""
        self.state.broker = peer
        self.send(Registration(self.client.accepts, request=True))
        for bundle in self.state.bundles.values():
            self._send_bundle(bundle)
        self._set_renewal_timer()

    def _set_renewal_timer(self) -> None:
        """Set the timer for the next renewal of leases."""
        if self.client.lease is not None:
            self.emit(SetTimer(RENEW, self.now + self.client.lease // 3))

    def on_left(self, why: str) -> None:
        """Report every condition that depended on the connection as unknown."""
        state = self.state
        state.broker = None
        state.source_filter.reset()
        self.emit(CancelTimer(RENEW))
        why = why or "the connection to the broker is lost"
        for part in (*state.local_conditions, *state.remote_conditions):
            self._report_unknown(part, None, why)
        for name, bundle in state.bundles.items():
            if bundle.active:
                state.bundles[name] = _mark_again(bundle)
                self.deliver(AgentsInterrupted(name, why))

    def on_timer(self, timer: str) -> None:
        """Handle a timer: renew leases, or advance a condition that is due."""
        state = self.state
        if timer == RENEW and state.broker is not None and self.client.lease is not None:
            self.send(Renewal(tuple(bundle.key for bundle in state.bundles.values())), "renewal")
            self._set_renewal_timer()
        for part, watched in state.local_conditions.items():
            if timer == _timer_name(part):
                self._deliver_changes(part, watched, watched.runner.on_timer(self.now))

    def on_refusal(self, key: BundleKey, why: str) -> None:
        """Withdraw and report the bundle with this key, which the broker has not stored."""
        names = [name for name, bundle in self.state.bundles.items() if bundle.key == key]
        for name in names:
            self._withdraw(name)
            self.deliver(SubmissionRefused(name, why))
        if not names:
            self.deliver(BundleUnsent(key, why))

    # --- requests of the user ---

    def on_request(self, request: Any) -> None:
        """Dispatch a request of the user to its handler."""
        state = self.state
        match request:
            case Submit():
                self._submit(request)
            case ReplaceActive(name, bundle):
                self._replace(name, bundle)
            case WithdrawSubmission(name):
                self._withdraw(name)
            case ReleaseSubscription(name):
                _submitted_bundle(state, name)
                state.pairing.release(name, self._progress(name))
                for part, watched in state.local_conditions.items():
                    if watched.name == name:
                        self._deliver_changes(part, watched, ())
            case LeaveNetwork():
                for name in list(state.bundles):
                    self._withdraw(name)
            case _:
                known = "submit, replace, withdraw, release and leave"
                raise UsageError(f"a client can {known}; it cannot {request!r}")

    def _submit(self, asked: Submit) -> None:
        """Check and name a bundle, start its conditions, and send it if there is a connection."""
        state, name, bundle = self.state, asked.name, asked.bundle
        if is_empty(bundle):
            raise UsageError("the bundle is empty: put something into it")
        if has_stored_part(stored_part(bundle)) and name in state.bundles:
            raise UsageError(f"'{name}' is taken; withdraw it first, or choose another name")
        self._check_promises(bundle)
        conditions = compile_conditions(bundle, self.client.conditions)
        state.sequence += 1
        key = BundleKey(self.client.name, state.sequence)
        requested = [
            (replace(s, filter=input), conditions.get(i))
            for i, s in enumerate(bundle.subscriptions)
            for input in (conditions[i].inputs if i in conditions else (s.filter,))
        ]
        bundle = replace(bundle, key=key, subscriptions=tuple(s for s, _ in requested))
        to_store = stored_part(bundle)
        if has_stored_part(to_store):
            bundle = replace(bundle, lease=self.client.lease)
            state.store(name, replace(to_store, lease=self.client.lease))
        self._start_conditions(asked, key, [condition for _, condition in requested])
        if state.broker is not None:
            self._send_bundle(bundle)
        elif not is_empty(transient_part(bundle)):
            self.deliver(BundleUnsent(key, "there is no connection to a broker"))
        if self._progress(name) is not None:
            state.pairing.mark_correcting(name)
        if asked.code:
            state.code |= {active.code: (asked.code, name) for active in bundle.active}

    def _start_conditions(
        self, asked: Submit, key: BundleKey, conditions: Iterable[NetworkCondition | None]
    ) -> None:
        """Start the conditions of a bundle, each for the subscription with the same index."""
        state, name, exact = self.state, asked.name, asked.exact
        local = None if exact is None else LocalCondition(name, exact, ConditionRunner.start(exact))
        for i, condition in enumerate(conditions):
            part = SubscriptionRef(key, i)
            if local is not None:
                state.local_conditions[part] = local
            elif isinstance(condition, ReplicatedCondition):
                runner = ConditionRunner.start(condition)
                state.local_conditions[part] = LocalCondition(name, condition, runner)
            elif isinstance(condition, HostedCondition):
                state.remote_conditions[part] = RemoteCondition(name, condition)

    def _check_promises(self, bundle: Bundle) -> None:
        """Raise an error if a notification does not conform to the client's advertisements. [B51]"""
        known, promises = self.state.promises, PromiseIndex()
        promises.add(a.filter for a in bundle.advertisements)
        for content in (notification.content for notification in bundle.notifications):
            if (known or promises) and not (known.fulfils_any(content) or promises.fulfils_any(content)):
                hint = "what this client advertises; advertise it first"
                raise UsageError(f"{dict(content)!r} is not within {hint}")

    def _replace(self, name: str, bundle: Bundle) -> None:
        """Replace an active subscription, and report it as interrupted if it becomes disabled."""
        state, old = self.state, _submitted_bundle(self.state, name)
        if not (old.active and bundle.active):
            hint = f"withdraw '{name}', and submit the other"
            raise UsageError(f"only active subscriptions are replaced; {hint}")
        was_disabled, is_disabled = (any(a.disabled for a in version.active) for version in (old, bundle))
        if was_disabled and not is_disabled:  # no agent has seen what has changed in between
            bundle = _mark_again(bundle)
        state.store(name, replace(stored_part(bundle), key=old.key, lease=self.client.lease))
        if state.broker is not None:
            self._send_bundle(state.bundles[name])
        if is_disabled and not was_disabled:
            self.deliver(AgentsInterrupted(name, "its agents are disabled"))

    def _withdraw(self, name: str) -> None:
        """Forget a bundle and its conditions, and withdraw it from the broker."""
        state, bundle = self.state, _submitted_bundle(self.state, name)
        state.forget(name)
        state.pairing.forget(name)
        state.code = {digest: code for digest, code in state.code.items() if code[1] != name}
        for part in subscription_refs(bundle):
            state.remote_conditions.pop(part, None)
            watched = state.local_conditions.pop(part, None)
            if watched is not None and watched.runner.timer_at is not None:
                self.emit(CancelTimer(_timer_name(part)))
        state.source_filter.remove_promises(a.filter for a in bundle.advertisements)
        if state.broker is not None and has_interest(bundle):
            self.send(UnsubscribeBundle(bundle.key), "subscription")
        if state.broker is not None and bundle.advertisements:
            self.send(UnadvertiseBundle(bundle.key), "advertisement")

    def _send_bundle(self, bundle: Bundle) -> None:
        """Send a bundle unless it is filtered at the source, and send the placements of replicas."""
        source_filter, filters_at_source = self.state.source_filter, self.client.filters_at_source
        replicas: list[Effect] = []
        emitter = Emitter(self.now, replicas.append)
        if filters_at_source and not source_filter.should_send(bundle, emitter):
            return
        self.send(bundle)
        if filters_at_source and bundle.advertisements:
            number = source_filter.add_promises((a.filter for a in bundle.advertisements), emitter)
            replicas.append(Send(self.state.broker or "", Echo(number)))
        self.effects += replicas
        for part in subscription_refs(bundle):
            if part in self.state.local_conditions:
                self.send(ScopePlacement(part, ()))

    # --- messages of the broker ---

    def on_message(self, message: CbpsMessage) -> None:
        """Dispatch a message of the broker to its handler."""
        state = self.state
        match message:
            case Bundle():
                self._on_bundle(message)
            case BundleRefusal(key, why):
                self.on_refusal(key, why)
            case Echo(number):
                state.source_filter.answered = number
            case CodeRequest(digest) if digest in state.code and state.broker is not None:
                self.send(CodeText(digest, state.code[digest][0]))
            case UnsubscribeBundle(key):
                state.source_filter.remove_subscription(key)
            case ScopePlacement() | StateAnswer():
                state.source_filter.on_condition_message(message, self.emitter)
            case StateRequest(part, number) if part in state.local_conditions:
                watched = state.local_conditions[part]
                bits = sorted(watched.condition.bits(watched.runner.state))
                doubted = sorted(watched.condition.uncertain_bits(watched.runner.state))
                self.send(StateAnswer(part, number, tuple(bits), tuple(doubted)))
            case Interruption(part, scopes):
                self._report_unknown(part, from_wire(scopes), "a connection on the way is lost")
            case HostedNotification(part, change) if (
                part in state.remote_conditions and state.remote_conditions[part].record(change)
            ):
                self.deliver(ConditionChange(state.remote_conditions[part].name, change))

    def _on_bundle(self, bundle: Bundle) -> None:
        """Deliver a bundle once to each matching subscription. Store the subscriptions that the bundle
        carries.
        """
        state = self.state
        if bundle.subscriptions and self.client.filters_at_source and state.broker is not None:
            conditions = compile_conditions(bundle, self.client.conditions)
            stored = StoredBundle(bundle, state.broker)
            state.source_filter.add_subscription(stored, conditions, state.promises, self.emitter)
        if not state.duplicates.is_first(bundle.key):
            return
        seen = content_of(bundle.context, self.now) if bundle.context is not None else None
        is_delivered = False
        for content in (notification.content for notification in bundle.notifications):
            for name, part, subscription, incoming in _all_subscriptions(state):
                if not satisfies(subscription.filter, content) or part in state.remote_conditions:
                    continue
                if seen is not None and not passes_any(incoming, seen):
                    continue
                is_delivered = True
                if part in state.local_conditions:
                    self._react(part, content)
                else:
                    context, payloads = bundle.context, bundle.payloads
                    self.deliver(ReceivedNotification(name, bundle.key, content, context, payloads))
        if bundle.payloads and not is_delivered:
            self.deliver(AddressedPayload(bundle.key, bundle.payloads))

    # --- conditions ---

    def _react(self, part: SubscriptionRef, content: Content) -> None:
        """Pass a notification to a condition that this client evaluates."""
        watched = self.state.local_conditions[part]
        event = watched.condition.event(content)
        if event is not None:
            self._deliver_changes(part, watched, watched.runner.process(event, self.now))

    def _report_unknown(self, part: SubscriptionRef, scopes: Scopes, why: str) -> None:
        """Report the condition of a subscription as unknown in the given scopes."""
        watched = self.state.local_conditions.get(part) or self.state.remote_conditions.get(part)
        if watched is not None:
            names, is_preserved = (watched.name, watched.condition.name), watched.preserves_activity
            for scope, since in watched.mark_uncertain(scopes):
                self.deliver(ConditionUnknown(*names, scope, since, why, is_preserved))

    def _deliver_changes(
        self, part: SubscriptionRef, watched: LocalCondition, changes: Iterable[model.Notification]
    ) -> None:
        """Deliver the notifications of a local condition and set its next timer."""
        for notification in changes:
            self.deliver(ConditionChange(watched.name, notification))
        if (at := watched.runner.next_timer(self._final_time(watched))) is not None:
            self.emit(SetTimer(_timer_name(part), at))

    def _final_time(self, watched: LocalCondition) -> Instant | None:
        """Return the time from which a released condition can no longer correct delivered notifications.

        ``None`` if the condition is not released, makes no corrections, or is already final.
        """
        name, pairing = watched.name, self.state.pairing
        progress = self._progress(name) if name in pairing.corrections_until else None
        if progress is None or progress.final_until > (last := pairing.settled_after(name)):
            return None
        return last + progress.lag

    def _progress(self, name: str) -> CorrectionProgress | None:
        """Return the correction progress of the condition under a name, if it corrects its notifications."""
        watched = (each for each in self.state.local_conditions.values() if each.name == name)
        progresses = (each.condition.progress(each.runner.state) for each in watched)
        return next((progress for progress in progresses if progress is not None), None)


def _submitted_bundle(state: CbpsClientState, name: str) -> Bundle:
    """Return the bundle submitted under a name. If there is none, the error suggests a similar name."""
    if name not in state.bundles:
        hint = did_you_mean(name, state.bundles) or ""
        raise UsageError(f"nothing was submitted under the name '{name}'. {hint}".rstrip())
    return state.bundles[name]


def _mark_again(bundle: Bundle) -> Bundle:
    """Return a bundle whose agents do not know the reports before their start."""
    return replace(bundle, active=tuple(replace(active, again=True) for active in bundle.active))


def _timer_name(part: SubscriptionRef) -> str:
    """Return the name of the timer of a local condition."""
    return f"due {part.place} {part.bundle.sequence}"


def _all_subscriptions(
    state: CbpsClientState,
) -> Iterator[tuple[str, SubscriptionRef, CbpsSubscription, Filters]]:
    """Yield every subscription with its name, its reference and its context filters."""
    for name in state.subscribing:
        bundle = state.bundles[name]
        for part, subscription in zip(subscription_refs(bundle), bundle.subscriptions, strict=True):
            yield name, part, subscription, bundle.incoming
