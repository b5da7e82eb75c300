"""Code that subscribers ship: how it comes to where it is needed, and what comes of its calls."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import UsageError
from ...model.protocol import Peer
from ..cbps.message import ActiveSubscription, Code, Key, Wanted
from ..cbps.routing import Stored
from .conversing import Conversing
from .placing import Place
from .shipped import Shipped, Worked


class Shipping(Conversing):
    """The work that shipped code makes in one turn."""

    allowed: frozenset[str]
    vouches: Callable[[str, str], bool]

    def consider(self, place: Place) -> None:
        """Whether there is to be an agent, and whether there is one."""
        raise NotImplementedError

    def refuse(self, place: Place, why: str) -> None:
        """There will be no agent, and its subscriber is told why."""
        raise NotImplementedError

    def note(self, key: Key, stored: Stored | None) -> None:
        for keys in self.state.coded.values():
            keys.pop(key, None)
        for active in stored.bundle.active if stored else ():
            if active.code:
                self.state.coded.setdefault(active.code, {})[key] = None

    def code_of(self, place: Place, active: ActiveSubscription) -> str:
        """The text of a digest; none if it has yet to come."""
        digest = active.code
        if digest not in self.allowed and not self.vouches(digest, active.signed):
            raise UsageError(
                "this broker runs only code that its operator allows, or that of a signer whom it trusts: "
                f"--allow-code {digest}, or --allow-signer"
            )
        text = self.state.codes.get(digest)
        if text is None:
            self.state.codes.places.setdefault(digest, {})[place] = None
            self.fetch(digest, self.state.routing.in_force[place[0]].source)
        return text or ""

    def fetch(self, digest: str, source: Peer) -> None:
        if digest not in self.state.codes.asked:
            self.state.codes.asked[digest] = source
            self.send(source, Wanted(digest))

    def wanted(self, sender: Peer, digest: str) -> None:
        """A neighbour to whom a bundle went lacks its code."""
        found = [self.state.routing.in_force[key] for key in self.state.coded.get(digest, ())]
        source = next((stored.source for stored in found if sender in stored.sent), None)
        if source is None:
            return
        if (text := self.state.codes.get(digest)) is not None:
            self.send(sender, Code(digest, text))
            return
        self.state.codes.waiting.setdefault(digest, {})[sender] = None
        self.fetch(digest, source)

    def code(self, sender: Peer, digest: str, text: str) -> None:
        is_asked = self.state.codes.asked.get(digest) == sender
        waiting = self.state.codes.take(digest, text, sender)
        for peer in waiting or ():
            self.send(peer, Code(digest, text))
        for place in self.state.codes.places.pop(digest, {}) if is_asked else ():
            if waiting is None:
                self.refuse(place, "the code that was sent is not that of its digest, or too long")
            else:
                self.consider(place)

    def worked(self, worked: Worked) -> None:
        """Shipped code has answered, or come to an end."""
        hosted = self.state.by_peer.get(worked.agent)
        if hosted is None or not isinstance(hosted.made.agent, Shipped):
            return
        try:
            if worked.fault is not None:
                raise UsageError(worked.fault)
            wants = hosted.made.agent.wanted(worked.wants, self.now)
        except UsageError as error:
            self.fail(hosted, str(error))
            return
        self.want(hosted, wants)
