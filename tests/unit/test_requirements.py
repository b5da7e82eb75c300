"""``docs/design/requirements.md`` lists every requirement that a comment cites, and what it names exists."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design" / "requirements.md"
SOURCES = (ROOT / "src" / "holdfast", ROOT / "lab" / "src")
SERIES = {"S": 10, "J": 12, "F": 86, "B": 76, "D": 70}
LAWS = ("law 0", "law 1", "law 2", "law 3")

BRACKET = re.compile(r"\[([^\[\]]*)\]")
NUMBER = re.compile(r"(?<![\w.-])([A-Z]{1,2}[1-9]\d*|laws? \d+)(?!\w)")
RANGE = re.compile(r"([A-Z])(\d+)[–-]([A-Z])(\d+)")


class RequirementRow(NamedTuple):
    number: str
    cells: tuple[str, ...]


def rows() -> list[RequirementRow]:
    """The rows of all tables of requirements, the laws included."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and re.fullmatch(r"[A-Z]\d+|law \d", cells[0]):
            found.append(RequirementRow(cells[0], tuple(cells[1:])))
    return found


ROWS = rows()
LISTED = {row.number for row in ROWS}
REQUIREMENTS = [row for row in ROWS if row.number not in LAWS]


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings, docstrings among them, with the line at which each begins."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield token.start[0], token.string


def citations(text: str) -> Iterator[str]:
    """The numbers that a text cites in brackets, the ends of ranges included."""
    for bracket in BRACKET.findall(text):
        yield from NUMBER.findall(re.sub(r"(\d)[–-](?=[A-Z]\d)", r"\1, ", bracket))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It waits.  [F75]", ["F75"]),
        ("[SPS §5.7; F71–F74, B1-B3]", ["F71", "F74", "B1", "B3"]),
        ("a closed part [law 2]", ["law 2"]),
        ("[E12] and [AT3]", ["E12", "AT3"]),
        ("F75, [Fulcrum §7.2, Table 7-10], rows[0]", []),
    ],
)
def test_citations_are_numbers_in_brackets(text: str, numbers: list[str]) -> None:
    assert list(citations(text)) == numbers


def test_every_citation_is_listed() -> None:
    unknown = [
        f"{path.relative_to(ROOT)}:{line}: [{number}]"
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        for line, text in comments(path)
        for number in citations(text)
        if number not in LISTED
    ]
    assert not unknown


def test_ranges_of_citations_ascend_within_one_document() -> None:
    for source in SOURCES:
        for path in source.rglob("*.py"):
            for _, text in comments(path):
                for bracket in BRACKET.findall(text):
                    for letter, first, other_letter, last in RANGE.findall(bracket):
                        assert letter == other_letter, f"{path}: [{bracket}]"
                        assert int(first) < int(last), f"{path}: [{bracket}]"


def test_every_number_is_listed_once() -> None:
    expected = [f"{letter}{number}" for letter, last in SERIES.items() for number in range(1, last + 1)]
    assert [row.number for row in ROWS] == [*LAWS, *expected]


@pytest.mark.parametrize("row", REQUIREMENTS, ids=lambda row: row.number)
def test_a_requirement_names_a_section_code_and_tests_that_exist(row: RequirementRow) -> None:
    text, section, code, tests = row.cells
    assert text
    assert section
    for path in paths(code):
        assert locate(path, "src/holdfast").exists(), path
    for test in paths(tests):
        path, _, name = test.partition("::")
        assert locate(path, "tests").exists(), path
        if name:
            assert name in functions(locate(path, "tests")), test


def paths(cell: str) -> list[str]:
    """The paths of a cell, of which there is one at least."""
    found = re.findall(r"`([^`]+)`", cell)
    assert found, cell
    return found


def locate(path: str, folder: str) -> Path:
    """The target of a path of the page: below a folder of the repository, or in the lab."""
    return ROOT / path if path.startswith("lab/") else ROOT / folder / path


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
