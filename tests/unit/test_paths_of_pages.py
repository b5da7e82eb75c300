"""Pages that explain the code name files that exist, and follow an event through few of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOW_IT_WORKS = ROOT / "docs" / "concepts" / "how-it-works.md"
NOTES = sorted((ROOT / "docs" / "design").glob("00*.md"))
PAGES = [HOW_IT_WORKS, ROOT / "CONTRIBUTING.md", *(note for note in NOTES if note.name >= "0006")]
MOST = 12
"""Files through which a reader must be able to follow an event."""

_PATH = re.compile(r"`([a-z_]+(?:/[\w.-]+)+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    # Paths are below the package, or below the repository where they begin with one of its folders.
    homes = (ROOT / "src" / "holdfast", ROOT)
    missing = [path for path in _PATH.findall(text) if not any((home / path).exists() for home in homes)]
    assert missing == []


def test_an_event_passes_at_most_twelve_files_in_every_runtime() -> None:
    text = HOW_IT_WORKS.read_text(encoding="utf-8")
    section = text[text.index("## The path of one event") : text.index("## A model")]
    tables = {
        title: part for title, *_, part in re.findall(r"(?ms)^### ([^\n]+)\n(.*?)(?=^### |\Z)", section)
    }
    rows = {title: len(re.findall(r"(?m)^\| `", part)) for title, part in tables.items()}
    assert len(rows) == 7
    assert all(0 < count <= MOST for count in rows.values()), rows
