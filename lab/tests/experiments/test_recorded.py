"""The summary of the experiments is generated from the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast_lab.experiments.recorded import (
    BEGIN,
    DOCUMENTS,
    END,
    OWN,
    experiments,
    found,
    main,
    page,
    pages,
    put,
    record,
    sheet,
    sheets,
    summary,
)
from holdfast_lab.experiments.registry import MODULES

PAGES = Path(__file__).resolve().parents[3] / "docs" / "experiments"


def test_the_pages_agree_with_the_records():
    made = pages(PAGES)
    assert PAGES / "README.md" in made
    for path, text in {path: path.read_text(encoding="utf-8") for path in made}.items():
        assert put(text, made[path]) == text, "python -m holdfast_lab.experiments.recorded docs/experiments"


def test_every_experiment_reproduces_a_document_and_has_a_page():
    shown = {name for document in DOCUMENTS for name in experiments(document)}
    assert shown == set(MODULES) >= {*OWN}
    assert all((PAGES / page(name)).is_file() for name in shown)
    assert all(exhibit.experiments or exhibit.why_not for some in DOCUMENTS.values() for exhibit in some)


def test_failed_and_undecided_claims_have_a_cause():
    assert [
        each.claim["id"] for each in found(PAGES) if each.claim["holds"] is not True and not each.cause
    ] == []


def claim(id: str, holds: bool | None) -> dict[str, object]:
    return {"id": id, "claim": id, "paper": 1, "ours": 2, "holds": holds, "note": f"Because of {id}."}


def test_verdicts_are_counted_by_document_and_our_own_claims_separately(tmp_path):
    stored = {"claims": [claim("a", True), claim("b", False), claim("c", None)]}
    (tmp_path / "hop-model.json").write_text(json.dumps(stored))
    (tmp_path / "arqos.json").write_text(json.dumps({"claims": [claim("d", False)]}))
    lines = summary(tmp_path).splitlines()
    (fulcrum,) = (line for line in lines if line.startswith("| Fulcrum | 1 |"))
    assert fulcrum.startswith("| Fulcrum | 1 | 1 | 1 | 0 | 0 | subsumption-study, ")
    (dds,) = (line for line in lines if line.startswith("| Energy-aware DDS | 0 |"))
    assert dds.startswith("| Energy-aware DDS | 0 | 0 | 0 | 0 | 1 | ")
    assert "- [hop-model](hop-model.md) `b`: Because of b." in lines
    assert "- [arqos](arqos.md) `d` (our own claim): Because of d." in lines
    assert (lines[0], lines[-1]) == (BEGIN, END)


@pytest.mark.parametrize("full", [True, False])
def test_the_full_run_counts_if_there_is_one(tmp_path, full):
    (tmp_path / "traffic.json").write_text('{"claims": []}')
    if full:
        (tmp_path / "traffic.full.json").write_text(json.dumps({"claims": [claim("a", True)]}))
    assert len(record(tmp_path, "traffic")["claims"]) == full
    assert record(tmp_path, "proximity") is None


def test_a_page_lists_the_claims_their_causes_and_the_measurements():
    row = {"air": "fitted", "IPI s": 5, "PDR": 0.98765, "PDR, sd": 0.01, "DMR": None, "DMR, sd": None}
    stored = {"parameters": {"runs for each point": "two"}, "rows": [row], "claims": [claim("b", False)]}
    lines = sheet(stored).splitlines()
    assert "| `b` | 1 | 2 | **does not hold** |" in lines
    assert "- `b`: Because of b." in lines
    assert lines[lines.index("| air | IPI s | PDR | DMR |") + 2] == "| fitted | 5 | 0.988 ± 0.01 | – |"


def test_a_page_without_a_record_names_the_command_for_one(tmp_path):
    (tmp_path / "ifs.md").write_text(f"# ifs\n\n{BEGIN}\nstale\n{END}\n\nmore\n")
    (tmp_path / "README.md").write_text(f"{BEGIN}{END}")
    main(str(tmp_path))
    text = (tmp_path / "ifs.md").read_text()
    assert "`holdfast reproduce ifs --json > ifs.json`" in text
    assert text.endswith(f"{END}\n\nmore\n")
    assert "stale" not in text


def test_a_page_with_several_experiments_has_their_claims_side_by_side():
    row = {"setting": "one", "approach": "fsf", "load": 12.5, "load, sd": 2.0, "by seed": [[1], [2]]}
    other = row | {"setting": "a variant"}
    stored = {
        "parameters": {"seeds": "100 to 104; each draws"},
        "rows": [row, other],
        "claims": [claim("b", False)],
    }
    two = stored | {"rows": [row | {"setting": "two"}], "claims": [claim("c", True)]}
    lines = sheets({"one": stored, "two": two}, ("approach", "load")).splitlines()
    assert "| `b` | **does not hold**: 2 | – |" in lines
    assert "| `c` | – | holds: 2 |" in lines
    assert "- one, `b`: Because of b." in lines
    assert lines.count("| fsf | 12.5 ± 2 |") == 2
    assert "Mean ± standard deviation, seeds 100 to 104." in lines
