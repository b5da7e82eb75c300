"""Random mutes, their inputs, and a slow obvious twin."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.mute.condition import MuteCondition
from holdfast.lang.condition import Checked
from holdfast.model.event import Event
from holdfast.model.instant import MINUTE

CAUSES = ('mute S during "00:04 – 00:08, 00:11 – 00:12"', "mute S while P", "mute S beyond 1 within room")


@st.composite
def definitions(draw) -> Checked:
    """Mutes by the clock, by a parent and by storms, alone and together."""
    return _check(tuple(sorted(draw(st.sets(st.sampled_from(CAUSES), min_size=1)))))


@lru_cache(maxsize=16)
def _check(causes: tuple[str, ...]) -> Checked:
    states = "topic T (v float, room text)\nstate S on T [v > 1; v < 0] per source\n"
    return check(parse(states + "state P on T [v > 2; v < 1] per room\n" + "\n".join(causes)))


@st.composite
def histories(draw) -> list[Event]:
    """Draw outputs of a state and its parent: alternating starts and ends, sometimes several at one time."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 15), st.sampled_from(("a", "b", "c", "P")), st.sampled_from("rs")),
            min_size=8,
            max_size=20,
            unique_by=lambda row: row[:2] if row[1] != "P" else row,
        )
    )
    holds: dict[tuple[str, str], int] = {}
    found = []
    for i, (minute, name, room) in enumerate(sorted(rows)):
        who = ("P", room) if name == "P" else ("S", name)
        since = holds.pop(who, None)
        if since is None:
            holds[who] = minute * MINUTE
        own = {
            "@status": "ingress" if since is None else "egress",
            "@key": "",
            "@scope": who[1],
            "@since": since,
        }
        found.append(Event(f"@{who[0]}", minute * MINUTE, name, {"v": float(i), "room": room, **own}, i))
    return found


def as_rows(checked, events, emitted):
    """The notifications as tuples, in order."""
    return [(n.subscription, n.scope, n.status, n.since, n.event.time) for n in sorted(emitted, key=_order)]


def _order(n):
    return (n.event.time, n.scope or "", n.status, n.since or 0)


def oracle(checked: Checked, events: list[Event]) -> list[tuple]:
    """Compute the muted scopes again for every minute."""
    text = {type(cause).__name__ for cause in checked.of(MuteCondition)[0].causes}
    rows, on, believed, missed, gone, rooms, parents = [], {}, {}, {}, {}, {}, set()
    events = [event for event in events if event.topic == "@S" or "ParentCause" in text]
    last = max((event.time for event in events), default=0) // MINUTE

    def storm(room):
        return "StormCause" in text and sum(rooms[name] == room for name in on) > 1

    def is_muted(name, minute):
        clock = "ClockCause" in text and (4 <= minute < 8 or 11 <= minute < 12)
        return clock or ("ParentCause" in text and rooms[name] in parents) or storm(rooms[name])

    def release(names, minute):
        came = 0
        for name in sorted(n for n in names if n in missed and not is_muted(n, minute)):
            if (name in on) != (name in believed):
                status = "ingress" if name in on else "egress"
                since = on[name] if name in on else believed.pop(name)
                rows.append(("S", name, status, since, minute * MINUTE))
                if name in on:
                    believed[name] = minute * MINUTE
            came += gone.pop(name, 0)
            del missed[name]
        if came:
            rows.append(("S", None, "summary", None, minute * MINUTE))

    for minute in range(last + 1):
        if "ClockCause" in text and minute in (8, 12):
            release(list(missed), minute)
        now = [event for event in events if event.time == minute * MINUTE]
        for event in sorted(now, key=lambda e: (e.topic == "@S", e.source, e.sequence)):
            name, starts = event.attributes["@scope"], event.attributes["@status"] == "ingress"
            if event.topic == "@P":
                parents ^= {name}
                if not starts and "ParentCause" in text:
                    release([n for n in rooms if rooms[n] == name], minute)
                continue
            room = rooms[name] = event.attributes["room"] if starts else rooms[name]
            before = storm(room)
            if starts:
                on[name] = event.time
            else:
                del on[name]
            never_emitted = not starts and name in missed and name not in believed
            if never_emitted:
                gone[name] = gone.get(name, 0) + 1
                missed[name] = True
            if storm(room) and not before:
                rows.append(("S", room, "summary", None, event.time))
            elif before and not storm(room):
                others = [n for n in rooms if rooms[n] == room and n != name]
                release([*others, name] if never_emitted else others, minute)
            if never_emitted:
                continue
            if is_muted(name, minute):
                missed[name] = True
                continue
            rows.append(("S", name, event.attributes["@status"], event.attributes["@since"], event.time))
            if missed.pop(name, None) and gone.pop(name, 0):
                rows.append(("S", None, "summary", None, event.time))
            if starts:
                believed[name] = event.time
            else:
                believed.pop(name, None)
    return sorted(rows, key=lambda row: (row[4], row[1] or "", row[2], row[3] or 0))
