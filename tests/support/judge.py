"""An independent implementation of the state filters, written from the documents alone.

It shares nothing with ``src/holdfast``: dictionaries, loops and Python's own numbers. A row is a dictionary
with ``time`` (µs since 1970), ``source``, ``sequence``, ``topic``, perhaps ``x``, ``y``, ``z`` or ``place``,
and attributes; a missing value is ``None`` or NaN. A predicate is a function from a row to True, False or
None (unknown), made of the Kleene helpers below. A scope is a list of functions from a row to a key (or
None), innermost first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Row = Mapping[str, Any]
Value = Any
Predicate = Callable[[Row], "bool | None"]
Key = Callable[[Row], "str | None"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- values: None is missing, NaN is missing ------------------------------------------------------


def known(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


def attribute(name: str) -> Callable[[Row], Value]:
    return lambda row: known(row.get(name))


def compute(operator: str, left: Value, right: Value) -> Value:
    left, right = known(left), known(right)
    if left is None or right is None:
        return None
    if operator == "/":
        return None if right == 0 else known(left / right)
    if operator == "+":
        return known(left + right)
    if operator == "-":
        return known(left - right)
    return known(left * right)


def absolute(value: Value) -> Value:
    value = known(value)
    return None if value is None else abs(value)


# --- Kleene's logic -------------------------------------------------------------------------------


def compare(left: Value, operator: str, right: Value) -> bool | None:
    left, right = known(left), known(right)
    if left is None or right is None:
        return None
    return {
        ">": lambda: left > right,
        "<": lambda: left < right,
        ">=": lambda: left >= right,
        "<=": lambda: left <= right,
        "==": lambda: left == right,
        "!=": lambda: left != right,
    }[operator]()


def both(*values: bool | None) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def either(*values: bool | None) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def is_between(value: Value, low: Value, high: Value) -> bool | None:
    return both(compare(value, ">=", low), compare(value, "<=", high))


# --- scopes ---------------------------------------------------------------------------------------


def key_text(value: Value) -> str | None:
    value = known(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def join_parts(parts: list[str]) -> str:
    """Texts with commas between them; among several one that has a comma or a quote is quoted."""
    if len(parts) == 1:
        return parts[0]
    marked = [part.replace("\\", "\\\\").replace('"', '\\"') for part in parts]
    pairs = zip(parts, marked, strict=True)
    return ",".join(f'"{mark}"' if "," in part or '"' in part else part for part, mark in pairs)


def by(*names: str) -> Key:
    """``per a, b``: the values joined by commas; one missing value is no scope."""

    def key(row: Row) -> str | None:
        parts = [key_text(row.get(name)) for name in names]
        return None if None in parts else join_parts([part for part in parts if part is not None])

    return key


def inside(region: Mapping[str, Any], x: float, y: float) -> bool:
    if "rectangle" in region:
        x0, y0, x1, y1 = region["rectangle"]
        return x0 <= x <= x1 and y0 <= y <= y1
    if "circle" in region:
        cx, cy, radius = region["circle"]
        return math.hypot(x - cx, y - cy) <= radius
    if "polygon" in region:
        odd, corners = False, region["polygon"]
        for (ax, ay), (bx, by_) in zip(corners, corners[1:] + corners[:1], strict=True):
            if (ay > y) != (by_ > y) and x < ax + (y - ay) * (bx - ax) / (by_ - ay):
                odd = not odd
        return odd
    return False


@dataclass
class Gazetteer:
    """``levels``: {"rooms": {"413": {"in": "floor-4"}}, ...}; names are unique over all levels."""

    levels: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def region(self, name: str) -> Mapping[str, Any]:
        return next((regions[name] for regions in self.levels.values() if name in regions), {})

    def ancestors(self, name: str) -> list[str]:
        """The region itself and all that enclose it."""
        chain = [name]
        while "in" in (region := self.region(chain[-1])):
            chain.append(region["in"])
        return chain

    def holding(self, row: Row) -> set[str]:
        """Every region that the row's event lies in."""
        found: set[str] = set()
        for regions in self.levels.values():
            for name, region in regions.items():
                x, y = known(row.get("x")), known(row.get("y"))
                if (
                    row.get("place") == name
                    or row.get("source") in region.get("sources", ())
                    or (x is not None and y is not None and inside(region, x, y))
                ):
                    found.update(self.ancestors(name))
        return found

    def level(self, name: str) -> Key:
        def key(row: Row) -> str | None:
            held = self.holding(row) & set(self.levels[name])
            assert len(held) <= 1, f"{row} lies in {held}"
            return next(iter(held), None)

        return key

    def among(self, *names: str) -> Key:
        """``scope a, b``: regions named one by one."""

        def key(row: Row) -> str | None:
            held = self.holding(row) & set(names)
            return next(iter(held), None)

        return key


def everything(row: Row) -> str:
    return ""


# --- the filter -----------------------------------------------------------------------------------


@dataclass
class Subscription:
    name: str
    topic: str
    attributes: Sequence[str]
    enter: Predicate
    exit: Predicate | bool  # True: momentary; False: never ends
    scopes: Sequence[Key] = ()  # innermost first; () is one bit for everything


@dataclass
class Bit:
    active: bool = False
    since: int | None = None

    def process(self, row: Row, enter: Predicate, leave: Predicate | bool) -> tuple[str, int | None] | None:
        if leave is True:
            return ("atomic", None) if enter(row) is True else None
        if not self.active:
            if enter(row) is not True:
                return None
            self.active, self.since = True, row["time"]
            return "ingress", None
        if leave is False or leave(row) is not True:
            return None
        since, self.active, self.since = self.since, False, None
        return "egress", since


def instant(microseconds: int) -> str:
    return (EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def to_printed(value: Value) -> Value:
    """NaN is null; JSON knows no infinity, which is printed as a text."""
    value = known(value)
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def judge(rows: Iterable[Row], subscriptions: Sequence[Subscription]) -> list[dict[str, Any]]:
    """Every notification of a replay, as DESIGN §7 prints it (without ``id``) and orders it."""
    ordered = sorted(rows, key=lambda row: (row["time"], row["source"], row["sequence"]))
    lines: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for subscription in subscriptions:
        bits: dict[tuple[int, tuple[str, ...]], Bit] = {}
        levels = list(subscription.scopes) or [everything]
        for row in ordered:
            if row["topic"] != subscription.topic:
                continue
            keys = [level(row) for level in levels]
            # The smallest scope that the event is in, and all those around it.
            start = next((i for i in range(len(keys)) if None not in keys[i:]), None)
            if start is None:
                continue
            outcome: tuple[str, int | None] | None = None
            for depth in range(start, len(levels)):
                path = tuple(key for key in keys[depth:] if key is not None)
                bit = bits.setdefault((depth, path), Bit())
                outcome = bit.process(row, subscription.enter, subscription.exit)
                if outcome is None:
                    break
            if outcome is None:
                continue
            status, since = outcome
            scope = keys[-1] if subscription.scopes else None
            line = {
                "subscription": subscription.name,
                "scope": scope,
                "status": status,
                "time": instant(row["time"]),
                "since": None if since is None else instant(since),
                "topic": row["topic"],
                "source": row["source"],
                "location": location(row),
                "attributes": {name: to_printed(row.get(name)) for name in subscription.attributes},
            }
            order = (row["time"], subscription.name, scope or "", row["source"], row["sequence"])
            lines.append((order, line))
    lines.sort(key=lambda pair: pair[0])
    return [line for _, line in lines]


def location(row: Row) -> Any:
    """Coordinates where there are some (up to the first that is missing), else the place."""
    present: list[float] = []
    for axis in ("x", "y", "z"):
        value = known(row.get(axis))
        if value is None:
            break
        present.append(float(value))
    return present or row.get("place")


def intervals(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Notifications as intervals, in the order in which they end; those still open come last."""
    started: dict[tuple[str, str | None], Mapping[str, Any]] = {}
    found: list[dict[str, Any]] = []
    for line in lines:
        key = (line["subscription"], line["scope"])
        if line["status"] == "ingress":
            started[key] = line
        else:
            found.append(interval(started.pop(key) if line["status"] == "egress" else line, line))
    still = sorted(
        started.values(), key=lambda line: (line["time"], line["subscription"], line["scope"] or "")
    )
    return found + [interval(line, None) for line in still]


def interval(start: Mapping[str, Any], end: Mapping[str, Any] | None) -> dict[str, Any]:
    duration = None
    if end is not None:
        duration = (
            datetime.fromisoformat(end["time"]) - datetime.fromisoformat(start["time"])
        ).total_seconds()
    return {
        "subscription": start["subscription"],
        "scope": start["scope"],
        "start": start["time"],
        "end": None if end is None else end["time"],
        "duration": duration,
        "open": end is None,
        "topic": start["topic"],
        "source": start["source"],
        "attributes": start["attributes"],
    }
