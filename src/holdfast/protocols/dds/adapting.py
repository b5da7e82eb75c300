"""A node that takes part in ARQoS: as the receiver that measures, as the publisher that obeys.  [D55–D61]"""

from __future__ import annotations

from ...errors import UsageError
from ...model.instant import Instant
from ...model.protocol import CancelTimer, Effect, Peer, Send, SetTimer
from .arqos import ALL, Agreement, Assembly, History, checked, is_adaptive
from .member import Member
from .message import PLAIN, Data, Have, Heartbeat, LevelRequest, Nack, Name, Stream, Switch, cause_of
from .state import Assured, State
from .subscriber import Subscriber
from .topic import Topic, TopicId


class Receiver(Subscriber, frozen=True):
    """The side that counts."""

    def assure(self, state: State, now: Instant, topic: Topic, percent: float) -> list[Effect]:
        """A level for a topic, at the beginning or while it runs.  [D55, D61]"""
        readers = state.of_topic(topic.id)
        if not any(reader.wish.condition == PLAIN and not reader.wish.where for reader in readers):
            raise UsageError(
                f"node {self.me} has no subscription to all samples of '{topic.name}'; subscribe first, "
                "without constraints: a share can be counted only of what was to come"
            )
        effects = self._end(state, topic.id)
        state.agreements[topic.id] = Agreement(checked(percent), state.newer(now))
        effects += self.say_level(state, now, topic.id)
        return [*effects, *self.next_phase(state, now, topic.id)] if is_adaptive(percent) else effects

    def unassured(self, state: State, now: Instant) -> list[Effect]:
        """Agreements end with the last reader of their topic, and publishers are told."""
        effects: list[Effect] = []
        for topic in [t for t in state.agreements if not any(True for _ in state.of_topic(t))]:
            effects += self._end(state, topic)
            nothing = LevelRequest(topic, 0.0, state.newer(now))
            publishers = self.deployment.publishers_of(topic)
            effects += [Send(publisher, nothing, cause_of(nothing)) for publisher in publishers]
        return effects

    def _end(self, state: State, topic: TopicId) -> list[Effect]:
        """No agreement for a topic: reliable mode is over, and so is what was assembled."""
        effects: list[Effect] = [CancelTimer(f"adaptive/{topic}"), CancelTimer(f"level/{topic}")]
        for key in [key for key in state.assemblies if key[1].topic == topic]:
            del state.assemblies[key]
        if (agreement := state.agreements.pop(topic, None)) is not None and is_adaptive(agreement.percent):
            reliable = [origin for origin, mode in agreement.reliable.items() if mode]
            effects += [self._order(state, topic, origin, False) for origin in reliable]
        return effects

    def _order(self, state: State, topic: TopicId, origin: Peer, reliable: bool) -> Send:
        """SWITCH, by way of the RN if there is one on the data path.  [D57]"""
        order = Switch(topic, origin, self.me, reliable)
        return Send(self.rendezvous(state, topic) if self.mode.brokered else origin, order, cause_of(order))

    def say_level(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """The level, to all publishers, as often as a subscription."""
        agreement, terms = state.agreements[topic], self.deployment.discovery
        agreement.said += 1
        asked = LevelRequest(topic, agreement.percent, agreement.version)
        publishers = self.deployment.publishers_of(topic)
        effects: list[Effect] = [Send(publisher, asked, cause_of(asked)) for publisher in publishers]
        if agreement.said < terms.repeats:
            effects.append(SetTimer(f"level/{topic}", now + terms.every))
        return effects

    def next_phase(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """Round, assurance interval, pause, and again.  [D56, D58]"""
        agreement, terms = state.agreements[topic], self.deployment.adaptive
        effects: list[Effect] = []
        match agreement.phase:
            case "pause":
                agreement.phase, length = "round", terms.round
            case "round":
                agreement.close()
                agreement.phase, length = "assurance", terms.assurance
            case "assurance":
                for origin, reliable in agreement.orders(now, terms.margin):
                    effects.append(self._order(state, topic, origin, reliable))
                agreement.phase, length = "pause", terms.pause
        return [*effects, SetTimer(f"adaptive/{topic}", now + length)]

    def take(self, state: State, data: Data) -> list[Effect]:
        """A sample for a reader: counted, if there is an agreement, and delivered."""
        stream = data.name.stream
        agreement = state.agreements.get(stream.topic) if stream.condition == PLAIN else None
        if agreement is None:
            return self.deliver(state, data)
        agreement.count(data)
        return (
            self._assemble(state, agreement, data) if agreement.percent == ALL else self.deliver(state, data)
        )

    def _assemble(self, state: State, agreement: Agreement, data: Data) -> list[Effect]:
        """At 100 %: what came too early waits for what is missing.  [D60]"""
        name = data.name
        assembly = state.assemblies.get((name.origin, name.stream))
        if assembly is None or assembly.session < name.session:
            asked = LevelRequest(name.stream.topic, agreement.percent, agreement.version)
            again = Send(name.origin, asked, cause_of(asked))
            if not data.kept:
                return [*self.deliver(state, data), again]
            assembly = state.assemblies[name.origin, name.stream] = Assembly(name.session)
            return [*self._taken(state, assembly, data), again]
        if name.place <= (assembly.session, assembly.complete):
            return self.deliver(state, data)
        return [*self._taken(state, assembly, data), *assembly.ask(data)]

    def _taken(self, state: State, assembly: Assembly, data: Data) -> list[Effect]:
        return [effect for each in assembly.take(data) for effect in self.deliver(state, each)]

    def heartbeat(self, state: State, now: Instant, beat: Heartbeat) -> list[Effect]:
        """A writer says what it sent last, and from where on it has kept it."""
        name = beat.name
        agreement = state.agreements.get(name.stream.topic)
        if agreement is None:
            nothing = LevelRequest(name.stream.topic, 0.0, state.newer(now))
            return [Send(name.origin, nothing, cause_of(nothing))]
        if agreement.percent != ALL:
            return self.say_level(state, now, name.stream.topic)
        key = (name.origin, name.stream)
        assembly = state.assemblies.get(key)
        if assembly is None or name.session > assembly.session:
            assembly = state.assemblies[key] = Assembly(name.session)
        if assembly.session > name.session:
            return []
        delivered = [effect for each in assembly.forgo(beat.first) for effect in self.deliver(state, each)]
        return [*delivered, *assembly.answer(name)]


class Originator(Member, frozen=True):
    """The side that is counted."""

    def leveled(self, state: State, sender: Peer, asked: LevelRequest) -> list[Effect]:
        """A receiver asks for a level; at 100 % it learns from which sample on."""
        stream = Stream(asked.topic)
        receivers = state.assured.setdefault(asked.topic, {})
        known = receivers.get(sender)
        if stream not in state.writers or (known is not None and known.version > asked.version):
            return []
        if known is None or known.version < asked.version:
            receivers[sender] = Assured(asked.percent, asked.version)
        history = state.histories.setdefault(asked.topic, History(stream))
        if asked.percent < ALL:
            history.leave(sender)
            if not history.since:
                del state.histories[asked.topic]
            return []
        last = self._last(state, stream)
        if sender not in history.since:
            history.join(sender, last.sequence)
        return [history.says(sender, last)]

    def _last(self, state: State, stream: Stream) -> Name:
        """The sample that was taken last."""
        return Name(self.me, stream, state.session, state.writers[stream].sequence)

    def switched(self, state: State, order: Switch) -> list[Effect]:
        """SWITCH: the table notes it, the originator sets its bit.  [D57]"""
        if self.mode.brokered and (rn := state.rendezvous.get(order.topic)) is not None:
            rn.registry.switched[order.receiver, order.origin] = order.reliable
        if order.origin != self.me:
            return [Send(order.origin, order, cause_of(order))] if self.mode.brokered else []
        if order.topic in state.subscribers:
            state.subscribers[order.topic].switched[order.receiver, self.me] = order.reliable
        if (receiver := state.assured.get(order.topic, {}).get(order.receiver)) is not None:
            receiver.reliable = order.reliable
        return []

    def beat(self, state: State, now: Instant, topic: TopicId) -> list[Effect]:
        """The timeout of what is kept."""
        if (history := state.histories.get(topic)) is None:
            return []
        last = self._last(state, history.stream)
        effects = history.beat(now, last, self.deployment.reliable, state.counted)
        if not history.since:
            del state.histories[topic]
        return effects

    def confirmed(self, state: State, sender: Peer, have: Have) -> list[Effect]:
        """A receiver has everything so far."""
        history = state.histories.get(have.name.stream.topic)
        if history is not None and have.name.session == state.session:
            history.confirm(sender, have.name.sequence)
        return []

    def repair(self, state: State, sender: Peer, asked: Nack) -> list[Effect]:
        """NACK: a receiver names what is missing.  [D60]"""
        history = state.histories.get(asked.stream.topic)
        if history is None or asked.session != state.session:
            return []
        return history.repair(sender, asked.missing, state.counted)
