"""Random counts over states, their inputs, and a slow obvious twin."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.count.condition import CountCondition
from holdfast.lang.condition import Checked
from holdfast.lang.expressions.key_text import join_key, readable_key
from holdfast.model.event import Event

MEMBERS = ("a", "b", "c", "d")
ROOMS = ("r", "s", None)


@st.composite
def definitions(draw, per: str) -> Checked:
    """Counts with and without a roster, within rooms or everywhere; members have their room in their key, or
    move between rooms."""
    within = draw(st.sampled_from(("", "within room")))
    least = draw(st.integers(1, 3))
    fewer = draw(st.integers(1, least))
    joined = draw(st.sampled_from(("", "joined")))
    unknown = draw(st.sampled_from(("left", "kept", "spreads")))
    care = draw(st.sampled_from(("", "unknown after 1 h")))  # then it waits for moments to be over
    count = f"at least {least} of S {within} until fewer than {fewer} {joined} unknown {unknown}"
    made = _check(per, care, count)
    if not draw(st.booleans()):
        return made
    (count,) = made.of(CountCondition)
    homes = draw(st.lists(st.sampled_from(("r", "s")), min_size=3, max_size=3))
    roster = tuple(
        (f"{home},{name}" if "," in per else name, (home,) if within else None)
        for name, home in zip(MEMBERS, homes, strict=False)
    )
    share = replace(count.quota.least, amount=count.quota.least.amount / 3, of_all=True)
    quota = replace(count.quota, least=draw(st.sampled_from((count.quota.least, share))), fewer=share)
    states = (condition for condition in made.conditions if condition is not count)
    return replace(made, conditions=(*states, replace(count, roster=roster, quota=quota)))


@lru_cache(maxsize=64)
def _check(per: str, care: str, count: str) -> Checked:
    state = f"state S on T [v > 1; v < 0] per {per} {care}"
    return check(parse(f"topic T (v float, room text)\n{state}\nstate C = {count}\n"))


@st.composite
def histories(draw, per: str) -> list[Event]:
    """Draw outputs of the state, including impossible ones: ends without starts, and repeated starts."""
    row = st.tuples(
        st.sampled_from(MEMBERS),
        st.sampled_from(ROOMS),
        st.sampled_from(("ingress", "ingress", "egress", "egress", "unknown", "known", "raised")),
    )
    rows = draw(st.lists(row, min_size=8, max_size=20))
    return [
        Event(
            "@S",
            i,
            name,
            {
                "v": float(i),
                "room": room,
                "@status": status,
                "@key": "",
                "@since": None,
                "@scope": readable_key(join_key(None, [room, name])) if "," in per else name,
            },
            i,
        )
        for i, (name, room, status) in enumerate(rows)
        if room is not None or "," not in per
    ]


def oracle(checked: Checked, events: list[Event]) -> list[tuple]:
    """Compute the active and the unknown members again after every event."""
    (count,) = checked.of(CountCondition)
    rows, holding, known = [], {}, {}
    for i, event in enumerate(events):
        status, member = event.attributes["@status"], event.attributes["@scope"]
        before = _present(count, events[:i])
        after = _present(count, events[: i + 1])
        group = (before.get(member) or after.get(member) or (None,))[0]
        if group is None:
            group = _home(count, event)
        if group is None or status == "raised":
            continue
        on = [one for one, (at, holds, _) in after.items() if at == group and holds]
        dead = [one for one, (at, _, is_dead) in after.items() if at == group and is_dead]
        if count.unknown == "kept":
            dead = []
        total = sum(at == _key(home) for _, home in count.roster or () for at in [group])
        total -= len(dead) if count.unknown == "left" else 0
        sure = [one for one in on if one not in dead]
        did = group in holding
        holds = count.quota.holds(did, len(sure), total)
        scope = group or None
        if count.unknown == "spreads":
            maybe = count.quota.holds(did, len(sure) + len(dead), total)
            if (holds == maybe) != known.get(group, True):
                known[group] = holds == maybe
                rows.append(
                    ("C", scope, "known" if holds == maybe else "unknown", holding.get(group), event.order)
                )
            if holds != maybe:
                continue
        if holds and not did:
            holding[group] = event.time
            rows.append(("C", scope, "ingress", None, event.order))
        elif did and not holds:
            rows.append(("C", scope, "egress", holding.pop(group), event.order))
        elif did and count.joined and status == "ingress" and not before.get(member, (0, False))[1]:
            rows.append(("C", scope, "joined", holding[group], event.order))
    return rows


def _key(home):
    return home[0] if home else ""


def _home(count, event):
    """The room of an event, as the count sees it."""
    if count.roster is not None:
        found = dict(count.roster)
        member = event.attributes["@scope"]
        return _key(found[member]) if member in found else None
    return event.attributes["room"] if count.within else ""


def _present(count, events):
    """The active and unknown members with their room and which of both they are."""
    found: dict[str, tuple[str, bool, bool]] = {}
    for event in events:
        status, member = event.attributes["@status"], event.attributes["@scope"]
        at, holds, dead = found.get(member, (None, False, False))
        at = _home(count, event) if at is None else at
        if at is None or status == "raised":
            continue
        holds = True if status == "ingress" else False if status == "egress" else holds
        dead = status == "unknown"
        if holds or dead:
            found[member] = (at, holds, dead)
        else:
            found.pop(member, None)
    return found
