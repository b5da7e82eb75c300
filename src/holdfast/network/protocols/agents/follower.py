"""The subscriber's view of reports: each start, each end and each unknown state is delivered once.

Every agent that detects the cause of a doubt reports it, so the same doubt may arrive twice. An end may
follow that contains no news.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ....model.event import UNNUMBERED, Event, Notification
from ....model.instant import Instant
from ....model.relation import Relation
from ..cbps.client import AgentsInterrupted, ConditionUnknown, ReceivedNotification
from ..cbps.ranges import Value
from .library import RELATIONSHIP, scopes_of

LOST = "an agent or its publisher is gone, or a connection on the way to it"


@dataclass
class ReportFollower:
    """A relationship with the last status of each scope and the time since which it is active."""

    name: str
    relation: Relation
    last_status: dict[str | None, str] = field(default_factory=dict)
    since: dict[str | None, Instant] = field(default_factory=dict)

    def process(
        self, report: ReceivedNotification | AgentsInterrupted, now: Instant
    ) -> list[Notification | ConditionUnknown]:
        """Return the changes in a report, or in the interruption of all reports, that are not yet known."""
        if isinstance(report, AgentsInterrupted):
            scopes = scopes_of(self.relation)
            return [unknown for scope in scopes for unknown in self._doubt(scope, now, report.why)]
        content = report.content
        status, scope = content.get("status"), content.get("scope")
        if RELATIONSHIP not in content or not (scope is None or isinstance(scope, str)):
            return []
        if status == "unknown":
            return self._doubt(scope, now, LOST)
        time, source = content.get("time"), content.get("source")
        before = self.last_status.get(scope, "egress")
        if status not in ("ingress", "egress") or status == before or not isinstance(time, int):
            return []
        sequence, values = content.get("sequence"), self._members(scope)
        values[self.relation.measure] = content.get("value")
        number = sequence if isinstance(sequence, int) else UNNUMBERED
        event = Event(self.name, time, str(source), values, number)
        self.last_status[scope] = str(status)
        since = self.since.pop(scope, None)
        if status == "ingress":
            self.since[scope], since = time, None
        return [Notification(self.name, event, status, scope, since)]  # type: ignore[arg-type]

    def _doubt(self, scope: str | None, now: Instant, why: str) -> list[Notification | ConditionUnknown]:
        """Report a scope as unknown, unless it is unknown already."""
        if self.last_status.get(scope) == "unknown":
            return []
        self.last_status[scope] = "unknown"
        return [ConditionUnknown(self.name, self.name, scope, self.since.pop(scope, now), why)]

    def _members(self, scope: str | None) -> dict[str, Value | None]:
        """Return the two members of a pair by name."""
        pair = next((tie.pair for tie in self.relation.ties or () if tie.scope == scope), ())
        return dict(zip(self.relation.names, pair, strict=False))
