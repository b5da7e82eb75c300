"""A scenario with publishers and a subscriber, as people write it."""

from __future__ import annotations

WATCHED = """\
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 15 m}
routing: {kind: on-demand}
energy: {rest: {radio: sleep, mcu: sleep}}
definition: |
  topic T (value float)
  state Warm on T [value > 0.7; value < 0.3] per source
protocol: {kind: direct}
publishers:
  - topic: T
    from: [0, 2, 8]
    every: 2 s
    start: 20 s
    stop: 80 s
    readings: {value: {kind: uniform}}
subscribers:
  - {node: 4, to: Warm}
duration: 90 s
"""
"""Nine nodes: three of them publish to the one in the middle."""


def scenario_text(protocol: str = "{kind: direct}", to: str = "Warm", more: str = "") -> str:
    """The scenario with another protocol or subscription."""
    text = WATCHED.replace("protocol: {kind: direct}", f"protocol: {protocol}")
    return text.replace("to: Warm", f"to: {to}") + more


def underlined_text(message: str) -> str:
    """The text that an error underlines in the line that it shows."""
    _, line, carets = message.splitlines()[:3]
    begin = carets.index("^")
    return line[begin : begin + carets.count("^")]
