"""Distribution of shipped code to the brokers that run it, and handling of the results of its calls."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import UsageError
from ....model.protocol import Peer
from ..cbps.message import ActiveSubscription, BundleKey, CodeRequest, CodeText
from ..cbps.routing import StoredBundle
from .messaging import AgentMessaging
from .place_index import AgentPlace
from .shipped import ShippedAgent, WorkerResult


class CodeShipping(AgentMessaging):
    """Handles shipped code while one input is processed. Base class of the host's step."""

    allowed: frozenset[str]
    is_trusted: Callable[[str, str], bool]

    def update_agent(self, place: AgentPlace) -> None:
        """Start, change or end the agent of a place. The host implements this."""
        raise NotImplementedError

    def refuse(self, place: AgentPlace, why: str) -> None:
        """Record that no agent runs at a place, and inform its subscriber. The host implements this."""
        raise NotImplementedError

    def index_code(self, key: BundleKey, stored: StoredBundle | None) -> None:
        """Update the index of bundles by code digest after a bundle was stored, changed or withdrawn."""
        for keys in self.state.bundles_by_code.values():
            keys.pop(key, None)
        for active in stored.bundle.active if stored else ():
            if active.code:
                self.state.bundles_by_code.setdefault(active.code, {})[key] = None

    def code_of(self, place: AgentPlace, active: ActiveSubscription) -> str:
        """Return the text of an active subscription's code; empty if the text has not arrived yet.

        Raise a `UsageError` if the code is neither allowed nor signed by a trusted key.
        """
        digest = active.code
        if digest not in self.allowed and not self.is_trusted(digest, active.signed):
            raise UsageError(
                "this broker runs only code that its operator allows, or that of a signer whom it trusts: "
                f"--allow-code {digest}, or --allow-signer"
            )
        text = self.state.codes.get(digest)
        if text is None:
            self.state.codes.places.setdefault(digest, {})[place] = None
            self.request_code(digest, self.state.routing.in_force[place[0]].source)
        return text or ""

    def request_code(self, digest: str, source: Peer) -> None:
        """Request code from a peer unless it was requested already."""
        if digest not in self.state.codes.requested_from:
            self.state.codes.requested_from[digest] = source
            self.send(source, CodeRequest(digest))

    def on_code_request(self, sender: Peer, digest: str) -> None:
        """Handle the request of a neighbour that lacks the code of a bundle."""
        found = [self.state.routing.in_force[key] for key in self.state.bundles_by_code.get(digest, ())]
        source = next((stored.source for stored in found if sender in stored.sent), None)
        if source is None:
            return
        if (text := self.state.codes.get(digest)) is not None:
            self.send(sender, CodeText(digest, text))
            return
        self.state.codes.waiting.setdefault(digest, {})[sender] = None
        self.request_code(digest, source)

    def on_code(self, sender: Peer, digest: str, text: str) -> None:
        """Store requested code, forward it to waiting peers, and start waiting agents."""
        is_asked = self.state.codes.requested_from.get(digest) == sender
        waiting = self.state.codes.store(digest, text, sender)
        for peer in waiting or ():
            self.send(peer, CodeText(digest, text))
        for place in self.state.codes.places.pop(digest, {}) if is_asked else ():
            if waiting is None:
                self.refuse(place, "the code that was sent is not that of its digest, or too long")
            else:
                self.update_agent(place)

    def on_result(self, worked: WorkerResult) -> None:
        """Handle the result of a call of shipped code."""
        hosted = self.state.by_peer.get(worked.agent)
        if hosted is None or not isinstance(hosted.built.agent, ShippedAgent):
            return
        try:
            if worked.fault is not None:
                raise UsageError(worked.fault)
            wants = hosted.built.agent.check_outputs(worked.wants, self.now)
        except UsageError as error:
            self.end_faulty(hosted, str(error))
            return
        self.carry_out(hosted, wants)
