"""A whole overlay in one process: brokers and clients, joined by queues.  [B48]

Nothing happens by itself: `settle` lets messages through until none is left, and `advance` lets time
pass.  Messages of one link arrive in order.  Which link is next, the oldest message says; with a seed,
chance does, and equal seeds give equal runs.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ...errors import UsageError, did_you_mean
from ...model.instant import Duration, Instant
from ...model.protocol import (
    Asked,
    CancelTimer,
    Deliver,
    Drop,
    Effect,
    Fired,
    Input,
    Joined,
    Left,
    ProtocolMachine,
    Received,
    Send,
    SetTimer,
    Started,
    Undelivered,
)
from ...protocols.cbps.broker import Broker
from ...protocols.cbps.bundle import is_losable
from ...protocols.cbps.client import Client
from ...protocols.cbps.condition import Conditions
from ...protocols.cbps.context import stamped
from ...protocols.cbps.message import Bundle, Message
from .conditions import condition

Link = tuple[str, str]
"""From whom, to whom."""


@dataclass
class Node:
    """A machine at work, and what it has handed to its user."""

    name: str
    machine: ProtocolMachine
    state: Any
    inbox: list[Any] = field(default_factory=list)
    timers: dict[str, Instant] = field(default_factory=dict)


class Overlay:
    """Nodes by name.  ``traffic`` counts what went over each link, by cause; ``tap`` is shown every
    message as it is sent."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        now: Instant = 0,
        conditions: Conditions = condition,
        tap: Callable[[str, str, Message], None] = lambda sender, to, message: None,
    ) -> None:
        self.now = now
        self.nodes: dict[str, Node] = {}
        self.traffic: Counter[tuple[str, str, str]] = Counter()
        self._conditions, self._tap = conditions, tap
        self._links: dict[Link, deque[Message]] = {}
        self._order: deque[Link] = deque()
        self._chance = None if seed is None else random.Random(seed)

    # --- who is there ---

    def broker(self, name: str, *, to: Iterable[str] = (), machine: Broker | None = None) -> Node:
        """Start a broker and connect it to others."""
        return self._start(name, machine or Broker(self._conditions), to)

    def client(self, name: str, to: str | None = None, *, machine: Client | None = None) -> Node:
        """Start a client and connect it to a broker."""
        return self._start(name, machine or Client(name, self._conditions), () if to is None else (to,))

    def _start(self, name: str, machine: ProtocolMachine, to: Iterable[str]) -> Node:
        if name in self.nodes:
            raise UsageError(f"there is a '{name}' on the overlay already")
        node = self.nodes[name] = Node(name, machine, machine.initial())
        self._tell(node, Started(self.now, 0))
        for other in to:
            self.connect(name, other)
        return node

    def node(self, name: str) -> Node:
        """The node of that name."""
        if name not in self.nodes:
            raise UsageError(
                f"nobody on the overlay is called '{name}'. {did_you_mean(name, self.nodes) or ''}"
            )
        return self.nodes[name]

    def connect(self, a: str, b: str) -> None:
        """Join two nodes."""
        one, other = self.node(a), self.node(b)
        if (a, b) in self._links:
            raise UsageError(f"'{a}' and '{b}' are connected already")
        self._links[a, b], self._links[b, a] = deque(), deque()
        self._tell(one, Joined(self.now, b))
        self._tell(other, Joined(self.now, a))

    def cut(self, a: str, b: str) -> int:
        """Part two nodes; how many messages were lost on the way between them."""
        if (a, b) not in self._links:
            raise UsageError(f"'{a}' and '{b}' are not connected")
        lost = self._part(a, b)
        self._tell(self.node(a), Left(self.now, b, f"the link to {b} is cut"))
        self._tell(self.node(b), Left(self.now, a, f"the link to {a} is cut"))
        return lost

    def kill(self, name: str) -> int:
        """End a node without a word; how many messages were lost with it."""
        lost = 0
        for other in self.neighbours(name):
            lost += self._part(name, other)
            self._tell(self.node(other), Left(self.now, name, f"{name} is gone"))
        del self.nodes[name]
        return lost

    def _part(self, a: str, b: str) -> int:
        self._order = deque(link for link in self._order if link not in ((a, b), (b, a)))
        return len(self._links.pop((a, b))) + len(self._links.pop((b, a)))

    def waiting(self, sender: str, to: str) -> list[Message]:
        """What is on its way over a link, oldest first."""
        return list(self._links[sender, to])

    def give_up(self, sender: str, to: str) -> bool:
        """Drop the oldest notification on its way over a link, as a host does whose peer cannot keep up;
        whether there was one."""
        queue = self._links[sender, to]
        given_up = next((message for message in queue if is_losable(message)), None)
        if given_up is None:
            return False
        queue.remove(given_up)
        self._order.remove((sender, to))
        self._tell(self.node(sender), Undelivered(self.now, to, given_up))
        return True

    def neighbours(self, name: str) -> list[str]:
        """Who is connected to a node."""
        return [b for a, b in self._links if a == name]

    # --- what happens ---

    def ask(self, name: str, request: Any) -> None:
        """Let a node's user want something; nothing moves before `settle`."""
        self._tell(self.node(name), Asked(self.now, request))

    def settle(self) -> None:
        """Let every message through, and what they cause, until all is quiet."""
        while self.step():
            pass

    def step(self) -> bool:
        """Let one message through; whether there was one."""
        if not self._order:
            return False
        at = 0 if self._chance is None else self._chance.randrange(len(self._order))
        sender, to = link = self._order[at]
        del self._order[at]
        self._tell(self.nodes[to], Received(self.now, sender, self._links[link].popleft()))
        return True

    def advance(self, length: Duration) -> None:
        """Let time pass, with all that falls due in it; messages that wait go on waiting."""
        until = self.now + length
        while due := min(
            ((at, n, t) for n, node in self.nodes.items() for t, at in node.timers.items()), default=None
        ):
            at, name, timer = due
            if at > until:
                break
            self.now = max(self.now, at)
            del self.nodes[name].timers[timer]
            self._tell(self.nodes[name], Fired(self.now, timer))
        self.now = until

    def take(self, name: str) -> list[Any]:
        """What a node has handed to its user since the last look."""
        node = self.node(name)
        taken, node.inbox = node.inbox, []
        return taken

    def _tell(self, node: Node, given: Input) -> None:
        node.state, effects = node.machine.handle(node.state, given)
        for effect in effects:
            self._carry_out(node, effect)

    def _carry_out(self, node: Node, effect: Effect) -> None:
        match effect:
            case Send(to, message, cause):
                if (queue := self._links.get((node.name, to))) is not None:
                    self._tap(node.name, to, message)
                    self.traffic[node.name, to, cause] += 1
                    queue.append(stamped(message, self.now) if isinstance(message, Bundle) else message)
                    self._order.append((node.name, to))
            case SetTimer(timer, at):
                node.timers[timer] = at
            case CancelTimer(timer):
                node.timers.pop(timer, None)
            case Deliver(what):
                node.inbox.append(what)
            case Drop(peer, _):
                self.cut(node.name, peer)
