"""Random folds of storms, their inputs, and a slow obvious twin."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.fold.condition import FoldCondition
from holdfast.lang.condition import Checked
from holdfast.model.event import Event

REGIONS = """region hall = rectangle (0, 0) (8, 8)
region west = rectangle (0, 0) (3.5, 8) in hall
region east = rectangle (4, 0) (7.5, 8) in hall
region nook = rectangle (4, 0) (5.5, 1.5) in east
"""
SPOTS = [(float(x), float(y)) for x in (0, 1, 4, 5, 6, 9, -1) for y in (0, 1, 4)] + [(2.0,), None]


@st.composite
def definitions(draw) -> Checked:
    """Over regions and over squares, of any depth, with and without a lower bound."""
    cells = draw(
        st.sampled_from(
            ("scope hall", "scope west, east within hall", "scope nook within east within hall",
             "cells 1 m within 2 m", "cells 2 m within 8 m", "cells 1 m within 8 m")
        )
    )  # fmt: skip
    most = draw(st.integers(1, 3))
    fewer = draw(st.sampled_from(("", f"until fewer than {draw(st.integers(1, most + 1))}")))
    care = draw(st.sampled_from(("", "unknown after 1 h")))  # then it waits for moments to be over
    return _check(f"{cells} beyond {most} {fewer}", care)


@lru_cache(maxsize=256)
def _check(fold: str, care: str) -> Checked:
    state = f"topic T (v float)\n{REGIONS}state S on T [v > 1; v < 0] per source {care}\n"
    return check(parse(f"{state}fold X = S {fold}\n"))


@st.composite
def histories(draw) -> list[Event]:
    """Starts and ends in turn, wherever; an end may come from elsewhere."""
    row = st.tuples(st.sampled_from("abcdefghij"), st.sampled_from(SPOTS), st.sampled_from((0, 0, 0, 0, 1)))
    rows = draw(st.lists(row, min_size=10, max_size=30))
    holds, found = set(), []
    for i, (name, spot, odd) in enumerate(rows):
        status = "egress" if name in holds else "ingress"
        if odd:
            status = "unknown"
        else:
            holds ^= {name}
        own = {"@status": status, "@key": "", "@scope": name, "@since": None}
        found.append(Event("@S", i, name, {"v": 0.0, **own}, i, spot))
    return found


def as_rows(checked, events, emitted):
    """The notifications as tuples, in order."""
    return sorted(
        (
            n.event.time, n.status, n.scope or "", -1 if n.since is None else n.since, n.event.source,
            n.event.attributes["members"], n.event.attributes["into"] or "",
        )
        for n in emitted
    )  # fmt: skip


def oracle(checked: Checked, events: list[Event]) -> list[tuple]:
    """Compute the notifications again after every event from the active scopes and their places."""
    (one,) = checked.of(FoldCondition)
    rows, members, held, emitted = [], {}, set(), {}
    for event in events:
        status, name = event.attributes["@status"], event.source
        if status == "ingress":
            members[name] = event
        elif status == "egress":
            members.pop(name, None)
        else:
            continue
        held = _held(one, members, held)
        now = {_teller(one, m, e, held) for m, e in members.items()}
        inside = {c: [m for m, e in members.items() if c in _path(one, m, e)[1:]] for c in [*emitted, *now]}
        for gone in emitted.keys() - now:
            mine = [gone] if gone in members else inside.get(gone, [])
            into = {_teller(one, m, members[m], held) for m in mine}
            into = into.pop() if len(into) == 1 else ""
            size = 1 if gone in members else len(inside[gone])
            rows.append(
                (event.time, "egress", gone, emitted[gone][0], name, size, "" if into in members else into)
            )
        for new in now - emitted.keys():
            its = members.get(new, event)
            since = -1 if its is event else its.time
            size = 1 if new in members else len(inside[new])
            rows.append((event.time, "ingress", new, since, its.source, size, ""))
        before = emitted
        emitted = {n: before.get(n, (event.time, 1 if n in members else len(inside[n]))) for n in now}
        for cell in [c for c in emitted if c not in members and len(inside[c]) >= 2 * emitted[c][1]]:
            rows.append((event.time, "joined", cell, emitted[cell][0], name, len(inside[cell]), ""))
            emitted[cell] = (emitted[cell][0], len(inside[cell]))
    return sorted(rows)


def _held(one, members, before):
    """The cells that hold: level after level, from the inside out."""
    held, depth = set(), 6
    paths = [_path(one, m, e) for m, e in members.items()]
    for _ in range(depth):
        cells = {}
        for path in paths:
            for child, cell in pairwise(path):
                if child == path[0] or child in held:
                    cells.setdefault(cell, set()).add(child)
        held = {
            c for c, mine in cells.items() if len(mine) > one.most or (c in before and len(mine) >= one.fewer)
        }
    return held


def _teller(one, member, event, held):
    around = [cell for cell in _path(one, member, event)[1:] if cell in held]
    return around[-1] if around else member


def _path(one, member, event):
    spot = event.location
    if one.forest is not None:
        inner = [
            region.name
            for region in one.forest.regions
            if spot is not None
            and len(spot) == 2
            and all(
                low <= c <= high
                for low, c, high in zip(region.shape.low, spot, region.shape.high, strict=True)
            )
        ]
        order = ["nook", "west", "east", "hall"]
        return [member, *sorted(inner, key=order.index)]
    if spot is None:
        return [member]
    x, y = (*spot, 0.0)[:2]
    return [f"{side:g} m at {x // side * side:g},{y // side * side:g}" for side in one.sides]
