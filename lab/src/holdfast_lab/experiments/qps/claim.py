"""The statements of the thesis about its figures, and a rule for each.

The figures are lost, so the rules judge the trends that the text describes.
"""

from __future__ import annotations

from statistics import fmean

from ..experiment import Claim, Judged, to_claims
from .measure import CODD, GHTD, GUARANTEED, QPS
from .sweep import Quantity, Sweep, hops, line, links, load, messages, subscribing, trend

STRAIGHT = 0.99
TWO = (1.7, 2.5)
HALF = (0.35, 0.65)
MANY = 50
"""The number of subscribers from which CODD's links grow more slowly by the thesis, and from which loads are
compared.
"""
CLEAR = 0.7
"""The least rank correlation that counts as a rise or a fall."""
SATURATED = 1.8
"""The ε above which the thesis reports no change."""

SUBSCRIBERS = {
    "links-linear": "The links of QPS and GHTD grow in a line with the number of subscribers, by about two "
    f"for each. Rule: for both a line explains {STRAIGHT:.0%} of the variance of the means, and its slope is "
    f"between {TWO[0]} and {TWO[1]}.",
    "codd-links": f"CODD has more links, and gets further ones more slowly after {MANY} subscribers. Rule: "
    "at every number its mean is above those of QPS and GHTD, and its links for a further subscriber are "
    f"fewer above {MANY} than below.",
    "ghtd-dissemination": "GHTD needs most messages for an event and subscriber, and varies most; QPS is "
    "steadier. Rule: at every number GHTD's mean is the largest of the three, and its standard deviation "
    "over layouts, averaged over the numbers, is larger than that of QPS.",
    "load-half": "The largest load of QPS is about half of GHTD's. Rule: the ratio of their means, averaged "
    f"over the numbers from {MANY} on, is between {HALF[0]} and {HALF[1]}.",
}
DENSITY = {
    "qps-falls": "Messages of QPS and GHTD for an event and subscriber fall as nodes get denser. Rule: for "
    "both "
    f"the mean at the most nodes is below that at the fewest, and the rank correlation is −{CLEAR} or less.",
    "codd-rises": "CODD's links, messages and largest load rise. Rule: for each of the three the mean at "
    f"the most nodes is above that at the fewest, and the rank correlation is {CLEAR} or more.",
    "crossover": "CODD is better in sparse networks, QPS in dense ones. Rule: CODD's mean of messages is "
    "below that of QPS at the fewest nodes, and above it at the most.",
}
EPSILON = {
    "latency-up": "With a larger ε events travel longer. Rule: the mean number of hops to a subscriber is "
    f"larger at the largest ε than at 1, and the rank correlation up to {SATURATED} is {CLEAR} or more.",
    "messages-down": "Subscriptions are resolved with fewer messages. Rule: the mean number of "
    "transmissions is "
    f"smaller at the largest ε than at 1, and the rank correlation up to {SATURATED} is −{CLEAR} or less.",
    "links-down": "There are fewer links. Rule: their mean is smaller at the largest ε than at 1.",
}


def about_subscribers(sweep: Sweep) -> tuple[Claim, ...]:
    """Judge the claims about the number of subscribers."""
    return to_claims(SUBSCRIBERS, [_linear(sweep), _codd_links(sweep), _worst(sweep), _half(sweep)])


def _linear(sweep: Sweep) -> Judged:
    found = {name: line(sweep.points, sweep.curve(links, name)) for name in (QPS, GHTD)}
    return Judged(
        "a strong linear relationship; often just two additional links",
        {name: {"slope": slope, "explained": share} for name, (slope, share) in found.items()},
        all(share >= STRAIGHT and TWO[0] <= slope <= TWO[1] for slope, share in found.values()),
        f"QPS has {_gap(sweep, links, GHTD):.0f} links more than GHTD on average: those among its brokers.",
    )


def _gap(sweep: Sweep, quantity: Quantity, other: str) -> float:
    both = zip(sweep.curve(quantity, QPS), sweep.curve(quantity, other), strict=True)
    return fmean(a - b for a, b in both)


def _codd_links(sweep: Sweep) -> Judged:
    curves = {name: sweep.curve(links, name) for name in (QPS, CODD, GHTD)}
    more = all(c > max(q, g) for c, q, g in zip(curves[CODD], curves[QPS], curves[GHTD], strict=True))
    few = [i for i, point in enumerate(sweep.points) if point <= MANY]
    many = [i for i, point in enumerate(sweep.points) if point >= MANY]
    early, late = (
        line([sweep.points[i] for i in some], [curves[CODD][i] for i in some])[0] for some in (few, many)
    )
    return Judged(
        "initially higher, rapidly increasing, slower beyond 50",
        {"for a further subscriber, below": early, "above": late, "always more": more},
        more and late < early,
    )


def _worst(sweep: Sweep) -> Judged:
    curves = [sweep.curve(messages, name) for name in (GHTD, QPS, CODD)]
    worst = all(ghtd > max(others) for ghtd, *others in zip(*curves, strict=True))
    spreads = {n: fmean(sweep.spread(messages, n, p) for p in sweep.points) for n in (QPS, CODD, GHTD)}
    last, gap = _last(sweep, messages), _gap(sweep, messages, CODD)
    return Judged(
        "GHTD worst with significant variability; QPS remarkably better, with less; CODD comes nearer to QPS",
        {"messages at most subscribers": last, "standard deviation": spreads, "always worst": worst},
        worst and spreads[GHTD] > spreads[QPS],
        f"Of the three CODD needs fewest: {gap:.1f} less than QPS on average." if gap > 0 else "",
    )


def _last(sweep: Sweep, quantity: Quantity) -> dict[str, float]:
    return {name: sweep.mean(quantity, name, sweep.points[-1]) for name in sweep.approaches}


def _half(sweep: Sweep) -> Judged:
    many = [point for point in sweep.points if point >= MANY]
    share = fmean(sweep.mean(load, QPS, p) / sweep.mean(load, GHTD, p) for p in many)
    return Judged(
        "QPS half of GHTD, CODD best",
        {"QPS / GHTD": share, "at most subscribers": _last(sweep, load)},
        HALF[0] <= share <= HALF[1],
    )


def about_density(sweep: Sweep) -> tuple[Claim, ...]:
    """Judge the claims about the density of nodes."""
    return to_claims(DENSITY, [_falls(sweep), _rises(sweep), _crossover(sweep)])


def _moves(sweep: Sweep, quantity: Quantity, name: str) -> tuple[float, float, float]:
    curve = sweep.curve(quantity, name)
    return curve[0], curve[-1], trend(sweep.points, curve)


def _falls(sweep: Sweep) -> Judged:
    found = {name: _moves(sweep, messages, name) for name in (QPS, GHTD)}
    return Judged(
        "increased density has a positive impact",
        {name: _named(moves, "fewest nodes", "most nodes") for name, moves in found.items()},
        all(last < first and rank <= -CLEAR for first, last, rank in found.values()),
        why={
            True: "Ways round the holes of a sparse network are long: among 150 nodes greedy-face routing "
            "makes several times the hops of the shortest way, among 500 hardly more."
        },
    )


def _named(moves: tuple[float, float, float], first: str, last: str) -> dict[str, float]:
    return dict(zip((first, last, "rank correlation"), moves, strict=True))


def _rises(sweep: Sweep) -> Judged:
    kinds = {"links": links, "messages": messages, "load": load}
    found = {name: _moves(sweep, quantity, CODD) for name, quantity in kinds.items()}
    return Judged(
        "links, cost and maximum load rise",
        {name: _named(moves, "fewest nodes", "most nodes") for name, moves in found.items()},
        all(last > first and rank >= CLEAR for first, last, rank in found.values()),
    )


def _crossover(sweep: Sweep) -> Judged:
    ends = (sweep.points[0], sweep.points[-1])
    sparse, dense = ({n: sweep.mean(messages, n, p) for n in (QPS, CODD)} for p in ends)
    return Judged(
        "CODD in sparse, QPS in moderately to strongly dense networks",
        {f"{ends[0]:g} nodes": sparse, f"{ends[1]:g} nodes": dense},
        sparse[CODD] < sparse[QPS] and dense[CODD] > dense[QPS],
        why={
            False: "The gap closes as nodes get denser, and does not turn. Our CODD sends all subscriptions "
            "to the middle of one region, so ways that meet go on together; and it pays nothing for a link, "
            "of which it has several times as many. QPS pays a way of its own from the last broker to each "
            "subscriber."
        },
    )


def about_epsilon(sweep: Sweep) -> tuple[Claim, ...]:
    """Judge the claims about ε."""
    return to_claims(EPSILON, [_latency(sweep), _judge_resolution(sweep), _fewer(sweep)])


def _up_to_saturation(sweep: Sweep, quantity: Quantity, name: str = QPS) -> tuple[float, float, float]:
    some = [point for point in sweep.points if point <= SATURATED]
    curve = [sweep.mean(quantity, name, point) for point in some]
    first, last, _ = _moves(sweep, quantity, name)
    return first, last, trend(some, curve)


def _latency(sweep: Sweep) -> Judged:
    first, last, rank = moves = _up_to_saturation(sweep, hops)
    sure = _up_to_saturation(sweep, hops, GUARANTEED)
    return Judged(
        "up, under controlled conditions",
        _named(moves, "ε = 1", "largest ε"),
        last > first and rank >= CLEAR,
        f"Guaranteed, hops are {sure[0]:.3g} at ε = 1 and {sure[1]:.3g} at the largest.",
    )


def _judge_resolution(sweep: Sweep) -> Judged:
    first, last, rank = moves = _up_to_saturation(sweep, subscribing)
    return Judged("fewer, and quicker", _named(moves, "ε = 1", "largest ε"), last < first and rank <= -CLEAR)


def _fewer(sweep: Sweep) -> Judged:
    first, last, _ = moves = _up_to_saturation(sweep, links)
    loads = {f"{point:g}": sweep.mean(load, QPS, point) for point in sweep.points}
    return Judged(
        "the text says otherwise: more with the first increment, then constant",
        _named(moves, "ε = 1", "largest ε"),
        last < first,
        f"The largest load falls from {loads['1']:.0f} at ε = 1 to {list(loads.values())[-1]:.0f}, as the "
        "text says: at 1 all are at the leaf's broker.",
        why={
            False: "At ε = 1 every subscriber is linked to the one leaf below which the region lies; with "
            "more, brokers above it are, too, and are linked to it in turn: a few links more, once, as the "
            "thesis' own text has it."
        },
    )
