"""What README.md and docs/ show is what happens: commands, their output, definitions, Python, links.

A page is read from top to bottom in a folder of its own, which holds `examples` and stands beside
`shared` as the repository does.  What a fenced block means follows from its first line:

    ```hf title=warm.hf        a file of the page; every definition must pass `check`
    ```hf after=warm.hf        checked behind that file of the page; without a title, which a command
                               could name, its cases are run, too
    ```hf error                must fail with the message in the ```text block that follows
                               (with a title, commands may show it instead)
    ```csv title=x.csv         any other file of the page (also toml, yaml, jsonl, python)
    ```console                 `$ command` and exactly what it prints; a line `...` stands for any lines
    ```console exit=2          the last command ends with this status
    ```sh                      commands that must succeed, whatever they print
    ```python written title=x.py  a file that a command of the page runs
    ```python                  run; what it prints is the ```text block that follows
    ```text                    otherwise only shown, as are json, jsonl and toml without a title,
                               mermaid, which is a diagram, and lark, which other tests run
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import typer

import holdfast
from holdfast import cli
from holdfast.runtimes.local.cases import run_cases
from support.patience import PATIENCE
from support.runtimes import session
from support.together import is_on_spark

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.hf"))

EXEMPT = {
    ". .venv/bin/activate": "the environment that script/bootstrap made",
    "script/bootstrap": "makes .venv, which runs this test",
    "script/test": "runs this test",
    "holdfast bench": "measures; its numbers differ from run to run",
    "holdfast reproduce state-filter-table": "tested with the experiment, in lab/tests/experiments",
    "holdfast reproduce NAME": "a form to be filled in",
    "holdfast replay warm.hf --input readings.csv --engine spark": "20 s of start-up; run in test_spark.py",
    "pip install": "changes the environment",
    "holdfast serve": "runs until it is stopped; test_serve_page.py and its like run it",
}
"""Commands that are shown and not run, by how they begin, each with the reason."""

INSTEAD = {"script/demo": "holdfast demo", ".venv/bin/holdfast": "holdfast"}
"""Commands that are run under another name: script/demo is bootstrap and then this."""


class PageError(AssertionError):
    """A page whose output differs from the real one."""


@dataclass
class Block:
    """A fenced block: its language, the words behind it, its text, and where it begins."""

    language: str
    words: dict[str, str]
    text: str
    line: int


@dataclass
class DocumentPage:
    """A page at work in its folder."""

    name: str
    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    skipped: int = 0
    absent: set[str] = field(default_factory=set)
    """Outputs of commands that were skipped."""

    def fail(self, block: Block, message: str) -> PageError:
        return PageError(f"{self.name}:{block.line}: {message}")


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.splitlines()
    start: int | None = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
            continue
        if line != "```":
            raise PageError(f"line {i + 1}: a fence inside the block of line {start + 1}")
        language, *words = lines[start][3:].split() or [""]
        pairs = {word.partition("=")[0]: word.partition("=")[2] for word in words}
        yield Block(language, pairs, "".join(f"{row}\n" for row in lines[start + 1 : i]), start + 1)
        start = None
    if start is not None:
        raise PageError(f"line {start + 1}: a block that does not end")


def read_aloud(name: str, text: str, folder: Path) -> DocumentPage:
    """Do everything that a page shows, and compare."""
    page = DocumentPage(name, folder)
    found = list(blocks(text))
    for i, block in enumerate(found):
        follower = found[i + 1] if i + 1 < len(found) and found[i + 1].language == "text" else None
        if "title" in block.words:
            page.files[block.words["title"]] = block.text
            path = folder / block.words["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        match block.language:
            case "hf":
                _definition(page, block, follower)
            case "console":
                _commands(page, block)
            case "sh":
                for line in block.text.splitlines():
                    if command := re.sub(r"(^|\s+)#.*", "", line):
                        _run(page, block, command)
            case "python" if "written" in block.words:
                pass
            case "python":
                _python(page, block, follower)
            case "text" | "mermaid" | "lark":
                pass
            case "csv" | "toml" | "json" | "jsonl" | "yaml" if "title" in block.words:
                pass
            case "json" | "jsonl" | "toml":
                pass
            case other:
                raise page.fail(block, f"a block of the language '{other}', which nobody checks")
    return page


def _definition(page: DocumentPage, block: Block, follower: Block | None) -> None:
    before = page.files[block.words["after"]] if "after" in block.words else ""
    try:
        checked = holdfast.check(holdfast.parse(before + block.text), page.folder)
    except holdfast.DefinitionError as error:
        if "error" not in block.words:
            raise page.fail(block, str(error)) from None
        if follower is None and "title" in block.words:
            return  # a command shows the message
        if follower is None or not _alike(follower.text, f"{error}\n"):
            raise page.fail(block, f"the message is\n{error}") from None
    else:
        if "error" in block.words:
            raise page.fail(block, "there is no error in this definition")
        if "title" not in block.words:
            failed = [str(outcome) for outcome in run_cases(checked) if not outcome.holds]
            if failed:
                raise page.fail(block, "\n".join(failed))


def _python(page: DocumentPage, block: Block, follower: Block | None) -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block.text, f"{page.name}:{block.line}", "exec"), page.names)
    if printed.getvalue():
        _compare(page, block, follower.text if follower else "", printed.getvalue())


def _commands(page: DocumentPage, block: Block) -> None:
    parts = re.split(r"(?m)^\$ ", block.text)
    if parts[0].strip() or len(parts) == 1:
        raise page.fail(block, "a console block begins with '$ command'")
    for i, part in enumerate(parts[1:], 2):
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.removeprefix(">").strip()
        wanted = int(block.words.get("exit", "0")) if i == len(parts) else 0
        printed = _run(page, block, command, wanted)
        if printed is not None:
            _compare(page, block, expected, printed, command)


def _run(page: DocumentPage, block: Block, command: str, wanted: int = 0) -> str | None:
    """The output of a command; nothing if it is exempt or needs absent data."""
    if any(command.startswith(known) for known in EXEMPT):
        return None
    words = shlex.split(command)
    if ("../shared/data" in command and not (SHARED / "data").is_dir()) or page.absent.intersection(words):
        page.skipped += 1
        page.absent.update(after for word, after in pairwise(words) if word == "--output")
        return None
    for known, other in INSTEAD.items():
        command = other + command.removeprefix(known) if command.startswith(known) else command
    simple = command.startswith("holdfast ") and not re.search(
        r"[|<>;&$]", re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    )
    status, printed = _in_process(shlex.split(command)[1:]) if simple else _in_shell(command)
    if status != wanted:
        raise page.fail(block, f"'{command}' ends with status {status}, not {wanted}:\n{printed}")
    return printed


def _in_process(arguments: list[str]) -> tuple[int, str]:
    raw = io.BytesIO()
    printed = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    before, sys.argv = sys.argv, ["holdfast", *arguments]
    status = 0
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            cli.main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.argv = before
    return status, raw.getvalue().decode()


def _in_shell(command: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout.decode()


def _compare(page: DocumentPage, block: Block, expected: str, printed: str, what: str = "the block") -> None:
    if not _alike(expected, printed):
        raise page.fail(block, f"{what}\n--- shown\n{expected}--- printed\n{printed}")


def _alike(expected: str, printed: str) -> bool:
    """Equal line by line, blanks at their ends aside; a line `...` stands for any lines."""
    wanted = [line.rstrip() for line in expected.rstrip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in wanted)
    text = "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, text) is not None


# --- tests -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which a page is read: beside `shared`, with `examples`, like the repository."""
    here = tmp_path / "main"
    here.mkdir()
    (here / "examples").symlink_to(ROOT / "examples")
    if SHARED.is_dir():
        (tmp_path / "shared").symlink_to(SHARED)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_shows_the_real_output_of_its_commands(path, folder):
    if is_on_spark(path.read_text("utf-8")):
        session()  # skips the page where there is no Java
    page = read_aloud(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"), folder)
    if page.skipped:
        pytest.skip(f"{page.skipped} commands of {page.name} need ../shared/data or Java, not here")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_example_checks_without_a_warning_and_its_cases_hold(path):
    status, printed = _in_process(["check", str(path)])
    assert status == 0
    assert "warning" not in printed
    status, printed = _in_process(["test", str(path)])
    assert status == 0, printed


_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?ms)^```.*?^```$|`[^`\n]*`")


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", _CODE.sub(lambda m: m[0].strip("`"), text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(path: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    found = []
    for link in _LINK.findall(_CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        if target and not there.exists():
            found.append(link)
        elif anchor and there.suffix == ".md":
            other = there.read_text(encoding="utf-8") if target else text
            found += [] if anchor in slugs(other) else [link]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(path):
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


def test_every_exemption_is_needed():
    shown = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    lines = [line.removeprefix("$ ") for line in shown.splitlines()]
    assert [known for known in EXEMPT if not any(line.startswith(known) for line in lines)] == []


def test_every_page_can_be_reached_from_the_index():
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md" or not path.is_file():
            continue
        seen.add(path)
        links = _LINK.findall(_CODE.sub("", path.read_text(encoding="utf-8")))
        waiting += [
            (path.parent / link.partition("#")[0]).resolve()
            for link in links
            if not re.match(r"[a-z]+:|#", link)
        ]
    assert [page for page in PAGES if page not in seen] == []


def test_every_test_that_the_semantics_page_names_exists():
    folders = (ROOT / "tests", ROOT / "lab/tests")
    tests = "\n".join(path.read_text("utf-8") for folder in folders for path in folder.rglob("test_*.py"))
    named = set(
        re.findall(r"`(test_\w+)`", (ROOT / "docs/concepts/semantics.md").read_text(encoding="utf-8"))
    )
    assert len(named) > 20
    assert sorted(name for name in named if f"def {name}(" not in tests) == []


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    table = text.partition("| name | is |\n")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\w+)", row.split("|")[1])}
    assert listed == set(holdfast.__all__)


def test_every_option_is_in_the_reference():
    text = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(cli.app).commands
    options = {o for command in commands.values() for p in command.params for o in p.opts if o[0] == "-"}
    assert sorted(o for o in options if f"`{o}" not in text and f"[{o}]" not in text) == []
    assert [name for name in commands if f"\n## {name}\n" not in text] == []


# --- the checker can fail --------------------------------------------------------------------------

WARM = (
    "```hf title=warm.hf\ntopic T (value float)\nstate Warm on T [value > 25; value < 22] per source\n```\n"
)
READ = "```csv title=r.csv\ntime,source,value\n2026-01-01T00:00:00Z,a,26\n```\n"
CHECKED = "topic T (value float)\nstate Warm on T\nwarm.hf: 1 topic, 1 subscription\n"


def test_a_page_with_true_output_passes_the_check(folder):
    read_aloud(
        "page",
        f"{WARM}{READ}```console\n$ holdfast check warm.hf\n{CHECKED}"
        "$ holdfast check warm.hf\ntopic T (value float)\n...\n"
        "$ cat r.csv | head -1\ntime,source,value\n```\n"
        "```python\nprint(1 + 1)\n```\n```text\n2\n```\n"
        "```console exit=2\n$ holdfast check no\nerror: cannot read no: No such file or directory\n```\n",
        folder,
    )


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            f"{WARM}```console\n$ holdfast check warm.hf\ntopic T (value int)\n...\n```\n",
            "--- printed\ntopic T",
        ),
        (f"{WARM}```console\n$ holdfast check warm.hf\n```\n", "--- printed\ntopic T"),
        (f"{WARM}```console exit=1\n$ holdfast check warm.hf\n...\n```\n", "status 0, not 1"),
        ("```console\n$ holdfast check nothing.hf\n...\n```\n", "status 2, not 0"),
        ("```console\n$ cat nothing.csv\n...\n```\n", "status 1, not 0"),
        ("```sh\nholdfast check nothing.hf\n```\n", "status 2, not 0"),
        ("```console\nholdfast check warm.hf\n```\n", "begins with"),
        ("```hf\ntopic T (value flot)\n```\n", "flot"),
        ("```hf\nstate Warm on T [value > 25; value < 22]\n```\n", "unknown topic 'T'"),
        (f"{WARM.replace('hf ', 'hf error ')}", "no error in this definition"),
        (f'{WARM}```hf after=warm.hf\ncase "c" given T: 20 expect Warm: ingress at 0 s\n```\n', "got:"),
        ("```hf error\ntopic T (value flot)\n```\n```text\nsomething else\n```\n", "the message is"),
        ("```python\nprint(2)\n```\n```text\n3\n```\n", "--- printed\n2"),
        ("```python\nprint(2)\n```\nNothing follows.\n", "--- printed\n2"),
        ("```yaml\na: 1\n```\n", "nobody checks"),
        ("```csv\na,b\n```\n", "nobody checks"),
        ("```python\nprint(2)\n", "does not end"),
    ],
)
def test_a_page_with_false_output_fails_the_check(page, message, folder):
    with pytest.raises(PageError) as caught:
        read_aloud("page", page, folder)
    assert message in str(caught.value)


def test_blocks_without_their_data_are_skipped(folder, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SHARED", folder / "nowhere")
    page = read_aloud(
        "page",
        f"{WARM}```console\n$ holdfast replay warm.hf -i ../shared/data/x.csv --output y.csv\n3 rows read\n"
        "$ head -n 1 y.csv\nsubscription\n$ echo shown\nshown\n```\n",
        folder,
    )
    assert page.skipped == 2


def test_a_python_block_that_fails_is_a_failure(folder):
    with pytest.raises(ZeroDivisionError):
        read_aloud("page", "```python\n1 / 0\n```\n", folder)


def test_a_link_without_a_target_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A `heading`: here\n", encoding="utf-8")
    page = tmp_path / "page.md"
    good = "# Own\n[a](there.md) [b](there.md#a-heading-here) [c](https://a.org/x) [d](#own) `[e](no.md)`"
    assert broken_links(page, good) == []
    assert broken_links(page, "[a](here.md) [b](there.md#nowhere) [c](#own)") == [
        "here.md",
        "there.md#nowhere",
        "#own",
    ]
