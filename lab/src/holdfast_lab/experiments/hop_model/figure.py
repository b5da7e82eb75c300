"""The figure: mean hops and diameter, as printed, computed and measured."""

from __future__ import annotations

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result


def figure(result: Result) -> Drawing:
    """Draw the hops of the ten networks, and the share of the traffic that crosses their roots."""
    rows = result.rows
    at = range(len(rows))
    names = [row["network"] for row in rows]
    drawing = new_figure(11, 4.6)
    hops, share = drawing.subplots(1, 2, width_ratios=(3, 2))
    measured, diameters = [row["measured hops"] for row in rows], [row["diameter"] for row in rows]
    hops.bar(at, diameters, color="0.9", label="diameter")
    hops.bar(at, measured, width=0.5, color="tab:blue", label="measured on the overlay")
    hops.plot(at, [row["paper hops"] for row in rows], "kx", label="document")
    hops.plot(at, [0.95 * d for d in diameters], "_", color="tab:red", markersize=22, label="0.95 D")
    hops.set_xticks(at, names, rotation=40, ha="right")
    hops.set(ylabel="hops between brokers", title="How far an event travels")
    hops.legend(fontsize=8, loc="upper left")
    branches = [int(name.split("-")[0]) for name in names]
    steps = range(2, 13)
    share.plot(steps, [(b - 1) / b for b in steps], "-", color="0.6", label="(B - 1) / B")
    measured = [row["measured root share"] for row in rows]
    share.plot(branches, measured, "o", color="tab:blue", label="measured")
    share.set(xlabel="branches at the root, B", ylabel="share of the notifications", ylim=(0, 1))
    share.set_title("What passes the root")
    share.legend(fontsize=8, loc="lower right")
    return drawing
