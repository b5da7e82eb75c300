"""The claims of the thesis about the journey planner, their rules, verdicts and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..experiment import Claim
from .count import LINES, Counts
from .definition import COMPONENTS, CONGESTION, HIGH, LOOP, NEAR, SLOW, SPEED, USER
from .deployment import SEGMENTS

RULES: Mapping[str, str] = {
    "crosses-network": "Hardly anything that is published crosses the network. Rule: in both experiments "
    "what is wanted on another node than its publisher's is less than 0.01 % of what would be published if "
    "loops and users spoke at 1 Hz, as in the thesis.",
    "predicate-evaluations": "Cutting TrafficCongestion into 16 segments of roads cuts what one event makes "
    "a manager examine. Rule: in both experiments the largest number of combinations that an event is part "
    "of is at a part at most a fifth of what it is in one piece.",
    "max-knowledge-points": "An information space stays small. Rule: in both experiments none ever holds "
    "more than 37 knowledge points.",
    "input-cut": "The parts of TrafficCongestion share its input. Rule: in both experiments the busiest "
    "part receives at most a fifth of what IL_High and CarSpeed_Slow publish.",
    "sharing": "Users share what detects congestion. Rule: besides one component for each user there are "
    "376, and as many for twice the users.",
    "accounting": "The tables' identities hold for our counts. Rule: exactly, in both experiments: "
    "publications = loops + speeds + users + components; disseminated = IL_High + CarSpeed_Slow + "
    "TrafficCongestion; delivered = 500 · TrafficCongestion + 16 · (IL_High + CarSpeed_Slow); InfoS "
    "subscriptions = 2 · 500 + 2 · 256 + 60 + 60; most input of a TrafficCongestionNear = positions of a "
    "user + TrafficCongestion; publications = disseminated + local.",
    "central-equal": "What is delivered equals what a centralized implementation says. Rule: in both "
    "experiments the notifications of all four components, in one process and on nodes, are those of "
    "pandas: component, scope, status, time, since and value, exactly; and some report reaches a user.",
}
"""The rules were fixed after a first run of one day, which tested the code. The rule of ``crosses-network``
and the judged setting were fixed after a full run of another setting.
"""


PAPER: tuple[Counts, ...] = tuple({key: line.paper[i] for key, line in LINES.items()} for i in (0, 1))
"""The counts that the thesis prints for its two experiments."""


def judge(counts: Counts) -> dict[str, bool]:
    """Judge each claim in one run by its rule."""
    shared_for_twice, nodes, process = (
        counts[name] for name in ("shared for twice", "differ nodes", "differ process")
    )
    return {
        "crosses-network": crossing(counts) < 0.01,
        "predicate-evaluations": 5 * counts[f"combinations {CONGESTION}"] <= counts["whole"],
        "max-knowledge-points": _most_points(counts) <= 37,
        "input-cut": input_share(counts) <= 20.0,
        "sharing": shared(counts) == 376 == shared_for_twice and counts[f"smcs {NEAR}"] == counts["users"],
        "accounting": all(left == right for left, right in identities(counts).values()),
        "central-equal": nodes == 0 == (process or 0) and counts[NEAR] > 0,
    }


def crossing(counts: Counts) -> float:
    """The percentage of publications that cross the network if loops and users publish once a second.

    A camera publishes when a car passes. For the counts of the thesis this is the share of all publications.
    """
    at_1_hz = (counts["roads"] + counts["users"]) * 3600 * counts["hours"]
    return 100.0 * float(counts["disseminated"]) / (at_1_hz + counts[SPEED] + counts["internal"])


def input_share(counts: Counts) -> float:
    """The percentage of TrafficCongestion's input that its busiest part receives."""
    return 100.0 * float(counts[f"received {CONGESTION}"]) / max(counts[HIGH] + counts[SLOW], 1)


def shared(counts: Counts) -> int:
    """The number of components that serve all users."""
    return int(counts["smcs"] - counts[f"smcs {NEAR}"])


def _most_points(counts: Counts) -> int:
    return max(counts[f"points {name}"] for name in COMPONENTS)


def identities(n: Counts) -> dict[str, tuple[int, int]]:
    """Both sides of each equation that the tables must satisfy, for the counts ``n``."""
    components = sum(n[name] for name in COMPONENTS)
    at_segments = SEGMENTS * (n[HIGH] + n[SLOW])
    return {
        "publications": (n["published"], n[LOOP] + n[SPEED] + n[USER] + components),
        "disseminated": (n["disseminated"], n[HIGH] + n[SLOW] + n[CONGESTION]),
        "delivered": (n["delivered"], n["users"] * n[CONGESTION] + at_segments),
        "InfoS subscriptions": (n["subscriptions InfoS"], 2 * (n["users"] + SEGMENTS**2 + n["roads"])),
        "most input of Near": (n[f"received {NEAR}"], n[USER] // n["users"] + n[CONGESTION]),
        "disseminated + local": (n["published"], n["disseminated"] + n["local"]),
    }


# --- claims ------------------------------------------------------------------------------------


def claims(runs: Mapping[str, Sequence[Counts]], days: Mapping[str, Counts]) -> Iterable[Claim]:
    """Judge the claims on the first setting; the other settings and ``days`` show how robust the verdicts
    are.
    """
    main = next(iter(runs.values()))
    holds = [judge(counts) for counts in main]
    measured = _further_measures(runs)
    for name in RULES:
        paper, ours = ([_figures(counts)[name] for counts in both] for both in (PAPER, main))
        text = measured[name] + _how_often(name, days)
        verdict = all(one[name] for one in holds)
        yield Claim(name, RULES[name], _both(paper), _both(ours), verdict, text, WHY[name])


def _both(figures: Sequence[Any]) -> Any:
    """Combine the figures of two experiments; equal figures are shown once."""
    first, second = figures
    return first if first == second else {"Exp1": first, "Exp2": second}


def _figures(counts: Counts) -> dict[str, Any]:
    compared = f"{counts['differ nodes']} on nodes and {counts['differ process']} in one process differ"
    return {
        "crosses-network": f"{crossing(counts):.4f} %",
        "predicate-evaluations": _evaluations(counts),
        "max-knowledge-points": _most_points(counts),
        "input-cut": f"{input_share(counts):.1f} %",
        "sharing": f"{shared(counts)} for {counts['users']} users",
        "accounting": {name: left for name, (left, _) in identities(counts).items()},
        "central-equal": "compared; the outcome is not printed"
        if counts["differ process"] is None
        else compared,
    }


def _evaluations(counts: Counts) -> str:
    return f"{counts[f'combinations {CONGESTION}']} of {counts['whole']}"


def _how_often(claim: str, days: Mapping[str, Counts]) -> str:
    if not days:
        return ""
    return f" It holds on {sum(judge(counts)[claim] for counts in days.values())} of {len(days)} days."


def _further_measures(runs: Mapping[str, Sequence[Counts]]) -> dict[str, str]:
    """Measures beyond those that the claims name, also of the other settings."""
    main = next(iter(runs.values()))
    paper, ours = (
        ", ".join(f"{c['disseminated'] / c['roads'] / c['hours']:.2f}" for c in both)
        for both in (PAPER, main)
    )
    published = ", ".join(f"{100.0 * c['disseminated'] / c['published']:.4f} %" for c in main)
    effective, internal = (" and ".join(str(c[name]) for c in main) for name in ("effective", "internal"))
    reports = " and ".join(f"{c[NEAR] / max(c[CONGESTION], 1):.1f}" for c in main)
    return {
        "crosses-network": "Sensors speak at 1 Hz in the thesis, once in 300 s here. What crosses is "
        f"{ours} events for each road and hour ({paper} in the thesis); of what our sensors published it is "
        f"{published}.",
        "predicate-evaluations": f"Counted as the thesis does, {_line(runs, _evaluations)}. Our machine "
        f"keeps roads apart and examines at most {max(c['examined'] for c in main)}, decomposed or not.",
        "max-knowledge-points": "Windows hold 3 and 5 readings here, 30 and 37 there. Of starts and ends a "
        f"part of TrafficCongestion keeps at most, {_line(runs, lambda c: str(c[f'points {CONGESTION}']))}.",
        "input-cut": "A sixteenth would be 6.25 %. It is, "
        f"{_line(runs, lambda c: f'{input_share(c):.0f} %')}.",
        "sharing": f"Of the 256 parts only 16 can detect something; {effective} have.",
        "accounting": f"Near / TrafficCongestion, exactly 24 in the thesis, is {reports} here.",
        "central-equal": f"{internal} notifications; pandas computes windows, toggles and distances from the "
        "definition.",
    }


WHY: Mapping[str, Mapping[bool | None, str]] = {
    "crosses-network": {True: "The share of what is published says how often sensors speak."},
    "predicate-evaluations": {False: "The cut needs many roads that were slow at some time."},
    "max-knowledge-points": {
        True: "The claim says how often sensors speak, too. What does not depend on it are starts and ends, "
        "at most four for each of a part's roads."
    },
    "input-cut": {False: "Real congestion is not spread evenly."},
    "sharing": {
        True: "It follows from how components are cut and placed, not from the data: 60 + 60 + 16 · 16."
    },
    "accounting": {
        True: "Messages are counted as they are routed; the identities follow from who subscribes to what, "
        "and reports for each congestion from where users are."
    },
    "central-equal": {},
}


def _line(runs: Mapping[str, Sequence[Counts]], figure: Callable[[Counts], str]) -> str:
    """Format a figure of both experiments in every setting."""
    return "; ".join(f"{name}: {', '.join(figure(c) for c in both)}" for name, both in runs.items())
