"""Requests for relationships that agents monitor for a subscriber."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from msgspec.structs import replace

from ....kinds.relation.condition import RelationCondition
from ...protocols.agents.follower import ReportFollower
from ...protocols.agents.library import active_bundle
from ...protocols.agents.shipped import STARLARK
from ...protocols.cbps.client import Submit


def agent_requests(
    relations: Iterable[RelationCondition], code: str | None, signed: str = ""
) -> tuple[list[Submit], dict[str, ReportFollower]]:
    """Return the requests for relationships, and a follower for the reports of each relationship.

    With ``code``, agents run that shipped strategy; ``signed`` is its signature. Reports use a random name,
    so that no other client can forge them.
    """
    requests, followers = [], {}
    for condition in relations:
        label = f"{condition.name} {secrets.token_hex(16)}"
        using = condition.using if code is None else STARLARK
        settings = condition.settings if code is None else ()
        bundle = active_bundle(label, condition.relation, str(using), settings, code=code or "")
        bundle = replace(bundle, active=tuple(replace(it, signed=signed) for it in bundle.active))
        requests.append(Submit(bundle, condition.name, code or ""))
        followers[condition.name] = ReportFollower(condition.name, condition.relation)
    return requests, followers
