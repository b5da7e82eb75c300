"""What the thesis claims, the rule by which each claim is judged, and why it turns out so."""

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
"""Fixed when one of the two days had been run once, to see that it runs; that of ``crosses-network``, and the
setting that is judged, when all of a first setting had been seen."""


def _paper(experiment: int) -> Counts:
    return {key: line.paper[experiment] for key, line in LINES.items()}


PAPER = (_paper(0), _paper(1))
"""The thesis' own counts."""


def judge(counts: Counts) -> dict[str, bool]:
    """Whether each claim holds in one run, by its rule."""
    n = _numbers(counts)
    return {
        "crosses-network": crossing(counts) < 0.01,
        "predicate-evaluations": 5 * n[f"combinations {CONGESTION}"] <= n["whole"],
        "max-knowledge-points": max(n[f"points {name}"] for name in COMPONENTS) <= 37,
        "input-cut": input_share(counts) <= 20.0,
        "sharing": shared(counts) == 376 == n["shared for twice"] and n[f"smcs {NEAR}"] == n["users"],
        "accounting": all(left == right for left, right in identities(counts).values()),
        "central-equal": n["differ nodes"] == 0 == n.get("differ process", 0) and n[NEAR] > 0,
    }


def crossing(counts: Counts) -> float:
    """The share of publications that cross the network, per cent, if loops and users speak once a second; a
    camera speaks when a car comes.  Of the thesis' counts it is the share of what was published."""
    n = _numbers(counts)
    seconds = 3600 * n["hours"]
    return 100.0 * n["disseminated"] / ((n["roads"] + n["users"]) * seconds + n[SPEED] + n["internal"])


def crossing_as_published(counts: Counts) -> float:
    """The same of what was published, however often sensors spoke."""
    n = _numbers(counts)
    return 100.0 * n["disseminated"] / n["published"]


def input_share(counts: Counts) -> float:
    """The share of the input of TrafficCongestion that its busiest part receives, per cent."""
    n = _numbers(counts)
    return 100.0 * n[f"received {CONGESTION}"] / max(n[HIGH] + n[SLOW], 1)


def shared(counts: Counts) -> int:
    """The components that no user has for himself."""
    n = _numbers(counts)
    return n["smcs"] - n[f"smcs {NEAR}"]


def identities(counts: Counts) -> dict[str, tuple[int, int]]:
    """Both sides of what must be equal."""
    n = _numbers(counts)
    components = sum(n[name] for name in COMPONENTS)
    return {
        "publications": (n["published"], n[LOOP] + n[SPEED] + n[USER] + components),
        "disseminated": (n["disseminated"], n[HIGH] + n[SLOW] + n[CONGESTION]),
        "delivered": (n["delivered"], n["users"] * n[CONGESTION] + SEGMENTS * (n[HIGH] + n[SLOW])),
        "InfoS subscriptions": (
            n["subscriptions InfoS"],
            2 * n["users"] + 2 * SEGMENTS**2 + 2 * n["roads"],
        ),
        "most input of Near": (n[f"received {NEAR}"], n[USER] // n["users"] + n[CONGESTION]),
        "disseminated + local": (n["published"], n["disseminated"] + n["local"]),
    }


def _numbers(counts: Counts) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}


# --- claims ------------------------------------------------------------------------------------


def claims(runs: Mapping[str, Sequence[Counts]], days: Mapping[str, Counts]) -> Iterable[Claim]:
    """The claims, judged on the first setting; the others, and further ``days``, say how firmly."""
    main = next(iter(runs.values()))
    holds = [judge(counts) for counts in main]
    measured = _further_measures(runs)
    for name in RULES:
        paper, ours = ([_figures(counts)[name] for counts in both] for both in (PAPER, main))
        text = measured[name] + _how_often(name, days)
        verdict = all(one[name] for one in holds)
        yield Claim(name, RULES[name], _both(paper), _both(ours), verdict, text, WHY[name])


def _both(figures: Sequence[Any]) -> Any:
    """What two experiments gave, once where it is the same."""
    first, second = figures
    return first if first == second else {"Exp1": first, "Exp2": second}


def _figures(counts: Counts) -> dict[str, Any]:
    n = _numbers(counts)
    return {
        "crosses-network": f"{crossing(counts):.4f} %",
        "predicate-evaluations": f"{n[f'combinations {CONGESTION}']} of {n['whole']}",
        "max-knowledge-points": max(n[f"points {name}"] for name in COMPONENTS),
        "input-cut": f"{input_share(counts):.1f} %",
        "sharing": f"{shared(counts)} for {n['users']} users",
        "accounting": {name: left for name, (left, _) in identities(counts).items()},
        "central-equal": f"{n['differ nodes']} on nodes and {n['differ process']} in one process differ"
        if "differ process" in n
        else "compared; the outcome is not printed",
    }


def _how_often(claim: str, days: Mapping[str, Counts]) -> str:
    if not days:
        return ""
    return f" It holds on {sum(judge(counts)[claim] for counts in days.values())} of {len(days)} days."


def _further_measures(runs: Mapping[str, Sequence[Counts]]) -> dict[str, str]:
    """More that was measured, in the settings as well."""
    main = next(iter(runs.values()))
    paper, ours = (", ".join(f"{_an_hour(counts):.2f}" for counts in both) for both in (PAPER, main))
    published = ", ".join(f"{crossing_as_published(c):.4f} %" for c in main)
    return {
        "crosses-network": "Sensors speak at 1 Hz in the thesis, once in 300 s here. What crosses is "
        f"{ours} events for each road and hour ({paper} in the thesis); of what our sensors published it is "
        f"{published}.",
        "predicate-evaluations": f"Counted as the thesis does, {_line(runs, _cut)}. Our machine keeps roads "
        f"apart and examines at most {max(_numbers(c)['examined'] for c in main)}, decomposed or not.",
        "max-knowledge-points": "Windows hold 3 and 5 readings here, 30 and 37 there. Of starts and ends a "
        f"part of TrafficCongestion keeps at most, {_line(runs, _most_points)}.",
        "input-cut": "A sixteenth would be 6.25 %. It is, "
        f"{_line(runs, lambda c: f'{input_share(c):.0f} %')}.",
        "sharing": f"Of the 256 parts only 16 can detect something; {_pair(main, 'effective')} have.",
        "accounting": "Near / TrafficCongestion, exactly 24 in the thesis, is "
        f"{' and '.join(f'{_reports(c):.1f}' for c in main)} here.",
        "central-equal": f"{_pair(main, 'internal')} notifications; pandas computes windows, toggles and "
        "distances from the definition.",
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


def _an_hour(counts: Counts) -> float:
    n = _numbers(counts)
    return n["disseminated"] / n["roads"] / n["hours"]


def _cut(counts: Counts) -> str:
    return f"{counts[f'combinations {CONGESTION}']} of {counts['whole']}"


def _most_points(counts: Counts) -> str:
    return str(counts[f"points {CONGESTION}"])


def _reports(counts: Counts) -> float:
    n = _numbers(counts)
    return n[NEAR] / max(n[CONGESTION], 1)


def _pair(both: Sequence[Counts], name: str) -> str:
    return " and ".join(str(counts[name]) for counts in both)


def _line(runs: Mapping[str, Sequence[Counts]], figure: Callable[[Counts], str]) -> str:
    """A figure of both experiments in every setting."""
    return "; ".join(f"{name}: {', '.join(figure(c) for c in both)}" for name, both in runs.items())
