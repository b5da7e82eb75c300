"""Tables on the pages of experiments and in ``docs/experiments/README.md``, made from recorded results.

    python -m holdfast_lab.experiments.recorded docs/experiments

The command writes them; a test checks that they are current. A record is the output of ``holdfast reproduce
NAME --json``: ``NAME.json``, or ``NAME.full.json`` for a full run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .experiment import format_value

BEGIN, END = "<!-- made from the records -->", "<!-- until here -->"


class DocumentExhibit(NamedTuple):
    """Tables and figures of a document and the experiments that reproduce them, or the reason why there are
    none.
    """

    what: str
    experiments: tuple[str, ...]
    why_not: str = ""


HARDWARE = "measured on motes"
DOCUMENTS: Mapping[str, Sequence[DocumentExhibit]] = {
    "State-Filters": (DocumentExhibit("Table II", ("state-filter-table", "state-filter-redwoods")),),
    "SPS": (
        DocumentExhibit("Figures 3.2 and 3.3, Table 3.1 (that of State-Filters)", ("state-filter-table",)),
        DocumentExhibit("Figure 4.13", ("qps-subscribers",)),
        DocumentExhibit("Figure 4.14", ("qps-density",)),
        DocumentExhibit("Figures 4.15 and 4.16", ("qps-epsilon",)),
        DocumentExhibit("Tables 5.17 to 5.21", ("journey-planner",)),
        DocumentExhibit(
            "§4.3.6 and §5.7, which it does not evaluate",
            ("qps-physical", "sps-placement", "journey-network"),
        ),
    ),
    "Filter-Split-Forward": (
        DocumentExhibit("Figures 4, 5 and 12", ("fsf-small",)),
        DocumentExhibit("Figures 6, 7 and 12", ("fsf-medium",)),
        DocumentExhibit("Figures 8, 9 and 12", ("fsf-large-network",)),
        DocumentExhibit("Figures 10, 11 and 12", ("fsf-large-sources",)),
    ),
    "Fulcrum": (
        DocumentExhibit("Table 3-1", ("hop-model",)),
        DocumentExhibit("Figures 3-7 to 3-10", ("subsumption-study",)),
        DocumentExhibit("Table 6-1", (), "counts the lines of its own code"),
        DocumentExhibit("Figure 7-2, Tables 7-1 to 7-6", ("proximity",)),
        DocumentExhibit("Figures 7-3 to 7-8, Tables 7-7 to 7-9", ("traffic",)),
        DocumentExhibit("Figures 7-9 and 7-10, Table 7-10", ("memoization",)),
        DocumentExhibit("relationships of many users, which it does not evaluate", ("relate-spark",)),
    ),
    "Energy-aware DDS": (
        DocumentExhibit("Figures 22, 23 and 25", ("middleware-cost",)),
        DocumentExhibit("Figures 24, 34, 35 and 65 to 67, Table 13", (), HARDWARE),
        DocumentExhibit("Figure 30", ("ifs",)),
        DocumentExhibit("Figure 31", ("rtdds-rto",)),
        DocumentExhibit("Figure 32", ("rtdds-ipi",)),
        DocumentExhibit("Table 6", ("rtdds-rate",)),
        DocumentExhibit("Figure 33", ("rtdds-partial",)),
        DocumentExhibit("Table 9", ("oem-validation",)),
        DocumentExhibit("Figures 43 to 53", ("tinydds-modes",)),
        DocumentExhibit("Figures 54 to 56", ("energy-map",)),
        DocumentExhibit("Figures 58 to 61", ("eatdds-lifetime",)),
        DocumentExhibit(
            "appendix B and future work, which it does not evaluate",
            ("arqos", "state-on-mote", "reliability-by-transition"),
        ),
        DocumentExhibit("the air of chapters 4 and 6, which it does not describe", ("air-parts",)),
    ),
}
"""All tables and figures with results. Those about set-ups, architectures and related work are left out."""

FSF = ("fsf-small", "fsf-medium", "fsf-large-network", "fsf-large-sources")
_WHOLLY_OWN = (
    "air-parts", "arqos", "state-on-mote", "reliability-by-transition", "qps-physical", "sps-placement",
    "journey-network", "relate-spark",
)  # fmt: skip
OWN: Mapping[str, frozenset[str] | None] = {
    **dict.fromkeys(_WHOLLY_OWN),
    **dict.fromkeys(FSF, frozenset(("exact-recall", "exact-cost", "undecided"))),
}
"""Claims that no document makes; ``None`` means all claims of the experiment."""
CAUSES: Mapping[tuple[str, str], str] = {
    (
        "fsf-medium",
        "centralized-operators",
    ): "It is the least, 40 to 55 % of that of FSF, but more than half of "
    "it with 500 and 900 subscriptions: each travels to the centre by itself (3.0 operators), and the more "
    "there are the more of them others cover (FSF 7.5 operators each with 100, 5.5 with 900).",
    ("relate-spark", "processor-time"): "With 20,000 users it held, with 5.9 s beside 10.9 s. Each of the "
    "three million starts and ends has an id here, which is hashed one by one, a sixth of the steps; the "
    "join gives none.",
    ("journey-network", "placement-fewer"): "Hosts and deliveries are fewer; of the Thursday's publications "
    "0.0123 % cross, above the thesis' 0.01 %, since sensors speak once in 300 s here and at 1 Hz there: of "
    "as many readings 18 events are 0.00004 %. By hand 0.25 % cross.",
    (
        "sps-placement",
        "recovery",
    ): "A replica begins with nothing, as in the thesis: what holds then it tells "
    "anew, with a later time, or not at all. Of 43 that are lost in twenty runs 26 fall into the half minute "
    "until the host is missed, 17 are later.",
}
"""Explanations that are on the pages and not in the records; they precede the notes of the records."""


@dataclass(frozen=True)
class Found:
    """A claim in a record."""

    document: str
    experiment: str
    claim: Mapping[str, Any]

    @property
    def own(self) -> bool:
        if self.experiment not in OWN:
            return False
        among = OWN[self.experiment]
        return among is None or self.claim["id"] in among

    @property
    def cause(self) -> str:
        causes = (CAUSES.get((self.experiment, self.claim["id"]), ""), self.claim["note"])
        return " ".join(filter(None, causes))


def record(folder: Path, experiment: str) -> Mapping[str, Any] | None:
    """Return the record of an experiment, preferably of the full run; None if there is none."""
    for name in (f"{experiment}.full.json", f"{experiment}.json"):
        if (folder / name).is_file():
            found: Mapping[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
            return found
    return None


def experiments(document: str) -> list[str]:
    """Return the experiments of a document."""
    return list(dict.fromkeys(name for exhibit in DOCUMENTS[document] for name in exhibit.experiments))


def documents_of(experiment: str) -> Iterator[str]:
    """Yield the documents that an experiment belongs to."""
    return (document for document in DOCUMENTS if experiment in experiments(document))


def found(folder: Path) -> list[Found]:
    """Return every claim of every record once, with the first document of its experiment."""
    claims = []
    for document in DOCUMENTS:
        for name in experiments(document):
            stored = record(folder, name)
            if stored is not None and next(documents_of(name)) == document:
                claims += [Found(document, name, claim) for claim in stored["claims"]]
    return claims


def summary(folder: Path) -> str:
    """Return the summary: counts by document, failed claims with their causes, and all tables and figures."""
    claims = found(folder)
    return _between_marks(
        _counts(folder, claims),
        ["### What does not hold, and the measured cause"],
        _list_claims(claims, False),
        ["### What cannot be judged"],
        _list_claims(claims, None),
        ["### Every table and figure of results"],
        _exhibits(folder),
    )


def _between_marks(*parts: Sequence[str]) -> str:
    """The parts of a page, each a list of lines, with blank lines between them and the marks."""
    return "\n\n".join([BEGIN, *map("\n".join, parts), END])


def _counts(folder: Path, claims: Sequence[Found]) -> list[str]:
    judged = "hold", "do not hold", "cannot be judged"
    head = ("document", *judged, "our own claims: hold", "do not", "not recorded")
    lines = []
    for document in DOCUMENTS:
        here = [each for each in claims if each.document == document]
        lacking = [name for name in experiments(document) if record(folder, name) is None]
        theirs, ours = ([each for each in here if each.own is own] for own in (False, True))
        counts = [_count(theirs, holds) for holds in (True, False, None)]
        counts += [_count(ours, holds) for holds in (True, False)]
        lines.append((document, *map(str, counts), ", ".join(lacking) or "–"))
    return _table(head, lines)


def _count(claims: Iterable[Found], holds: bool | None) -> int:
    return sum(each.claim["holds"] is holds for each in claims)


def _list_claims(claims: Iterable[Found], holds: bool | None) -> list[str]:
    return [
        f"- [{each.experiment}]({page(each.experiment)}) `{each.claim['id']}`"
        f"{' (our own claim)' if each.own else ''}: {each.cause}"
        for each in claims
        if each.claim["holds"] is holds
    ] or ["Nothing."]


def _exhibits(folder: Path) -> list[str]:
    head = ("document", "what", "experiment", "recorded")
    return _table(
        head,
        [
            (document, exhibit.what, name and f"[{name}]({page(name)})", _how(folder, name, exhibit))
            for document, exhibits in DOCUMENTS.items()
            for exhibit in exhibits
            for name in exhibit.experiments or ("",)
        ],
    )


def _how(folder: Path, name: str, exhibit: DocumentExhibit) -> str:
    if not name:
        return f"not run again: {exhibit.why_not}"
    if record(folder, name) is None:
        return "no: see its page"
    return "the full run" if (folder / f"{name}.full.json").is_file() else "the default run"


PAGES = {
    **dict.fromkeys(("qps-subscribers", "qps-density", "qps-epsilon", "qps-physical"), "qps.md"),
    **dict.fromkeys(FSF, "fsf.md"),
}


FSF_COLUMNS = (
    "approach", "subscriptions", "subscription load", "publication load", "recall", "gaps not seen",
)  # fmt: skip
SEVERAL: Mapping[str, Sequence[str]] = {"fsf.md": FSF_COLUMNS}
"""The columns of the rows on pages with several experiments."""


def page(experiment: str) -> str:
    """Return the name of the page of an experiment."""
    return PAGES.get(experiment, f"{experiment}.md")


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    heading, *rows = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
    return [heading, f"|{'---|' * len(head)}", *rows]


# --- one experiment's page ---------------------------------------------------------------------


def sheet(stored: Mapping[str, Any]) -> str:
    """Return the part of a page about one experiment: verdicts, explanations, measurements."""
    claims = stored["claims"]
    judged = [(f"`{c['id']}`", _cell(c["paper"]), _cell(c["ours"]), VERDICTS[c["holds"]]) for c in claims]
    return _between_marks(
        _table(("claim", "the document", "ours", ""), judged),
        ["## Why it comes out so"],
        [f"- `{c['id']}`: {c['note']}" for c in claims],
        ["## What was measured"],
        [f"Mean ± standard deviation. Runs for each point: {stored['parameters']['runs for each point']}."],
        _measured_table(stored["rows"]),
    )


def sheets(stored: Mapping[str, Mapping[str, Any]], shown: Sequence[str], lacking: Sequence[str] = ()) -> str:
    """Return the part of a page about several experiments; ``shown`` are the columns, ``lacking`` experiments
    without a record.
    """
    claims = {name: {claim["id"]: claim for claim in each["claims"]} for name, each in stored.items()}
    ids = dict.fromkeys(id for each in claims.values() for id in each)
    verdicts = [(f"`{id}`", *(_verdict(each.get(id)) for each in claims.values())) for id in ids]
    notes = [
        f"- {name}, `{id}`: {c['note']}"
        for name, each in claims.items()
        for id, c in each.items()
        if c["note"]
    ]
    parts = [_table(("claim", *stored), verdicts), ["### Why it comes out so"], notes]
    for name, each in stored.items():
        rows = [row for row in each["rows"] if row["setting"] == name]
        seeds = f"Mean ± standard deviation, seeds {each['parameters']['seeds'].partition(';')[0]}."
        parts += [[f"### What was measured: {name}"], [seeds], _measured_table(rows, shown)]
    return _between_marks(*parts, *([[_not_yet(lacking)]] if lacking else []))


def _verdict(claim: Mapping[str, Any] | None) -> str:
    return "–" if claim is None else f"{VERDICTS[claim['holds']]}: {_cell(claim['ours'])}"


def missing(*names: str) -> str:
    """Return the part of a page without records."""
    return _between_marks([_not_yet(names)])


def _not_yet(names: Iterable[str]) -> str:
    causes = [f"`holdfast reproduce {name} --json > {name}.json`" for name in names]
    return f"Not recorded yet by the rules of this page: {', '.join(causes)}."


VERDICTS: Mapping[bool | None, str] = {
    True: "holds",
    False: "**does not hold**",
    None: "cannot be judged",
}


def _cell(value: Any) -> str:
    """Format a finding for a cell; nested findings are separated by semicolons."""
    if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
        return "; ".join(f"{name}: {format_value(inner)}" for name, inner in value.items())
    return format_value(value)


def _measured_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> list[str]:
    deviating = {name.removesuffix(", sd") for name in rows[0] if name.endswith(", sd")}
    shown = columns or [name for name in rows[0] if not name.endswith(", sd")]

    def cell(row: Mapping[str, Any], name: str) -> str:
        return plus_minus(row[name], row[f"{name}, sd"]) if name in deviating else format_value(row[name])

    return _table(shown, [[cell(row, name) for name in shown] for row in rows])


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """Format a mean with its standard deviation.

    >>> plus_minus(1234.5, 10.0), plus_minus(0.25, 0.0), plus_minus(None, None)
    ('1,234 ± 10', '0.25', '–')
    """
    if mean is None:
        return "–"
    return _number(mean) + (f" ± {_number(deviation)}" if deviation else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def put(text: str, made: str) -> str:
    """Replace the text between the marks of a page."""
    before, _, rest = text.partition(BEGIN)
    return before + made + rest.partition(END)[2]


def pages(folder: Path) -> dict[Path, str]:
    """Return every page with marks, and the text that belongs between them."""
    made = {folder / "README.md": summary(folder)}
    names = dict.fromkeys(name for document in DOCUMENTS for name in experiments(document))
    for called in dict.fromkeys(map(page, names)):
        path = folder / called
        if path.is_file() and BEGIN in path.read_text(encoding="utf-8"):
            made[path] = _text_between(folder, called, [name for name in names if page(name) == called])
    return made


def _text_between(folder: Path, called: str, names: Sequence[str]) -> str:
    stored = {name: record(folder, name) for name in names}
    there = {name: each for name, each in stored.items() if each is not None}
    lacking = [name for name in names if name not in there]
    if not there:
        return missing(*lacking)
    return sheets(there, SEVERAL[called], lacking) if called in SEVERAL else sheet(there[names[0]])


def main(folder: str) -> None:
    """Write all pages of a folder."""
    for path, made in pages(Path(folder)).items():
        path.write_text(put(path.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
