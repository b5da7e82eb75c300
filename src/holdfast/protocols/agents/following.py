"""What a subscriber makes of reports: each start and each end once, and once that nobody knows.

A doubt comes from whoever sees its cause, so it may come twice, and after it an end that is no news.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...model.event import UNNUMBERED, Event, Notification
from ...model.instant import Instant
from ...model.relation import Relation
from ..cbps.client import Heard, Interrupted, Unknown
from ..cbps.ranges import Value
from .library import RELATIONSHIP, scopes_of

LOST = "an agent or its publisher is gone, or a connection on the way to it"


@dataclass
class Following:
    """A relationship, and what was told of each scope last, and since when it holds."""

    name: str
    relation: Relation
    told: dict[str | None, str] = field(default_factory=dict)
    since: dict[str | None, Instant] = field(default_factory=dict)

    def hear(self, what: Heard | Interrupted, now: Instant) -> list[Notification | Unknown]:
        """What is news in what was heard."""
        if isinstance(what, Interrupted):
            return [one for scope in scopes_of(self.relation) for one in self._doubt(scope, now, what.why)]
        content = what.content
        status, scope = content.get("status"), content.get("scope")
        if RELATIONSHIP not in content or not (scope is None or isinstance(scope, str)):
            return []
        if status == "unknown":
            return self._doubt(scope, now, LOST)
        time, source = content.get("time"), content.get("source")
        before = self.told.get(scope, "egress")
        if status not in ("ingress", "egress") or status == before or not isinstance(time, int):
            return []
        sequence, value = content.get("sequence"), content.get("value")
        event = Event(
            self.name,
            time,
            str(source),
            {**self._members(scope), self._measure: value},
            sequence if isinstance(sequence, int) else UNNUMBERED,
        )
        self.told[scope] = str(status)
        since = self.since.pop(scope, None)
        if status == "ingress":
            self.since[scope], since = time, None
        return [Notification(self.name, event, status, scope, since)]  # type: ignore[arg-type]

    def _doubt(self, scope: str | None, now: Instant, why: str) -> list[Notification | Unknown]:
        if self.told.get(scope) == "unknown":
            return []
        self.told[scope] = "unknown"
        return [Unknown(self.name, self.name, scope, self.since.pop(scope, now), why)]

    @property
    def _measure(self) -> str:
        return self.relation.measure

    def _members(self, scope: str | None) -> dict[str, Value | None]:
        """Of a pair, who the two are."""
        pair = next((tie.pair for tie in self.relation.ties or () if tie.scope == scope), ())
        return dict(zip(self.relation.names, pair, strict=False))
