"""Several instances of one agent: which of them leads, and what the others send to it.

Whoever advertises a source has an agent started beside it.  So there are several instances of an agent where
several gateways advertise a source, where a source moves from one to another, and where somebody advertises
it and sends nothing.  One instance leads: only that has a way laid to it and talks to partners.  The others
send it the readings that they receive; it drops those that are older than the latest.

An instance claims the lead with the first reading that it receives while nobody has claimed it, so one
without readings displaces no other.  Claims only grow, and the greatest leads (of equal ones, that of the
greater name), so instances that know one another agree.  A leader that ends, or learns of a greater claim,
names its successor to its partners and hands over what it knows of the relationship.  If a leader is lost
without that, the next one begins with a doubt, and the subscriber is told that the relationship is unknown.
"""

from __future__ import annotations

from ..cbps.client import Submit, Withdraw
from ..cbps.content import Constraint, Filter
from ..cbps.message import Bundle, Key, RoutingSlip, Subscription
from .conversing import Conversing
from .hosted import Hosted
from .library import ADDRESS, INSTANCE, started
from .mediated import Above
from .shipped import Shipped
from .talk import Claim, Knowledge, Lead, Leave, Reading, Relayed, Successor, Word

MOVED = 8
"""After so many readings in a row that came by one other instance, that one leads."""


class Leading(Conversing):
    """The work that instances of one agent make among themselves."""

    # --- who leads ---

    def share(self, hosted: Hosted) -> None:
        """Other brokers have publishers of the source: let their instances know of this one."""
        if not hosted.is_shared:
            hosted.is_shared = True
            self._lay_way(hosted, INSTANCE, (RoutingSlip("subscription", hosted.strategy.slip),))

    def lead(
        self,
        hosted: Hosted,
        knowledge: Knowledge | None = None,
        *,
        doubt: bool = False,
        succeeds_lost: bool = False,
    ) -> None:
        """Take part in the strategy, from what another instance has handed over, or from the beginning."""
        hosted.leads, hosted.succeeds_lost, hosted.relayed = True, succeeds_lost, ("", 0)
        agent = hosted.made.agent
        if isinstance(agent, Shipped):
            self.want(hosted, agent.start(doubt))
        elif knowledge is not None:
            agent.adopt(knowledge)
        elif doubt:
            agent.doubt()
        slips = tuple(RoutingSlip("subscription", home) for _, home in hosted.part.partners)
        self._lay_way(hosted, ADDRESS, slips)
        self.reach(hosted)
        if hosted.latest is not None and not succeeds_lost:
            self.give(hosted, agent.read, hosted.latest)

    def _lay_way(self, hosted: Hosted, field: str, slips: tuple[RoutingSlip, ...]) -> None:
        mine = Subscription(Filter((Constraint(field, "text", "=", hosted.name),)))
        self.ask(hosted, Submit(Bundle(Key("", 0), slips=slips, subscriptions=(mine,)), field))

    def resign(self, hosted: Hosted, successor: str) -> None:
        """Hand over to another instance, which partners and the other instances expect from now on.

        Who has no claim has nothing to hand over: the others find the next by themselves, and must not think
        that it has a claim, or they would take its end for the loss of what it knew.
        """
        for at in hosted.reached:
            self.tell_partner(hosted, at, Successor(successor))
        if hosted.claim:
            if hosted.leader != successor:
                hosted.claims[successor] = hosted.claim + 1
            for sibling in sorted(hosted.siblings - {successor}):
                self._tell(hosted, sibling, Successor(successor))
            self._tell(hosted, successor, Lead(hosted.latest, hosted.made.agent.knowledge()))
        _, hosted.made = started(hosted.strategy)
        self._stop(hosted)

    def _stop(self, hosted: Hosted) -> None:
        """Take no part in the strategy any more."""
        hosted.leads = False
        for known in (hosted.reached, hosted.successors, hosted.heard, hosted.others, hosted.kept):
            known.clear()
        self.ask(hosted, Withdraw(ADDRESS))

    def leave(self, hosted: Hosted) -> None:
        """Let others continue: the next to lead, or whoever leads."""
        if hosted.leads:
            self.resign(hosted, max(hosted.siblings, key=hosted.rank))
        else:
            self._tell(hosted, hosted.leader, Leave())

    def settle(self, hosted: Hosted) -> None:
        """Lead, or let another lead, after claims have changed."""
        if hosted.leads and hosted.leader != hosted.name:
            self.resign(hosted, hosted.leader)
        elif not hosted.leads and hosted.leader == hosted.name:
            self.lead(hosted, doubt=self.is_doubtful(hosted))

    def is_doubtful(self, hosted: Hosted) -> bool:
        """Whether agents were there before, of which nobody knows what they reported."""
        key, i, _ = hosted.place
        return hosted.in_doubt or self.state.routing.in_force[key].bundle.active[i].again

    def _claim(self, hosted: Hosted) -> None:
        """Claim more than all others."""
        hosted.claims[hosted.name] = 1 + max(hosted.claims.values(), default=0)
        for sibling in sorted(hosted.siblings):
            self._tell(hosted, sibling, Claim(hosted.claim))

    # --- instances come and go ---

    def meet(self, hosted: Hosted) -> None:
        """Instances have come or gone."""
        there = {way.origin for way in self.state.instances.get(hosted.address, ())} - {hosted.name}
        before, gone = hosted.leader, hosted.siblings - there
        for name in sorted(there - hosted.siblings):
            hosted.siblings.add(name)
            if hosted.claim:
                self._tell(hosted, name, Claim(hosted.claim))
        lost = hosted.claims[before] if before in gone else 0
        hosted.siblings -= gone
        for name in gone:
            del hosted.claims[name]
        if lost:
            self._replace(hosted, lost)
            return
        if hosted.leads and hosted.relayed[0] in gone:
            self._begin_anew(hosted)
        self._follow(hosted, before)

    def _replace(self, hosted: Hosted, claim: int) -> None:
        """The leader is lost with what it knew, perhaps of later readings than here: whoever leads now claims
        more, and begins with a doubt and without a reading."""
        if hosted.leader != hosted.name:
            hosted.claims[hosted.leader] = max(hosted.claims[hosted.leader], claim + 1)
            return
        hosted.claims[hosted.name] = claim
        self._claim(hosted)
        if hosted.made.agent.reports:
            self.report_doubt(hosted)
        self.lead(hosted, doubt=True, succeeds_lost=True)

    def _begin_anew(self, hosted: Hosted) -> None:
        """The instance by which the latest reading came is lost, and later ones may come there: nobody knows
        any more where the source is."""
        _, hosted.made = started(hosted.strategy)
        if hosted.made.agent.reports:
            self.report_doubt(hosted)
        self._stop(hosted)
        self.lead(hosted, doubt=True, succeeds_lost=True)

    def _follow(self, hosted: Hosted, before: str) -> None:
        """Let the leader, if it is another than before, know the latest reading that came here."""
        self.settle(hosted)
        if not hosted.leads and hosted.leader != before and hosted.latest is not None:
            self._relay(hosted, hosted.latest)

    # --- readings ---

    def received(self, hosted: Hosted, reading: Reading) -> None:
        """A publisher beside this instance has sent a reading."""
        if hosted.is_late(reading):
            return
        hosted.latest = reading
        if not hosted.claims[hosted.leader]:
            self._claim(hosted)
        if not hosted.leads and hosted.leader == hosted.name:
            self.settle(hosted)  # which reads the latest
        elif hosted.leads:
            hosted.relayed = ("", 0)
            self.give(hosted, hosted.made.agent.read, reading)
        else:
            self._relay(hosted, reading)

    def engage(self, hosted: Hosted) -> None:
        """A mediator claims the lead when others begin to talk to it: from then on it knows what no other
        instance does."""
        if isinstance(hosted.made.agent, Above) and not hosted.claims[hosted.leader]:
            self._claim(hosted)

    def _relay(self, hosted: Hosted, reading: Reading) -> None:
        if not isinstance(hosted.made.agent, Above):
            self._tell(hosted, hosted.leader, Relayed(reading))

    def _relayed(self, hosted: Hosted, sender: str, reading: Reading) -> None:
        if hosted.is_late(reading):
            return
        hosted.latest = reading
        if not hosted.leads:
            if hosted.leader != sender:
                self._relay(hosted, reading)
            return
        if not hosted.claim:
            self._claim(hosted)
        self.give(hosted, hosted.made.agent.read, reading)
        by, count = hosted.relayed
        hosted.relayed = (sender, count + 1 if by == sender else 1)
        can_move = sender in hosted.siblings and not isinstance(hosted.made.agent, Shipped)
        if can_move and hosted.relayed == (sender, MOVED):
            self.resign(hosted, sender)

    # --- what instances say to one another ---

    def from_sibling(self, hosted: Hosted, sender: str, word: Word) -> None:
        """Another instance says something."""
        before = hosted.leader
        match word:
            case Relayed(reading):
                self._relayed(hosted, sender, reading)
            case Lead(reading, knowledge):
                self._take_over(hosted, reading, knowledge)
            case Claim(number):
                hosted.claims[sender] = max(number, hosted.claims[sender])
                self._follow(hosted, before)
            case Leave():
                if hosted.relayed[0] == sender:
                    hosted.relayed = ("", 0)
            case Successor(name):
                hosted.claims[name] = max(hosted.claims[name], 1 + hosted.claims[sender])
                self._follow(hosted, before)

    def _take_over(self, hosted: Hosted, reading: Reading | None, knowledge: Knowledge | None) -> None:
        is_new = reading is not None and not hosted.is_late(reading)
        hosted.latest = reading if is_new else hosted.latest
        if not hosted.leads:
            self._claim(hosted)
            self.lead(hosted, knowledge, doubt=knowledge is None)
            return
        agent = hosted.made.agent
        known = agent.knowledge()
        if knowledge is not None and known is not None and knowledge.turns and knowledge != known:
            if known.turns:  # both have reported: nobody knows which of them last
                agent.adopt(Knowledge(1 + max(known.turns, knowledge.turns), None))
                agent.doubt()
                self.report_doubt(hosted)
            else:
                agent.adopt(knowledge)
            self.give(hosted, agent.reset, hosted.part.relation)
        if is_new and hosted.latest is not None:
            self.give(hosted, agent.read, hosted.latest)

    def _tell(self, hosted: Hosted, sibling: str, word: Word) -> None:
        self.ask(hosted, self.addressed(INSTANCE, sibling, word))
