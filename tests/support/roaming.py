"""Subscribers that move about a random field of nodes, beside the judge."""

from __future__ import annotations

from collections import Counter

from holdfast.network.protocols.sps.proxy import ArriveRequest, GotRequest, ProxyNode
from holdfast.network.protocols.sps.traveller import BroughtEvent, Ticket, Traveller, wish
from support.fields import SIDE, TOPICS, FieldScenario


class Roaming(FieldScenario):
    """Subscribers that move."""

    every = None

    def __post_init__(self):
        super().__post_init__()
        self.travellers: dict[str, Traveller] = {}
        self.where: dict[str, int | None] = {}
        self.network.on_delivery = self.receive
        self.deliveries: list[tuple] = []

    def machine(self, node):
        return ProxyNode(super().machine(node), self.field.places[node], self.every)

    def receive(self, node, what):
        """Deliver to a subscriber that is present at a node, and acknowledge."""
        if isinstance(what, BroughtEvent) and self.where.get(what.client) == node:
            traveller = self.travellers[what.client]
            if (event := traveller.accept(what)) is not None:
                self.deliveries.append((what.client, event))
            self.network.ask(node, GotRequest(traveller.ticket, what))

    @property
    def states(self):
        found = {node: host.state.inner for node, host in self.network.hosts.items()}
        return {node: getattr(state, "broker", state) for node, state in found.items()}

    def subscribe(self):
        """Add a subscriber with a proxy: the node where it is, or any point."""
        chance, name = self.chance, f"t{len(self.travellers)}"
        node = chance.choice(self.alive)
        proxy = chance.choice([self.field.places[node], (chance.uniform(0, SIDE), chance.uniform(0, SIDE))])
        self.travellers[name] = Traveller(Ticket(name, proxy))
        self.where[name] = node
        self._wants(name, *(self._wish() for _ in range(chance.randint(1, 2))))

    def unsubscribe(self):
        """Change the wishes of a subscriber, or end them."""
        if self.travellers:
            name = self.chance.choice(sorted(self.travellers))
            if self.where[name] is None:
                self.where[name] = self.chance.choice(self.alive)
            old = self.travellers[name].ticket.wishes[:1]
            self._wants(
                name, *old[: self.chance.randint(0, 1)], *(self._wish() for _ in range(1 if old else 0))
            )

    def _wish(self):
        epsilon = self.chance.choice([1.0, 1.5, 5.0])
        return wish(self.chance.choice(TOPICS), self.region(), epsilon)

    def _wants(self, name, *wishes):
        self.subscribers = {key: some for key, some in self.subscribers.items() if key[1] != name}
        for each in wishes:
            self.subscribers.setdefault(("", name, each.topic), []).append((each.region, each.epsilon))
        self.network.ask(self.where[name], ArriveRequest(self.travellers[name].next_ticket(wishes=wishes)))
        self._pause()

    # --- on the way ---

    def move(self):
        """Move a subscriber away from a node without a message, or to another."""
        if self.travellers:
            name = self.chance.choice(sorted(self.travellers))
            if self.where[name] is None or self.chance.random() < 0.5:
                self.come(name)
            else:
                self.where[name] = None

    def come(self, name):
        self.where[name] = self.chance.choice(self.alive)
        self.network.ask(self.where[name], ArriveRequest(self.travellers[name].next_ticket()))

    def all_come(self):
        for name, node in self.where.items():
            if node is None or node in self.field.down:
                self.come(name)

    def say_where(self):
        """Report the positions of all subscribers that are at a node."""
        for name, node in self.where.items():
            if node is not None and node not in self.field.down:
                self.network.ask(node, ArriveRequest(self.travellers[name].ticket))

    # --- what came of it ---

    def came(self):
        received, self.deliveries = self.deliveries, []
        return Counter(("", name, event.values["n"]) for name, event in received)

    @property
    def known_subscribers(self):
        """Subscribers, as their proxies know them."""
        return [stored for host in self.network.hosts.values() for stored in host.state.subscribers.values()]


class Watchful(Roaming):
    """Subscribers that report their position every ten seconds; proxies of silent ones end."""

    every = 10_000_000

    def live(self, periods):
        for _ in range(periods):
            self.say_where()
            self.network.run(self.every)
