"""Several instances of one agent: the choice of the leader and the transfer of readings to it.

Every broker with an advertisement of a source starts an agent beside it. So an agent has several instances in
three cases: several gateways advertise a source, a source moves between gateways, or a gateway advertises a
source without sending its readings. One instance leads: only the leader has ways laid to it and communicates
with partners. The others send it the readings that they receive. The leader drops readings that are older
than the latest.

An instance claims the lead with its first reading while no instance has a claim. So an instance without
readings replaces no other. Claims only grow, and the greatest leads (of equal claims, that of the greater
name). Therefore instances that can reach each other agree. A leader that ends, or learns of a greater claim,
names its successor to its partners and hands over its knowledge of the relationship. If a leader is lost
without a successor, the next one begins with a doubt, and reports the relationship as unknown.
"""

from __future__ import annotations

from ..cbps.client import Submit, WithdrawSubmission
from ..cbps.content import Constraint, Filter
from ..cbps.message import Bundle, BundleKey, CbpsSubscription, RoutingSlip
from .hosted_agent import HostedAgent
from .library import ADDRESS, INSTANCE, build_agent
from .mediated import MediatorAgent
from .messaging import AgentMessaging
from .shipped import ShippedAgent
from .talk import (
    AgentKnowledge,
    AgentReading,
    LeadClaim,
    LeadHandover,
    RelayedReading,
    SiblingLeave,
    SiblingMessage,
    SuccessorNotice,
)

READINGS_TO_MOVE = 8
"""The number of readings in a row from one other instance after which that instance takes the lead."""


class InstanceLeading(AgentMessaging):
    """Handles the messages between the instances of one agent."""

    # --- the lead ---

    def share(self, hosted: HostedAgent) -> None:
        """Announce this instance to the instances at other brokers with publishers of the source."""
        if not hosted.is_shared:
            hosted.is_shared = True
            self._lay_way(hosted, INSTANCE, (RoutingSlip("subscription", hosted.strategy.slip),))

    def take_lead(
        self,
        hosted: HostedAgent,
        knowledge: AgentKnowledge | None = None,
        *,
        doubt: bool = False,
        succeeds_lost: bool = False,
    ) -> None:
        """Take part in the strategy, with the knowledge of another instance or from the beginning."""
        hosted.is_leading, hosted.succeeds_lost, hosted.relay_run = True, succeeds_lost, ("", 0)
        agent = hosted.built.agent
        if isinstance(agent, ShippedAgent):
            self.carry_out(hosted, agent.start(doubt))
        elif knowledge is not None:
            agent.adopt(knowledge)
        elif doubt:
            agent.mark_unknown()
        slips = tuple(RoutingSlip("subscription", home) for _, home in hosted.parameters.partners)
        self._lay_way(hosted, ADDRESS, slips)
        self.choose_partners(hosted)
        if hosted.latest is not None and not succeeds_lost:
            self.call_agent(hosted, agent.on_reading, hosted.latest)

    def _lay_way(self, hosted: HostedAgent, field: str, slips: tuple[RoutingSlip, ...]) -> None:
        """Lay a way to this instance: a subscription to its name, with slips to its destinations."""
        mine = CbpsSubscription(Filter((Constraint(field, "text", "=", hosted.name),)))
        self.request(hosted, Submit(Bundle(BundleKey("", 0), slips=slips, subscriptions=(mine,)), field))

    def resign(self, hosted: HostedAgent, successor: str) -> None:
        """Hand over to another instance, and announce it to partners and siblings.

        An instance without a claim has nothing to hand over, and the others choose the next leader by
        themselves. They must not assume a claim, because they would then treat the end of this instance as a
        loss.
        """
        for at in hosted.ways_to_partners:
            self.send_to_partner(hosted, at, SuccessorNotice(successor))
        if hosted.claim:
            if hosted.leader != successor:
                hosted.claims[successor] = hosted.claim + 1
            for sibling in sorted(hosted.siblings - {successor}):
                self._send_to_sibling(hosted, sibling, SuccessorNotice(successor))
            knowledge = hosted.built.agent.knowledge()
            self._send_to_sibling(hosted, successor, LeadHandover(hosted.latest, knowledge))
        _, hosted.built = build_agent(hosted.strategy)
        self._stop_leading(hosted)

    def _stop_leading(self, hosted: HostedAgent) -> None:
        """Stop taking part in the strategy."""
        hosted.is_leading = False
        hosted.forget_partners()
        self.request(hosted, WithdrawSubmission(ADDRESS))

    def leave_siblings(self, hosted: HostedAgent) -> None:
        """Let the leader or the next leader continue without this instance."""
        if hosted.is_leading:
            self.resign(hosted, max(hosted.siblings, key=hosted.rank))
        else:
            self._send_to_sibling(hosted, hosted.leader, SiblingLeave())

    def update_lead(self, hosted: HostedAgent) -> None:
        """Take or hand over the lead after claims have changed."""
        if hosted.is_leading and hosted.leader != hosted.name:
            self.resign(hosted, hosted.leader)
        elif not hosted.is_leading and hosted.leader == hosted.name:
            self.take_lead(hosted, doubt=self.is_doubtful(hosted))

    def is_doubtful(self, hosted: HostedAgent) -> bool:
        """Whether earlier agents existed whose reports are unknown."""
        key, i, _ = hosted.place
        return hosted.in_doubt or self.state.routing.in_force[key].bundle.active[i].again

    def _claim(self, hosted: HostedAgent) -> None:
        """Raise the claim of this instance above all other claims, and inform its siblings."""
        hosted.claims[hosted.name] = 1 + max(hosted.claims.values(), default=0)
        for sibling in sorted(hosted.siblings):
            self._send_to_sibling(hosted, sibling, LeadClaim(hosted.claim))

    # --- instances come and go ---

    def update_siblings(self, hosted: HostedAgent) -> None:
        """Handle instances that have become reachable or unreachable."""
        reachable = {way.origin for way in self.state.instances.get(hosted.address, ())} - {hosted.name}
        leader_before, lost_siblings = hosted.leader, hosted.siblings - reachable
        for name in sorted(reachable - hosted.siblings):
            hosted.siblings.add(name)
            if hosted.claim:
                self._send_to_sibling(hosted, name, LeadClaim(hosted.claim))
        lost_claim = hosted.claims[leader_before] if leader_before in lost_siblings else 0
        hosted.siblings -= lost_siblings
        for name in lost_siblings:
            del hosted.claims[name]
        if lost_claim:
            self._replace_leader(hosted, lost_claim)
            return
        if hosted.is_leading and hosted.relay_run[0] in lost_siblings:
            self._restart_after_loss(hosted)
        self._follow(hosted, leader_before)

    def _replace_leader(self, hosted: HostedAgent, claim: int) -> None:
        """Handle the loss of a leader with a claim. The next leader claims more and begins with a doubt.

        It begins without a reading, because the lost leader may have received a later one.
        """
        if hosted.leader != hosted.name:
            hosted.claims[hosted.leader] = max(hosted.claims[hosted.leader], claim + 1)
            return
        hosted.claims[hosted.name] = claim
        self._claim(hosted)
        if hosted.built.agent.reports:
            self.report_doubt(hosted)
        self.take_lead(hosted, doubt=True, succeeds_lost=True)

    def _restart_after_loss(self, hosted: HostedAgent) -> None:
        """Restart with a doubt after the loss of the instance that sent the latest readings.

        Later readings may arrive at that instance, so the position of the source is unknown.
        """
        _, hosted.built = build_agent(hosted.strategy)
        if hosted.built.agent.reports:
            self.report_doubt(hosted)
        self._stop_leading(hosted)
        self.take_lead(hosted, doubt=True, succeeds_lost=True)

    def _follow(self, hosted: HostedAgent, before: str) -> None:
        """Send the latest reading to the leader if the leader has changed from ``before``."""
        self.update_lead(hosted)
        if not hosted.is_leading and hosted.leader != before and hosted.latest is not None:
            self._relay(hosted, hosted.latest)

    # --- readings ---

    def on_reading(self, hosted: HostedAgent, reading: AgentReading) -> None:
        """Handle a reading of the publisher beside this instance."""
        if hosted.is_late(reading):
            return
        hosted.latest = reading
        if not hosted.claims[hosted.leader]:
            self._claim(hosted)
        if not hosted.is_leading and hosted.leader == hosted.name:
            self.update_lead(hosted)  # which reads the latest
        elif hosted.is_leading:
            hosted.relay_run = ("", 0)
            self.call_agent(hosted, hosted.built.agent.on_reading, reading)
        else:
            self._relay(hosted, reading)

    def on_engaged(self, hosted: HostedAgent) -> None:
        """Claim the lead for a mediator when other agents begin to communicate with it.

        From then on, this instance has unique knowledge.
        """
        if isinstance(hosted.built.agent, MediatorAgent) and not hosted.claims[hosted.leader]:
            self._claim(hosted)

    def _relay(self, hosted: HostedAgent, reading: AgentReading) -> None:
        """Send a reading to the leader, unless the agent is a mediator."""
        if not isinstance(hosted.built.agent, MediatorAgent):
            self._send_to_sibling(hosted, hosted.leader, RelayedReading(reading))

    def _on_relayed(self, hosted: HostedAgent, sender: str, reading: AgentReading) -> None:
        """Handle a reading that another instance of the agent has sent."""
        if hosted.is_late(reading):
            return
        hosted.latest = reading
        if not hosted.is_leading:
            if hosted.leader != sender:
                self._relay(hosted, reading)
            return
        if not hosted.claim:
            self._claim(hosted)
        self.call_agent(hosted, hosted.built.agent.on_reading, reading)
        by, count = hosted.relay_run
        hosted.relay_run = (sender, count + 1 if by == sender else 1)
        can_move = sender in hosted.siblings and not isinstance(hosted.built.agent, ShippedAgent)
        if can_move and hosted.relay_run == (sender, READINGS_TO_MOVE):
            self.resign(hosted, sender)

    # --- messages between instances ---

    def on_sibling_message(self, hosted: HostedAgent, sender: str, word: SiblingMessage) -> None:
        """Handle a message of another instance of the same agent."""
        before = hosted.leader
        match word:
            case RelayedReading(reading):
                self._on_relayed(hosted, sender, reading)
            case LeadHandover(reading, knowledge):
                self._take_over(hosted, reading, knowledge)
            case LeadClaim(number):
                hosted.claims[sender] = max(number, hosted.claims[sender])
                self._follow(hosted, before)
            case SiblingLeave():
                if hosted.relay_run[0] == sender:
                    hosted.relay_run = ("", 0)
            case SuccessorNotice(name):
                hosted.claims[name] = max(hosted.claims[name], 1 + hosted.claims[sender])
                self._follow(hosted, before)

    def _take_over(
        self, hosted: HostedAgent, reading: AgentReading | None, knowledge: AgentKnowledge | None
    ) -> None:
        """Continue with the reading and the knowledge of the previous leader."""
        is_new = reading is not None and not hosted.is_late(reading)
        hosted.latest = reading if is_new else hosted.latest
        if not hosted.is_leading:
            self._claim(hosted)
            self.take_lead(hosted, knowledge, doubt=knowledge is None)
            return
        agent = hosted.built.agent
        known = agent.knowledge()
        if knowledge is not None and known is not None and knowledge.turns and knowledge != known:
            if known.turns:  # both have reported, and the order is not known
                agent.adopt(AgentKnowledge(1 + max(known.turns, knowledge.turns), None))
                agent.mark_unknown()
                self.report_doubt(hosted)
            else:
                agent.adopt(knowledge)
            self.call_agent(hosted, agent.change_relation, hosted.parameters.relation)
        if is_new and hosted.latest is not None:
            self.call_agent(hosted, agent.on_reading, hosted.latest)

    def _send_to_sibling(self, hosted: HostedAgent, sibling: str, word: SiblingMessage) -> None:
        """Send a message to another instance of the same agent."""
        self.request(hosted, self.message_to(INSTANCE, sibling, word))
