"""Figures 7-9 and 7-10 of the document, with our measurements."""

from __future__ import annotations

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result


def figure(result: Result) -> Drawing:
    """Draw regular and memoized times over n, the document's and ours, for both sorts of message."""
    points = [row for row in result.rows if row["n"] is not None]
    drawing = new_figure(10, 7)
    axes = drawing.subplots(2, 2, sharex=True)
    for column, sort in enumerate(("subscription", "notification")):
        for row, (whose, unit, name) in enumerate(
            (("the document", "presumably ms", "paper {} {}"), ("ours", "µs", "{} {} (µs)"))
        ):
            axis = axes[row][column]
            for way, style in (("regular", "o-"), ("memoized", "s--")):
                seen = [(point["n"], point[name.format(sort, way)]) for point in points]
                axis.plot(*zip(*seen, strict=True), style, label=way)
            axis.set_ylim(bottom=0)
            axis.set_title(f"{sort}s, {whose}")
            axis.set_ylabel(f"time of a message ({unit})")
            axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("advertisements and subscriptions of each client")
    axes[0][0].legend()
    drawing.suptitle("Distributed memoization on a chain of three brokers  [Fulcrum, figures 7-9 and 7-10]")
    return drawing
