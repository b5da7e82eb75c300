"""Scenarios of all kinds: small, quick to run, and written as people write them."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import strategies as st

GRID = """\
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 15 m}
routing: {kind: id-grid}
energy: {rest: {radio: sleep, mcu: sleep}}
traffic:
  - {from: 0, to: 8, every: 1 s}
duration: 20 s
"""
"""Nine nodes, of which the first talks to the last: two hops, along the diagonal."""

_NODES = st.sampled_from(
    [
        {"kind": "grid", "rows": 2, "columns": 3, "spacing": "10 m"},
        {"kind": "grid", "rows": 1, "columns": 1, "spacing": "10 m"},
        {"kind": "uniform", "count": 7, "width": "30 m", "height": "20 m", "reach": "20 m"},
    ]
)
_LINKS = st.sampled_from(
    [
        {"kind": "disk", "range": "20 m"},
        {"kind": "disk", "range": "15 m", "interference": "40 m"},
        {"kind": "log-distance", "exponent": 3.5, "shadowing": "4 dB", "asymmetry": "2 dB"},
    ]
)
_RADIO = st.sampled_from([{"chip": "cc2420", "power": "-15 dBm"}, {"chip": "cc1000"}])
_MAC = st.sampled_from(
    [
        {"kind": "csma", "retries": 1, "queue": 2},
        {"kind": "csma", "acknowledged": False},
        {"kind": "rts-cts"},
        {"kind": "low-power-listening", "interval": "50 ms"},
        {"kind": "low-power-listening", "wake": "preamble"},
        {"kind": "tdma"},
        {"kind": "tdma", "sleep": True},
        {"kind": "aloha"},
    ]
)
_ROUTING = st.sampled_from(
    [
        {"kind": "flooding"},
        {"kind": "geographic", "beacons": "8 s"},
        {"kind": "on-demand", "keep": "2 s"},
        {"kind": "tree", "sinks": [0], "beacons": "8 s"},
        {"kind": "tree", "sinks": [0], "metric": "hops"},
        {"kind": "id-grid", "resends": 1},
    ]
)


def _node(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def _seconds(most: float) -> st.SearchStrategy[str]:
    return st.floats(0, most).map(lambda seconds: f"{seconds:.3f} s")


@st.composite
def _failure(draw: st.DrawFn, count: int, duration: float) -> dict[str, Any]:
    some = st.lists(_node(count), min_size=1, max_size=3, unique=True)
    kind = draw(st.sampled_from(["kill", "restart", "cut", "mend", "partition", "heal", "drift"]))
    given: dict[str, Any] = {"kind": kind, "at": draw(_seconds(duration))}
    if kind in ("kill", "restart", "drift"):
        given["nodes"] = draw(some)
    if kind in ("cut", "mend"):
        given["links"] = [[draw(_node(count)), draw(_node(count))]]
    if kind == "partition":
        given["groups"] = [draw(some)]
    if kind == "drift":
        given["by"] = f"{draw(st.integers(-500, 500))} ppm"
    return given


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    """A scenario that is right, whatever it does to its network."""
    nodes = draw(_NODES)
    count = nodes.get("count") or nodes["rows"] * nodes["columns"]
    routing = draw(_ROUTING.filter(lambda r: r["kind"] != "id-grid" or nodes["kind"] == "grid"))
    duration = draw(st.floats(1, 6))
    flow = {
        "from": draw(st.one_of(_node(count), st.just("all"))),
        "to": 0 if routing["kind"] == "tree" else draw(st.one_of(_node(count), st.just("all"))),
        "every": f"{draw(st.integers(100, 3000))} ms",
        "arrivals": draw(st.sampled_from(["periodic", "poisson"])),
        "phase": draw(st.sampled_from(["random", "together"])),
        "size": draw(st.integers(1, 80)),
    }
    energy: dict[str, Any] = {"platform": draw(st.sampled_from(["micaz", "telosb", "mica2"]))}
    if draw(st.booleans()):
        energy["battery"] = f"{draw(st.integers(50, 900))} mJ"
    return yaml.safe_dump(
        {
            "nodes": nodes,
            "links": draw(_LINKS),
            "radio": draw(_RADIO),
            "mac": draw(_MAC),
            "routing": routing,
            "energy": energy,
            "traffic": [flow] * draw(st.integers(0, 2)),
            "failures": draw(st.lists(_failure(count, duration), max_size=4)),
            "duration": f"{duration:.3f} s",
            "warm-up": f"{duration / 4:.3f} s",
            "until-first-death": draw(st.booleans()),
        }
    )
