"""Figures 7-9 and 7-10 of the document, with our points."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UsageError

from ..experiment import Result


def figure(result: Result, folder: Path) -> list[Path]:
    """Regular and memoized times against n, ours and the document's, for both sorts of message."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise UsageError("--figure needs matplotlib; install holdfast[figures]") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points = [row for row in result.rows if row["n"] is not None]
    drawing, axes = plt.subplots(2, 2, figsize=(10, 7), sharex=True, layout="constrained")
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
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "memoization.png"
    drawing.savefig(path, dpi=120)
    plt.close(drawing)
    return [path]
