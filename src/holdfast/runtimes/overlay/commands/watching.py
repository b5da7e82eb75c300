"""Relationships that a subscriber lets agents watch."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from msgspec.structs import replace

from ....lang.condition import Related
from ....protocols.agents.following import Following
from ....protocols.agents.library import active
from ....protocols.agents.shipped import STARLARK
from ....protocols.cbps.client import Submit


def actively(
    relations: Iterable[Related], code: str | None, signed: str = ""
) -> tuple[list[Submit], dict[str, Following]]:
    """What is submitted for relationships, and who follows their reports; with ``code``, they are watched by
    that, for which somebody has ``signed``.  Reports come under a name that nobody can guess, so that nobody
    else sends some."""
    submitted, followed = [], {}
    for one in relations:
        label = f"{one.name} {secrets.token_hex(16)}"
        using = one.using if code is None else STARLARK
        settings = one.settings if code is None else ()
        bundle = active(label, one.relation, str(using), settings, code=code or "")
        bundle = replace(bundle, active=tuple(replace(it, signed=signed) for it in bundle.active))
        submitted.append(Submit(bundle, one.name, code or ""))
        followed[one.name] = Following(one.name, one.relation)
    return submitted, followed
