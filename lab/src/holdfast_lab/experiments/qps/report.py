"""Tables and figures of the three experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model.space import Point
from holdfast.network.motes.report.style import COLOURS, MARKS, legend_above, new_figure, tidy

from ..experiment import Drawing, Result, Row, Table
from .scene import EVENTS, LEVELS, REACH, QpsSetting
from .sweep import Quantity, Sweep, hops, links, load, messages, subscribing

QUANTITIES: Mapping[str, tuple[Quantity, int]] = {
    "links": (links, 1),
    "load": (load, 1),
    "messages": (messages, 3),
    "hops": (hops, 2),
    "subscribing": (subscribing, 0),
}
TITLES = {
    "links": "Publish-subscribe links",
    "load": "Largest load: links at a node",
    "messages": "Transmissions for an event and subscriber",
    "hops": "Hops from publisher to subscriber",
    "subscribing": "Transmissions until all have subscribed",
}


def parameters(setting: QpsSetting, layouts: int, varied: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters, including those that the thesis does not state."""
    x, y = setting.low, setting.high
    return {
        "space": f"{setting.side:g} × {setting.side:g}",
        "nodes": f"{setting.nodes}, anywhere with equal chance; layouts that are not connected, or have "
        "nobody in the region, are drawn again",
        "reach": f"{REACH:g}: 1,000 nodes in 256 × 256 then have 34 neighbours each, and 33 are printed",
        "subscribers": setting.subscribers,
        "region": f"{x} – {y}, for all subscribers",
        "publishers": "one on each node, about where it stands; those outside the region cost nothing",
        "events": f"{EVENTS}, from the region",
        "N": LEVELS,
        "ε": "1.5, best-effort",
        "topic": "another name for each layout, since its hash decides where brokers and rendezvous nodes "
        "stand",
        "routing": "greedy, and along faces of the Gabriel graph where nobody is nearer; no radio, nothing "
        "is lost",
        "messages": "transmissions, from node to node; those of routing and link layers are not counted",
        "CODD": "subscriptions go to the region's middle until they meet a way or the region, where they "
        "are flooded",
        "GHTD": "one rendezvous node, nearest to the hash of the topic",
        "layouts": f"{layouts}, seeds 0 to {layouts - 1}",
        **varied,
    }


def rows(sweep: Sweep, called: str) -> list[Row]:
    """Return a row for each approach and point: means, and half the widths of their 95 % intervals."""
    return [
        {"approach": name, called: point, **_measures(sweep, name, point)}
        for name in sweep.approaches
        for point in sweep.points
    ]


def _measures(sweep: Sweep, name: str, point: float) -> Row:
    row: Row = {}
    for word, (quantity, digits) in QUANTITIES.items():
        found = sweep.estimate(quantity, name, point)
        row[word] = round(found.mean, digits)
        row[f"{word} ±"] = None if found.half is None else round(found.half, digits)
    return row


def tables(called: str, words: Sequence[str]) -> Any:
    """Return a function that makes the tables of a result."""

    def tables_of(result: Result) -> list[Table]:
        sweep: Sweep = result.exhibit.sweep
        columns = (called, *(f"{point:g}" for point in sweep.points))
        found = []
        for word in words:
            cells = {name: [_cell(sweep, word, name, p) for p in sweep.points] for name in sweep.approaches}
            lines = [(name, *row) for name, row in cells.items()]
            found.append(Table(f"{TITLES[word]}: mean ± 95 %", columns, lines))
        return found

    return tables_of


def _cell(sweep: Sweep, word: str, name: str, point: float) -> str:
    quantity, digits = QUANTITIES[word]
    found = sweep.estimate(quantity, name, point)
    half = "" if found.half is None else f" ± {found.half:,.{min(digits, 2)}f}"
    return f"{found.mean:,.{min(digits, 2)}f}{half}"


def curves(called: str, words: Sequence[str]) -> Any:
    """Return a function that draws the figures of the thesis: a panel for each quantity, with 95 %
    intervals.
    """

    def draw(result: Result) -> Drawing:
        sweep: Sweep = result.exhibit.sweep
        figure = new_figure(4.2 * len(words), 4.0 if result.exhibit.maps is None else 7.6)
        grid = figure.subplots(1 if result.exhibit.maps is None else 2, len(words), squeeze=False)
        for panel, word in zip(grid[0], words, strict=True):
            for name, colour, mark in zip(sweep.approaches, COLOURS, MARKS, strict=False):
                found = [sweep.estimate(QUANTITIES[word][0], name, point) for point in sweep.points]
                halves = [each.half or 0.0 for each in found]
                means = [each.mean for each in found]
                style = {"color": colour, "marker": mark, "markersize": 4, "capsize": 2}
                panel.errorbar(sweep.points, means, halves, label=name, **style)
            tidy(panel, TITLES[word])
            panel.set_xlabel(called)
            panel.set_ylim(bottom=0)
        legend_above(figure, grid[0][0])
        if result.exhibit.maps is not None:
            for panel, (epsilon, drawing) in zip(grid[1], result.exhibit.maps.items(), strict=False):
                _map(panel, drawing, f"Who sends to whom, ε = {epsilon:g}")
            for panel in grid[1][len(result.exhibit.maps) :]:
                panel.set_visible(False)
        return figure

    return draw


def _map(panel: Any, drawing: Any, title: str) -> None:
    """Draw nodes, brokers by level, and publish-subscribe links."""
    places, brokers, arrows = drawing
    panel.plot(*zip(*places, strict=True), ".", color="0.85", markersize=2, zorder=0)
    for (ax, ay), (bx, by) in arrows:
        panel.plot([ax, bx], [ay, by], "-", color="0.45", linewidth=0.6, zorder=1)
    draw_levels(panel, brokers, markersize=6, zorder=2)
    as_map(panel, title)


def draw_levels(panel: Any, brokers: Sequence[tuple[int, Point]], **style: Any) -> None:
    """Draw a square at the place of each broker, in the colour of its level."""
    levels = sorted({level for level, _ in brokers})
    for level, colour in zip(levels, COLOURS, strict=False):
        at = [place for each, place in brokers if each == level]
        panel.plot(*zip(*at, strict=True), "s", color=colour, label=f"level {level}", **style)


def as_map(panel: Any, title: str) -> None:
    """Give a panel equal scales, a title and a legend, and no ticks."""
    panel.set_title(title, fontsize=10, loc="left")
    panel.set(aspect="equal", xticks=[], yticks=[])
    panel.legend(fontsize=7, loc="upper right")
