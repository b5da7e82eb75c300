"""Publishers and subscribers: the other kind of machine on an overlay.  [B51, B52]

A client has one connection, to a broker.  What it advertises and subscribes to has a name and is sent
again whenever the connection comes back.  It runs the conditions that it watches, and says of each that
held when events may have been lost that nobody knows any more, until an event decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from ...errors import UsageError, did_you_mean
from ...model import event as model
from ...model.instant import Duration, Instant
from ...model.protocol import (
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
from .bundle import has_interest, is_empty, is_source, is_stored, lasting, passing
from .condition import Conditions, Hosted, Outlook, Replicated, Watchable
from .content import Content, Filter, satisfied
from .context import content_of, passes
from .message import (
    Advertisement,
    Answer,
    Ask,
    Bundle,
    Code,
    Context,
    Echo,
    Interruption,
    Key,
    Kind,
    Message,
    Notification,
    Part,
    Placement,
    Refusal,
    Registration,
    Renewal,
    Said,
    StateFilter,
    Subscription,
    Unadvertise,
    Unsubscribe,
    Wanted,
)
from .once import Once
from .pairing import Pairing
from .promising import Promises
from .promising import keeps as keeps
from .running import Running
from .scopes import Scopes, from_wire
from .sourcing import Sourcing
from .watch import Moment

RENEW = "renew"
"""The timer that runs out when leases are to be renewed."""

NEW = Key("", 0)
"""The name of a bundle that a client has yet to name."""

# --- what a user asks for ---


@dataclass(frozen=True, slots=True)
class Submit:
    """Send a bundle.  What of it is stored is known by a name until it is withdrawn.  ``code`` is what its
    active subscriptions name by digest; brokers that need it ask for it.  ``exact`` is what is watched here,
    behind what the bundle asks brokers to let pass."""

    bundle: Bundle
    name: str = ""
    code: str = ""
    exact: Watchable | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Say something else in place of what was submitted under a name: agents go on by that.  [B64]"""

    name: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back what was submitted under a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """Tell no more starts of the conditions under a name; what was told to start is told to end, and then
    it is withdrawn."""

    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Take back everything: who has said goodbye has lost nothing, and others need not fear it."""


def advertise(name: str, filter_: Filter, *, flood_forward: bool = True, aggregation: bool = True) -> Submit:
    """Promise notifications that a filter describes."""
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
    """Ask for every notification that a filter, and one of the context filters, lets pass."""
    subscription = Subscription(filter_, flood_forward, aggregation)
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch(name: str, definition: str, *, incoming: tuple[Filter, ...] = ()) -> Submit:
    """Ask for the starts and ends of a condition."""
    subscription = Subscription(Filter(), state=StateFilter(definition))
    return Submit(Bundle(NEW, incoming=incoming, subscriptions=(subscription,)), name)


def watch_exactly(name: str, gates: Iterable[str], exact: Watchable) -> Submit:
    """Ask for what gates let pass, and run a condition on it that only we can: it looks something up here."""
    some = tuple(Subscription(Filter(), state=StateFilter(definition)) for definition in gates)
    return Submit(Bundle(NEW, subscriptions=some), name, exact=exact)


def publish(content: Content, *, flood_forward: bool = False, outgoing: tuple[Filter, ...] = ()) -> Submit:
    """Say something."""
    return Submit(Bundle(NEW, outgoing=outgoing, notifications=(Notification(content, flood_forward),)))


# --- what a user is told ---


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification that a subscription asked for, and what came with it."""

    subscription: str
    bundle: Key
    content: Content
    context: Context | None = None
    payloads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """The start or end of a condition that a subscription watches."""

    subscription: str
    notification: model.Notification


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition held, and events that could have ended it may be lost.  One that is ``kept`` is told to be
    known, or to end, by the next event that decides; any other begins anew."""

    subscription: str
    condition: str
    scope: str | None
    since: Instant
    why: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """All has ended that was told to start under a name that was released; it is withdrawn."""

    name: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """What came with a bundle that was addressed to this client by a slip."""

    bundle: Key
    payloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A broker cannot store what was submitted under a name; it is withdrawn."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The connection is lost: nobody knows what the relationships of an active subscription are.  [B69]"""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """Notifications that never left, for want of a connection."""

    bundle: Key
    why: str


# --- the machine ---


@dataclass(slots=True)
class Watched:
    """A condition that a subscription watches: it is run here, and has the last word."""

    name: str
    condition: Watchable
    running: Running

    @property
    def keeps(self) -> bool:
        """Whether what is in doubt goes on."""
        return isinstance(self.condition, Replicated)

    def doubt(self, scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Nobody knows any more what holds in some scopes; where it did, and since when."""
        self.running.state, lost = self.condition.doubt(self.running.state, scopes)
        return lost


@dataclass(slots=True)
class Followed:
    """Any other condition, which a broker runs for us: where it holds, and since when; where it was last said
    to be unknown, and may have been forgotten since; and where it has ended, if it may hold unsaid."""

    name: str
    condition: Hosted
    holds: dict[str | None, Instant] = field(default_factory=dict)
    unknown: set[str | None] = field(default_factory=set)
    ended: set[str | None] = field(default_factory=set)

    keeps = False

    def doubt(self, _scopes: Scopes) -> list[tuple[str | None, Instant]]:
        """Nobody knows any more what holds; where it did, and since when."""
        lost = list(self.holds.items())
        for known in (self.holds, self.unknown, self.ended):
            known.clear()
        return lost

    def fits(self, said: model.Notification) -> bool:
        """Whether a start or end follows from what we know: else the one before it is lost, and the word
        about that is on its way."""
        scope, doubtful, unsaid = said.scope, said.scope in self.unknown, self.condition.unsaid
        match said.status:
            case "unknown":
                self.unknown.add(scope)
                return True
            case "ingress" if scope not in self.holds or doubtful:
                self.holds[scope] = said.event.time
                self.ended.discard(scope)
            case "egress" if scope in self.holds or (unsaid and (doubtful or scope not in self.ended)):
                self.holds.pop(scope, None)
                if unsaid:
                    self.ended.add(scope)
            case "ingress" | "egress":
                return False
        self.unknown.discard(scope)
        return True


@dataclass(slots=True)
class ClientState:
    """All that a client remembers."""

    broker: Peer | None = None
    sequence: int = 0
    bundles: dict[str, Bundle] = field(default_factory=dict)
    watched: dict[Part, Watched] = field(default_factory=dict)
    followed: dict[Part, Followed] = field(default_factory=dict)
    code: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By digest: the code that was submitted, and under which name."""
    pairing: Pairing = field(default_factory=Pairing)
    once: Once = field(default_factory=Once)
    sourcing: Sourcing = field(default_factory=Sourcing)
    promises: Promises = field(default_factory=Promises)
    """What it has advertised."""
    listening: dict[str, None] = field(default_factory=dict)
    """The names under which it subscribes to something."""

    def store(self, name: str, bundle: Bundle) -> None:
        """Know what is to be stored under a name, in place of anything else."""
        if name in self.bundles:
            self.promises.remove(a.filter for a in self.bundles[name].advertisements)
        self.bundles[name] = bundle
        self.promises.add(a.filter for a in bundle.advertisements)
        if bundle.subscriptions:
            self.listening[name] = None
        else:
            self.listening.pop(name, None)

    def forget(self, name: str) -> None:
        """Know nothing under a name."""
        self.promises.remove(a.filter for a in self.bundles.pop(name).advertisements)
        self.listening.pop(name, None)


HEARS: tuple[Kind, ...] = ("notification", "context", "payload")
SOURCE: tuple[Kind, ...] = ("subscription", *HEARS)
"""What a publisher accepts that drops itself what nobody wants."""


@dataclass(frozen=True)
class Client:
    """The machine.  ``accepts`` is what it wants to be sent; with a ``lease`` brokers forget what it has
    stored with them after that long a silence.  One that accepts subscriptions drops itself what nobody
    wants of what it publishes."""

    name: str
    conditions: Conditions
    accepts: tuple[Kind, ...] = HEARS
    lease: Duration | None = None

    @property
    def filters(self) -> bool:
        """Whether it drops what nobody wants."""
        return is_source(frozenset(self.accepts))

    def initial(self) -> ClientState:
        return ClientState()

    def handle(self, state: ClientState, given: Input) -> tuple[ClientState, list[Effect]]:
        match given:
            case Started(now, _):
                state.sequence = now
                effects: Iterator[Effect] = iter(())
            case Joined(now, peer):
                effects = self._joined(state, now, peer)
            case Left(_, _, why):
                effects = self._left(state, why)
            case Received(now, _, message):
                effects = self._received(state, now, message)
            case Undelivered(_, _, message):
                effects = self._undelivered(state, message)
            case Fired(now, timer):
                effects = self._fired(state, timer, now)
            case Asked(now, request):
                effects = self._asked(state, request, now)
        return state, list(self._paired(state, effects))

    def _paired(self, state: ClientState, effects: Iterable[Effect]) -> Iterator[Effect]:
        """What is told, but for starts that nobody wants any more and their ends."""
        for effect in effects:
            match effect:
                case Deliver(Told(name, said)) if not state.pairing.tells(name, said):
                    continue
                case Deliver(Unknown() as lost) if not state.pairing.loses(
                    lost.subscription, (lost.condition, lost.scope), lost.since, kept=lost.kept
                ):
                    continue
                case Deliver(Heard(name, _, content)) if self._is_report(state, name):
                    if not state.pairing.reports(name, content):
                        continue
                case Deliver(Interrupted(name)):
                    state.pairing.interrupted(name)
            yield effect
        if state.pairing.released:
            for name in list(state.pairing.over(partial(_outlook, state))):
                yield from self._withdraw(state, name)
                yield Deliver(Closed(name))

    def _is_report(self, state: ClientState, name: str) -> bool:
        """Whether agents have said what was heard under a name."""
        return name in state.bundles and bool(state.bundles[name].active)

    # --- the connection ---

    def _joined(self, state: ClientState, now: Instant, peer: Peer) -> Iterator[Effect]:
        state.broker = peer
        yield Send(peer, Registration(self.accepts, request=True))
        for bundle in state.bundles.values():
            yield from self._send(state, bundle, now)
        if self.lease is not None:
            yield SetTimer(RENEW, now + self.lease // 3)

    def _left(self, state: ClientState, why: str) -> Iterator[Effect]:
        state.broker = None
        state.sourcing.forget()
        yield CancelTimer(RENEW)
        why = why or "the connection to the broker is lost"
        for part in (*state.watched, *state.followed):
            yield from _lost(state, part, None, why)
        for name, bundle in state.bundles.items():
            if bundle.active:
                state.bundles[name] = replace(
                    bundle, active=tuple(replace(a, again=True) for a in bundle.active)
                )
                yield Deliver(Interrupted(name, why))

    def _renew(self, state: ClientState, now: Instant) -> Iterator[Effect]:
        if state.broker is not None and self.lease is not None:
            keys = tuple(bundle.key for bundle in state.bundles.values())
            yield Send(state.broker, Renewal(keys), cause="renewal")
            yield SetTimer(RENEW, now + self.lease // 3)

    def _fired(self, state: ClientState, timer: str, now: Instant) -> Iterator[Effect]:
        if timer == RENEW:
            yield from self._renew(state, now)
        for part, watched in state.watched.items():
            if timer == _timer(part):
                yield from _told(state, part, watched, watched.running.wake(now))

    def _undelivered(self, state: ClientState, message: Message) -> Iterator[Effect]:
        if isinstance(message, Bundle):
            yield from self._refused(state, message.key, "the connection to the broker does not take it")

    def _refused(self, state: ClientState, key: Key, why: str) -> Iterator[Effect]:
        """The broker does not have a bundle; what should be stored there is withdrawn."""
        names = [name for name, bundle in state.bundles.items() if bundle.key == key]
        for name in names:
            yield from self._withdraw(state, name)
            yield Deliver(Refused(name, why))
        if not names:
            yield Deliver(Unsent(key, why))

    # --- what the user asks ---

    def _asked(self, state: ClientState, request: Any, now: Instant) -> Iterator[Effect]:
        match request:
            case Submit(bundle, name, code, exact):
                yield from self._submit(state, bundle, name, now, exact)
                if _outlook(state, name) is not None:
                    state.pairing.corrects(name)
                if code:
                    state.code |= {active.code: (code, name) for active in bundle.active}
            case Replace(name, bundle):
                yield from self._replace(state, name, bundle, now)
            case Withdraw(name):
                yield from self._withdraw(state, name)
            case Release(name):
                _known(state, name)
                state.pairing.release(name, _outlook(state, name))
                yield from _timers(state, name)
            case Leave():
                for name in list(state.bundles):
                    yield from self._withdraw(state, name)
            case _:
                raise UsageError(
                    f"a client can submit, replace, withdraw, release and leave; it cannot {request!r}"
                )

    def _submit(
        self, state: ClientState, bundle: Bundle, name: str, now: Instant, exact: Watchable | None
    ) -> Iterator[Effect]:
        if is_empty(bundle):
            raise UsageError("the bundle is empty: put something into it")
        if is_stored(lasting(bundle)) and name in state.bundles:
            raise UsageError(f"'{name}' is taken; withdraw it first, or choose another name")
        self._require_promised(state, bundle)
        conditions = {
            i: self.conditions(subscription.state.definition)
            for i, subscription in enumerate(bundle.subscriptions)
            if subscription.state is not None
        }
        state.sequence += 1
        key = Key(self.name, state.sequence)
        wanted = [
            (replace(s, filter=input), conditions.get(i))
            for i, s in enumerate(bundle.subscriptions)
            for input in (conditions[i].inputs if i in conditions else (s.filter,))
        ]
        bundle = replace(bundle, key=key, subscriptions=tuple(s for s, _ in wanted))
        kept = lasting(bundle)
        if is_stored(kept):
            bundle = replace(bundle, lease=self.lease)
            state.store(name, replace(kept, lease=self.lease))
        here = None if exact is None else Watched(name, exact, Running.begun(exact))
        for i, (_, condition) in enumerate(wanted):
            if here is not None:
                state.watched[Part(key, i)] = here
            elif isinstance(condition, Replicated):
                state.watched[Part(key, i)] = Watched(name, condition, Running.begun(condition))
            elif isinstance(condition, Hosted):
                state.followed[Part(key, i)] = Followed(name, condition)
        if state.broker is not None:
            yield from self._send(state, bundle, now)
        elif not is_empty(passing(bundle)):
            yield Deliver(Unsent(key, "there is no connection to a broker"))

    def _require_promised(self, state: ClientState, bundle: Bundle) -> None:
        """Notifications keep what the advertisements promise.  [B51]"""
        own = Promises()
        own.add(a.filter for a in bundle.advertisements)
        for content in (notification.content for notification in bundle.notifications):
            if (state.promises or own) and not (state.promises.keeps(content) or own.keeps(content)):
                raise UsageError(
                    f"{dict(content)!r} is not within what this client advertises; advertise it first"
                )

    def _replace(self, state: ClientState, name: str, bundle: Bundle, now: Instant) -> Iterator[Effect]:
        old = _known(state, name)
        if not (old.active and bundle.active):
            raise UsageError(
                f"only active subscriptions are replaced; withdraw '{name}', and submit the other"
            )
        was_disabled, is_disabled = (any(a.disabled for a in one.active) for one in (old, bundle))
        if was_disabled and not is_disabled:  # what has changed meanwhile, nobody has seen
            bundle = replace(bundle, active=tuple(replace(a, again=True) for a in bundle.active))
        state.store(name, replace(lasting(bundle), key=old.key, lease=self.lease))
        if state.broker is not None:
            yield from self._send(state, state.bundles[name], now)
        if is_disabled and not was_disabled:
            yield Deliver(Interrupted(name, "its agents are disabled"))

    def _withdraw(self, state: ClientState, name: str) -> Iterator[Effect]:
        bundle = _known(state, name)
        state.forget(name)
        state.pairing.forget(name)
        state.code = {digest: code for digest, code in state.code.items() if code[1] != name}
        for i in range(len(bundle.subscriptions)):
            state.followed.pop(part := Part(bundle.key, i), None)
            watched = state.watched.pop(part, None)
            if watched is not None and watched.running.wakes is not None:
                yield CancelTimer(_timer(part))
        state.sourcing.recalled(a.filter for a in bundle.advertisements)
        if state.broker is not None and has_interest(bundle):
            yield Send(state.broker, Unsubscribe(bundle.key), cause="subscription")
        if state.broker is not None and bundle.advertisements:
            yield Send(state.broker, Unadvertise(bundle.key), cause="advertisement")

    def _send(self, state: ClientState, bundle: Bundle, now: Instant) -> Iterator[Effect]:
        assert state.broker is not None
        also: list[Effect] = []
        if self.filters and not state.sourcing.lets(bundle, Moment(now, also.append)):
            return
        yield Send(state.broker, bundle)
        if self.filters and bundle.advertisements:
            promised = (a.filter for a in bundle.advertisements)
            also.append(Send(state.broker, Echo(state.sourcing.promised(promised, Moment(now, also.append)))))
        yield from also
        for i in range(len(bundle.subscriptions)):
            if (part := Part(bundle.key, i)) in state.watched:
                yield Send(state.broker, Placement(part, ()))

    # --- what the broker says ---

    def _received(self, state: ClientState, now: Instant, message: Message) -> Iterator[Effect]:
        match message:
            case Bundle():
                yield from self._bundle(state, now, message)
            case Refusal(key, why):
                yield from self._refused(state, key, why)
            case Echo(number):
                state.sourcing.answered = number
            case Wanted(digest) if digest in state.code and state.broker is not None:
                yield Send(state.broker, Code(digest, state.code[digest][0]))
            case Unsubscribe(key):
                state.sourcing.unsubscribed(key)
            case Placement() | Answer():
                also: list[Effect] = []
                state.sourcing.about(message, Moment(now, also.append))
                yield from also
            case Ask(part, number) if part in state.watched:
                watched = state.watched[part]
                bits = sorted(watched.condition.bits(watched.running.state))
                doubted = sorted(watched.condition.doubted(watched.running.state))
                assert state.broker is not None
                yield Send(state.broker, Answer(part, number, tuple(bits), tuple(doubted)))
            case Interruption(part, scopes):
                yield from _lost(state, part, from_wire(scopes), "a connection on the way is lost")
            case Said(part, said) if part in state.followed and state.followed[part].fits(said):
                yield Deliver(Told(state.followed[part].name, said))

    def _bundle(self, state: ClientState, now: Instant, bundle: Bundle) -> Iterator[Effect]:
        """What came, to each subscription that wants it, and never twice; and what others want."""
        if bundle.subscriptions and self.filters and state.broker is not None:
            also: list[Effect] = []
            moment = Moment(now, also.append)
            state.sourcing.subscribed(state.broker, bundle, self.conditions, state.promises, moment)
            yield from also
        if not state.once.first(bundle.key):
            return
        seen = content_of(bundle.context, now) if bundle.context is not None else None
        heard = False
        for notification in bundle.notifications:
            for name, part, subscription, incoming in _subscriptions(state):
                if not satisfied(subscription.filter, notification.content):
                    continue
                if seen is not None and not passes(incoming, seen):
                    continue
                if part in state.followed:
                    continue
                heard = True
                if part in state.watched:
                    yield from self._react(state, part, notification.content, now)
                else:
                    content = notification.content
                    yield Deliver(Heard(name, bundle.key, content, bundle.context, bundle.payloads))
        if bundle.payloads and not heard:
            yield Deliver(Parcel(bundle.key, bundle.payloads))

    def _react(self, state: ClientState, part: Part, content: Content, now: Instant) -> Iterator[Effect]:
        watched = state.watched[part]
        event = watched.condition.event(content)
        if event is not None:
            yield from _told(state, part, watched, watched.running.take(event, now))


def _known(state: ClientState, name: str) -> Bundle:
    """What was submitted under a name."""
    if name not in state.bundles:
        hint = did_you_mean(name, state.bundles) or ""
        raise UsageError(f"nothing was submitted under the name '{name}'. {hint}".rstrip())
    return state.bundles[name]


def _lost(state: ClientState, part: Part, scopes: Scopes, why: str) -> Iterator[Effect]:
    """Nobody knows any more what holds in some scopes of a subscription's condition."""
    if (one := state.watched.get(part) or state.followed.get(part)) is not None:
        for scope, since in one.doubt(scopes):
            yield Deliver(Unknown(one.name, one.condition.name, scope, since, why, one.keeps))


def _told(
    state: ClientState, part: Part, watched: Watched, said: Iterable[model.Notification]
) -> Iterator[Effect]:
    """What a condition that is run here says, and when it is to be looked at again."""
    for notification in said:
        yield Deliver(Told(watched.name, notification))
    if (at := watched.running.timer(_awaited(state, watched))) is not None:
        yield SetTimer(_timer(part), at)


def _awaited(state: ClientState, watched: Watched) -> Instant | None:
    """Beyond which instant time must come so that what is released can be corrected no more."""
    outlook = _outlook(state, watched.name) if watched.name in state.pairing.until else None
    if outlook is None or outlook.final > (last := state.pairing.settles(watched.name)):
        return None
    return last + outlook.behind


def _timers(state: ClientState, name: str) -> Iterator[Effect]:
    """Look again at what was released."""
    for part, watched in state.watched.items():
        if watched.name == name:
            yield from _told(state, part, watched, ())


def _outlook(state: ClientState, name: str) -> Outlook | None:
    """How far the condition under a name has come, if it corrects what it has told."""
    running = (one for one in state.watched.values() if one.name == name)
    found = (one.condition.outlook(one.running.state) for one in running)
    return next((outlook for outlook in found if outlook is not None), None)


def _timer(part: Part) -> str:
    """The timer of a condition that is run here."""
    return f"due {part.place} {part.bundle.sequence}"


def _subscriptions(state: ClientState) -> Iterator[tuple[str, Part, Subscription, tuple[Filter, ...]]]:
    for name in state.listening:
        bundle = state.bundles[name]
        for i, subscription in enumerate(bundle.subscriptions):
            yield name, Part(bundle.key, i), subscription, bundle.incoming
