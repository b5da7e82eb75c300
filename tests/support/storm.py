"""An overlay in memory whose brokers and connections go and come back."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.broker import CbpsBroker


class Storm:
    """Brokers in a ``tree``, of which its root stays, and clients at ``homes``; who is gone, and which links
    are cut."""

    def __init__(self, tree: Sequence[tuple[str, str]], homes: Mapping[str, str], seed: int) -> None:
        self.chance = random.Random(seed)
        self.net = Overlay(seed=seed)
        self.links = [*tree, *homes.items()]
        self.brokers = [name for name, _ in tree]
        self.down: set[str] = set()
        self.cut: set[tuple[str, str]] = set()
        for name in dict.fromkeys(name for pair in tree for name in pair):
            self.begin(name)
        for name in homes:
            self.net.client(name)
        self.join()

    def machine(self, name: str):
        """The machine of a broker."""
        return CbpsBroker(compile_condition, name=name)

    def begin(self, name: str) -> None:
        """A broker that is started again is another, at another time."""
        self.net._roles[name] = "broker"
        self.net.start(name, self.machine(name), seed=self.chance.getrandbits(40))

    def trouble(self) -> None:
        """Something goes, or comes back."""
        if self.down and self.chance.random() < 0.6:
            back = self.chance.choice(sorted(self.down))
            self.down.remove(back)
            self.begin(back)
            self.join()
        elif self.cut and self.chance.random() < 0.6:
            self.cut.remove(self.chance.choice(sorted(self.cut)))
            self.join()
        elif self.chance.random() < 0.4:
            name = self.chance.choice(self.brokers)
            if name not in self.down:
                self.net.kill(name)
                self.down.add(name)
        else:
            link = self.chance.choice(self.links)
            if link[1] in self.net._links.get(link[0], ()):
                self.net.cut(*link)
                self.cut.add(link)

    def join(self) -> None:
        """Connect clients again that no failure separates."""
        for a, b in self.links:
            there = {a, b} <= self.net.nodes.keys()
            if there and (a, b) not in self.cut and b not in self.net._links.get(a, ()):
                self.net.connect(a, b)

    def heal(self) -> None:
        """Restore every link and node."""
        for name in sorted(self.down):
            self.begin(name)
        self.down.clear()
        self.cut.clear()
        self.join()
