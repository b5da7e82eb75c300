"""Random correlations of states, their inputs, and a slow obvious twin."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations, product

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.overlap.condition import OverlapCondition
from holdfast.lang.condition import Checked
from holdfast.model.event import Event
from holdfast.model.instant import SECOND

RELATED = (
    "A, B overlapping", "A, B, C overlapping", "A overlaps B", "A during B", "A before B", "A starts B",
    "A ends B", "F before B", "B before F", "F during B", "F starts B", "F ends B",
)  # fmt: skip


@st.composite
def definitions(draw, per: str) -> Checked:
    """Every relation, with and without bounds; members have their room in their key, or move."""
    related = draw(st.sampled_from(RELATED))
    within = draw(st.sampled_from(("2 s", "4 s") if "before" in related else ("", "", "1 s", "3 s")))
    near = draw(st.sampled_from(("", "", "2 m")))
    extents = ", ".join(filter(None, (within, near)))
    words = (related, extents and f"within {extents}", draw(st.sampled_from(("", "per room"))))
    return _check(per, " ".join(filter(None, words)))


@lru_cache(maxsize=256)
def _check(per: str, related: str) -> Checked:
    topics = "".join(f"topic T{c} (v float, room text)\n" for c in "ABCF")
    states = "".join(f"state {c} on T{c} [v > 1; v < 0] per {per}\n" for c in "ABC")
    return check(parse(f"{topics}{states}filter F on TF where v > 1\ncorrelate X = {related}\n"))


@st.composite
def histories(draw, per: str) -> list[Event]:
    """Draw outputs of conditions: alternating starts and ends of any source and number, several at one
    time, and ends of unknown scopes."""
    row = st.tuples(
        st.integers(0, 9),
        st.sampled_from("AAABBBCF"),
        st.sampled_from("ab"),
        st.sampled_from("rrs"),
        st.sampled_from((0.0, 0.0, 1.0, 2.0, 3.5, None)),
        st.sampled_from((False, False, False, True)),
        st.sampled_from("ab"),
        st.integers(0, 30),
    )
    rows = draw(st.lists(row, min_size=10, max_size=24))
    holds: dict[tuple[str, str], tuple[int, str]] = {}
    found = []
    for time, name, member, room, x, odd, source, sequence in sorted(rows, key=lambda row: row[:3]):
        since, home = holds.pop((name, member), (None, room))
        room = home if "," in per else room
        status = "atomic" if name == "F" else "ingress" if since is None else "egress"
        if status == "ingress":
            holds[name, member] = (time * SECOND, room)
        if odd:
            status = {"ingress": "unknown", "egress": "raised"}.get(status, status)
        own = {
            "@status": status,
            "@key": "",
            "@scope": None if name == "F" else f"{room},{member}" if "," in per else member,
            "@since": since,
        }
        at = None if x is None else (x,)
        found.append(Event(f"@{name}", time * SECOND, source, {"v": 0.0, "room": room, **own}, sequence, at))
    return found


def as_rows(checked, events, emitted):
    """The notifications as tuples, in order."""
    return sorted(
        (n.subscription, n.scope or "", n.status, n.since or -1, n.event.order, *map(str, _own(n)))
        for n in emitted
    )


def _own(n):
    return sorted((name, value) for name, value in n.event.attributes.items() if name != "room")


def oracle(checked: Checked, events: list[Event]) -> list[tuple]:
    """List all intervals, then try every choice of one interval for each condition."""
    (one,) = checked.of(OverlapCondition)
    names = [topic.name for topic in one.over]
    intervals = {name: _intervals(name, events) for name in names}
    rows = []

    def tell(chosen, status, since, event, ends):
        own = []
        for name, interval, end in zip(names, chosen, ends, strict=True):
            own += [(name, interval["scope"]), (f"{name}_start", _show(interval["start"]))]
            own += [(f"{name}_end", None if end is None else _show(end))]
        scope = ",".join(f'"{s["scope"]}"' if "," in s["scope"] else s["scope"] for s in chosen if s["scope"])
        rows.append(
            ("X", scope, status, -1 if since is None else since or -1, event.order, *map(str, sorted(own)))
        )

    for chosen in product(*intervals.values()):
        if not all(_agree(one, a, b) for a, b in combinations(chosen, 2)):
            continue
        start, end = max(s["start"] for s in chosen), min(s["end"] for s in chosen)
        if one.relation == "overlapping":
            width = one.within or math.inf
            if start >= end or any(abs(a["start"] - b["start"]) >= width for a, b in combinations(chosen, 2)):
                continue
            last = max((_rank(s["began"], i), i) for i, s in enumerate(chosen) if s["start"] == start)[1]
            tell(chosen, "ingress", None, chosen[last]["began"], [None] * len(chosen))
            if end < math.inf:
                first = min((_rank(s["ended"], i), i) for i, s in enumerate(chosen) if s["end"] == end)[1]
                ends = [end if i == first else None for i in range(len(chosen))]
                tell(chosen, "egress", start, chosen[first]["ended"], ends)
            continue
        a, b = chosen
        width = one.within
        instant = a["start"] == a["end"]
        meet = a["start"] < b["end"] + instant and b["start"] < a["end"] + instant
        match one.relation:
            case "overlaps":
                near = a["start"] < b["start"] < a["end"] < b["end"]
                near = near and b["start"] - a["start"] < (width or math.inf)
                event = a.get("ended")
            case "during":
                near = b["start"] < a["start"] and a["end"] < b["end"]
                near = near and a["start"] - b["start"] < (width or math.inf)
                event = a.get("ended")
            case "starts":
                near = meet and abs(a["start"] - b["start"]) < (width or 1) and a["end"] < b["end"]
                event = a.get("ended")
            case "before":
                near = 0 < b["start"] - a["end"] < width
                near = near and _is_last(a, intervals[names[0]], b["start"])
                event = b["began"]
            case "ends":
                near = meet and b["start"] < a["start"] and abs(a["end"] - b["end"]) < (width or 1)
                near = near and max(a["end"], b["end"]) < math.inf
                earlier, later = (a, b) if a["end"] < b["end"] else (b, a)
                mine = intervals[names[0] if earlier is a else names[1]]
                near = near and (a["end"] == b["end"] or _is_last(earlier, mine, later["end"]))
                event = later.get("ended")
        if near:
            emitted = event.time
            ends = [s["end"] if s["end"] <= emitted else None for s in chosen]
            tell(chosen, "atomic", None, event, ends)
    return sorted(rows)


def _rank(event, member):
    """The order in which transitions of one time are processed."""
    return (event.source, event.sequence, member)


def _is_last(interval, others, by):
    """Whether of its scope it is the last to have ended by then."""
    mine = [s["ended"].order for s in others if s["scope"] == interval["scope"] and s["end"] <= by]
    return interval["ended"].order == max(mine)


def _intervals(name, events):
    found, open_ = [], {}
    for event in events:
        if event.topic != f"@{name}":
            continue
        status, scope = event.attributes["@status"], event.attributes["@scope"]
        started = {
            "scope": scope,
            "start": event.time,
            "end": math.inf,
            "at": event.location,
            "room": event.attributes["room"],
            "began": event,
        }
        if status == "atomic":
            found.append({**started, "end": event.time, "ended": event})
        elif status == "ingress" and scope not in open_:
            open_[scope] = started
        elif status == "egress" and scope in open_:
            started = open_.pop(scope)
            if started["start"] < event.time:  # what has no length has not been
                found.append({**started, "end": event.time, "ended": event})
    return [*found, *open_.values()]


def _agree(one, a, b):
    if one.per and a["room"] != b["room"]:
        return False
    if one.near == math.inf:
        return True
    return a["at"] is not None and b["at"] is not None and abs(a["at"][0] - b["at"][0]) < one.near


def _show(at):
    from holdfast.model.instant import show_instant

    return show_instant(at)
