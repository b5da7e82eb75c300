"""A network of protocol machines in one process, joined by queues.

The network changes only on request: `settle` delivers messages until none is left, and `advance` advances the
clock. Messages of one link arrive in order. The next link is the one with the oldest message. With a seed it
is chosen at random, and equal seeds give equal runs.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ....errors import UsageError, did_you_mean
from ....model.host import Actions, Host
from ....model.instant import Duration, Instant
from ....model.protocol import Asked, Deliver, Drop, Joined, Left, ProtocolMachine, Received, Send, Started

Link = tuple[str, str]
"""The names of the sender and the receiver."""
Kind = Callable[..., Any]
"""A class of inputs, such as `Received`."""
Waiting = tuple[Kind, tuple[Any, ...]]
"""An input in a queue. It gets its time when it arrives."""


class QueueNetwork:
    """Machines by name, each with a host. The network is their clock."""

    def __init__(self, *, seed: int | None = None, now: Instant = 0) -> None:
        self.now = now
        self.nodes: dict[str, Host] = {}
        self._inboxes: dict[str, list[Any]] = {}
        self._links: dict[str, dict[str, None]] = {}
        self._lines: dict[Link, deque[Waiting]] = defaultdict(deque)
        self._link_order: deque[Link] = deque()
        self._chance = None if seed is None else random.Random(seed)

    # --- nodes and connections ---

    def start(self, name: str, machine: ProtocolMachine, to: Iterable[str] = (), seed: int = 0) -> Host:
        """Start a machine, connect it to others, and return its host."""
        if name in self.nodes:
            raise UsageError(f"there is a '{name}' already")
        actions: Actions = {
            Send: partial(self._send, name),
            Deliver: partial(self._deliver, name),
            Drop: lambda effect: self.cut(name, effect.peer),
        }
        host = self.nodes[name] = Host(machine, machine.initial(), self, actions)
        self._links[name], self._inboxes[name] = {}, []
        self._tell(name, Started, seed)
        for peer in to:
            self.connect(name, peer)
        return host

    def node(self, name: str) -> Host:
        """Return the host with a name; raise a `UsageError` if there is none."""
        if name not in self.nodes:
            raise UsageError(f"there is no node '{name}'. {did_you_mean(name, self.nodes) or ''}")
        return self.nodes[name]

    def connect(self, a: str, b: str) -> None:
        """Connect two nodes and inform their machines."""
        for name in (a, b):
            self.node(name)
        if b in self._links[a]:
            raise UsageError(f"'{a}' and '{b}' are connected already")
        for node, peer in ((a, b), (b, a)):
            self._links[node][peer] = None
        self._tell(a, Joined, b, self.role(b))
        self._tell(b, Joined, a, self.role(a))

    def role(self, _name: str) -> str:
        """Return the role of a node for its peers; empty unless a subclass assigns roles."""
        return ""

    def cut(self, a: str, b: str) -> int:
        """Cut a connection; return the number of messages that were lost on it."""
        if b not in self._links.get(a, ()):
            raise UsageError(f"'{a}' and '{b}' are not connected")
        lost = self._part(a, b)
        self._tell(a, Left, b, f"the link to {b} is cut")
        self._tell(b, Left, a, f"the link to {a} is cut")
        return lost

    def kill(self, name: str) -> int:
        """Remove a node without notice; return the number of messages that were lost."""
        lost = 0
        for peer in self.neighbours(name):
            lost += self._part(name, peer)
            self._tell(peer, Left, name, f"{name} is gone")
        del self.nodes[name], self._links[name]
        return lost

    def _part(self, a: str, b: str) -> int:
        del self._links[a][b], self._links[b][a]
        self._link_order = deque(link for link in self._link_order if link not in ((a, b), (b, a)))
        return len(self._lines.pop((a, b), ())) + len(self._lines.pop((b, a), ()))

    def neighbours(self, name: str) -> list[str]:
        """Return the nodes that are connected to a node."""
        return list(self._links[name])

    def waiting(self, sender: str, to: str) -> list[Any]:
        """Return the messages on their way over a link, oldest first."""
        return [about[-1] for _, about in self._lines[sender, to]]

    # --- running ---

    def ask(self, name: str, request: Any) -> None:
        """Pass a request to a node; it takes effect with `settle`."""
        self.node(name)
        self._tell(name, Asked, request)

    def settle(self) -> None:
        """Deliver all messages, and the messages that they cause, until none is left."""
        while self.step():
            pass

    def step(self) -> bool:
        """Deliver one message; return whether there was one."""
        if not self._link_order:
            return False
        at = 0 if self._chance is None else self._chance.randrange(len(self._link_order))
        _, to = link = self._link_order[at]
        del self._link_order[at]
        kind, about = self._lines[link].popleft()
        self.nodes[to].tell(kind, *about)
        return True

    def advance(self, length: Duration) -> None:
        """Advance the clock by ``length`` µs and fire timers that are due. Queued messages stay queued."""
        until = self.now + length
        while due := min(
            ((at, n, t) for n, host in self.nodes.items() for t, at in host.timers.items()), default=None
        ):
            at, name, timer = due
            if at > until:
                break
            self.now = max(self.now, at)
            self.nodes[name].fire(timer)
        self.now = until

    def take(self, name: str) -> list[Any]:
        """Return and remove the deliveries of a node since the last call."""
        self.node(name)
        taken, self._inboxes[name] = self._inboxes[name], []
        return taken

    # --- clock of the hosts ---

    def at(self, when: Instant, *_: Any) -> Instant:
        """Set a host's timer, which `advance` fires."""
        return when

    def cancel(self, timer: Instant) -> None:
        """Do nothing, because the host has already removed the timer."""

    # --- messages ---

    def _tell(self, name: str, kind: Kind, *about: Any) -> None:
        self.nodes[name].tell(kind, *about)

    def _put(self, link: Link, kind: Kind, *about: Any) -> None:
        """Queue an input behind the waiting inputs of the link."""
        self._lines[link].append((kind, about))
        self._link_order.append(link)

    def _send(self, name: str, effect: Send) -> None:
        if effect.to in self._links[name]:
            self._cross((name, effect.to), effect)

    def _cross(self, link: Link, send: Send) -> None:
        """Queue a message that is sent over a link."""
        self._put(link, Received, link[0], send.message)

    def _deliver(self, name: str, effect: Deliver) -> None:
        self._inboxes[name].append(effect.what)
