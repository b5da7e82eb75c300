"""The direction of imports: which folder may know which. The table here is the one that rules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

import pytest
from setuptools import find_packages

from support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"": ("holdfast", ROOT / "src"), "lab/": ("holdfast_lab", ROOT / "lab" / "src")}
"""How paths begin here -> the package, and where it is."""

# Folder (or module at the top) -> the parts of ours that it may import besides itself and `errors`.
BASIS = frozenset({"model", "kernels"})
SEMANTICS = BASIS | {"engine", "lang", "kinds", "definition", "plan"}
NETWORK = frozenset(
    f"network/{part}" for part in ("protocols", "sim", "conditions", "overlay", "motes", "estimate")
)
PRODUCT = SEMANTICS | {"files", "runtimes/table", "runtimes/local", "runtimes/spark"} | NETWORK
MAY_IMPORT: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "kernels": frozenset(),
    "model": frozenset(),
    "files": frozenset({"model"}),
    "engine": BASIS,
    "lang": BASIS | {"engine"},
    "kinds": BASIS | {"engine", "lang"},
    "definition": BASIS | {"engine", "lang", "kinds"},
    "plan": BASIS | {"engine", "lang", "kinds", "definition"},
    "runtimes/__init__": frozenset(),
    "network/__init__": frozenset(),
    "runtimes/table": SEMANTICS | {"files"},
    "runtimes/local": SEMANTICS | {"files", "runtimes/table"},
    "runtimes/spark": SEMANTICS | {"files", "runtimes/table"},
    "network/sim": frozenset({"model"}),
    "network/protocols": BASIS | {"engine"},
    "network/conditions": SEMANTICS | {"network/protocols"},
    "network/overlay": SEMANTICS | {"files", "network/protocols", "network/sim", "network/conditions"},
    "network/motes": SEMANTICS | {"files", "network/protocols", "network/sim", "network/conditions"},
    "network/estimate": SEMANTICS | {"network/protocols", "network/sim", "network/motes"},
    "demo": PRODUCT,
    "service": PRODUCT,
    "plot": PRODUCT,
    "importers": frozenset({"definition", "kernels", "kinds", "lang", "model"}),
    "lab/experiments": PRODUCT,
    "lab/benchmarks": PRODUCT,
}
GROUPS = {"network", "runtimes"}
"""Folders whose parts have a line each."""
FREE = {
    "__init__",
    "__main__",
    "cli",
    "pytest_plugin",
    "spark",
    "lab/__init__",
}  # what is at the top and imports anything
KERNELS_BUILD_ON = {"numpy", "numba"}
SPARK_LIVES_IN = ("runtimes/spark/", "runtimes/spark.py", "lab/")

HEAVY = {"pyspark", "numba", "pandas", "matplotlib", "shapely", "polars", "duckdb"}
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}


@dataclass(frozen=True)
class Import:
    """An imported name, absolute and dotted, and its line."""

    line: int
    name: str


parsed = cache(ast.parse)


def nodes(tree: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """All nodes of a module; optionally without those that only a type checker reads."""
    waiting = deque([tree])
    while waiting:
        yield (node := waiting.popleft())
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                waiting += [*(node.body if for_types else ()), *node.orelse]
            case _:
                waiting += ast.iter_child_nodes(node)


def imports(code: str, package: str, for_types: bool = True) -> Iterator[Import]:
    """Every import in a module of ``package``: at the top, inside functions, for types, by name."""
    for node in nodes(parsed(code), for_types):
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = resolve_name("." * level + (module or ""), package)
                yield from (Import(node.lineno, f"{origin}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(node.lineno, resolve_name(name, package))


def violations(path: str, code: str) -> list[str]:
    """The forbidden imports of the module at ``path`` (relative to ``src/holdfast``; those of the lab
    start with ``lab/``), one line each."""
    package = PACKAGES["lab/" if path.startswith("lab/") else ""][0]
    parts = folder(package, path.removeprefix("lab/").removesuffix(".py").split("/"))
    if parts[0] in FREE:
        own_rule = None
    elif parts[0] in MAY_IMPORT:
        own_rule = MAY_IMPORT[parts[0]]
    else:
        return [f"{path}:1: '{parts[0]}' is not in the table; allowed are {join_names(MAY_IMPORT)}"]

    found = []
    for imported in imports(code, ".".join([package, *path.removeprefix("lab/").split("/")[:-1]])):
        top, *inner = imported.name.split(".")
        if top == "holdfast_lab" and package == "holdfast":
            reason = "holdfast: nothing of the lab, which is found by entry point"
        elif top in {"holdfast", "holdfast_lab"}:
            reason = None if own_rule is None else wrong_direction(parts, folder(top, inner), own_rule)
        elif top == "pyspark":
            reason = (
                None if path.startswith(SPARK_LIVES_IN) else f"pyspark: {join_names(SPARK_LIVES_IN)} only"
            )
        elif parts[0] == "kernels" and top not in KERNELS_BUILD_ON | sys.stdlib_module_names:
            reason = f"kernels: {join_names(KERNELS_BUILD_ON)} only"
        else:
            reason = None
        if reason:
            found.append(f"{path}:{imported.line}: imports {imported.name}; allowed for {reason}")
    return found


def folder(package: str, parts: list[str]) -> list[str]:
    """The parts of a module's name, the first as the table has it."""
    first, *rest = parts or ["__init__"]
    if package == "holdfast_lab":
        return [f"lab/{first}", *rest]
    return [f"{first}/{rest[0]}", *rest[1:]] if first in GROUPS and rest else [first, *rest]


def wrong_direction(parts: list[str], target: list[str], allowed: frozenset[str]) -> str | None:
    """The reason why a module may not import ``holdfast.<target>``, as a sentence with the allowed
    imports."""
    here, there = parts[0], target[0]
    if there in {here, "errors"} | allowed:
        return None
    return f"{here}: itself, {join_names(allowed | {'errors'})}"


def join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


@cache
def modules() -> dict[str, str]:
    return {
        start + module.relative_to(source / package).as_posix(): module.read_text("utf-8")
        for start, (package, source) in PACKAGES.items()
        for module in (source / package).rglob("*.py")
    }


def test_imports_follow_the_table():
    sources = modules()
    assert {"__init__.py", "errors.py", "model/__init__.py", "lab/experiments/registry.py"} <= sources.keys()
    found = [line for path, code in sorted(sources.items()) for line in violations(path, code)]
    assert not found, "imports against the table:\n" + "\n".join(found)


# --- circles ---------------------------------------------------------------------------------------


def circles(sources: dict[str, str]) -> list[set[str]]:
    """The largest sets of modules of which each leads to each by imports, at the top or inside functions.

    A name that a package's ``__init__`` passes on is an import of that ``__init__``; to import a module
    inside a package is not.
    """
    packages = {
        ".".join(path.removesuffix(".py").split("/")).removesuffix("__init__").strip("."): path
        for path in sources
    }
    known = {name: reachable(packages, path, sources[path]) - {name} for name, path in packages.items()}
    leads_to = {name: closure(known, name) for name in known}
    found = {frozenset(other for other in leads_to[name] if name in leads_to[other]) for name in known}
    return sorted((set(circle) for circle in found if circle), key=sorted)


def reachable(packages: Iterable[str], path: str, code: str) -> set[str]:
    """The modules of ours that a module imports."""
    package = PACKAGES["lab/" if path.startswith("lab/") else ""][0]
    inside = ".".join([package, *path.removeprefix("lab/").split("/")[:-1]])
    found = set()
    for imported in imports(code, inside, for_types=False):
        top, *parts = imported.name.split(".")
        own = {"holdfast": [], "holdfast_lab": ["lab"]}.get(top)
        if own is not None:
            whole = own + parts
            names = (".".join(whole[:size]) for size in range(len(whole), -1, -1))
            found.add(next(name for name in names if name in packages))
    return found


def closure(known: dict[str, set[str]], start: str) -> set[str]:
    """All modules that a module imports, directly or indirectly."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = known[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_modules_have_no_circular_imports():
    assert circles(modules()) == []


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({"a.py": "from . import b", "b.py": "def f():\n    from .a import x"}, [{"a", "b"}]),
        ({"a.py": "import holdfast.b", "b.py": "from .c import x", "c.py": "from holdfast.a import y"},
         [{"a", "b", "c"}]),
        ({"a.py": "from .b import x", "b.py": "if TYPE_CHECKING:\n    from .a import A"}, []),
        ({"p/__init__.py": "from .a import x", "p/a.py": "from .b import y", "p/b.py": ""}, []),
        ({"p/__init__.py": "from .a import x", "p/a.py": "from .b import y", "p/b.py": "from . import x"},
         [{"p", "p.a", "p.b"}]),
        ({"lab/a.py": "from .b import x", "lab/b.py": "import_module('holdfast_lab.a')", "a.py": ""},
         [{"lab.a", "lab.b"}]),
        ({"a.py": "from . import b, d", "b.py": "from . import a", "c.py": "from . import a", "d.py": ""},
         [{"a", "b"}]),
    ],
)  # fmt: skip
def test_the_check_for_circular_imports_finds_them(sources, found):
    assert circles({"__init__.py": "", "lab/__init__.py": "", **sources}) == found


# --- names and weight ------------------------------------------------------------------------------


def test_module_names_describe_their_contents():
    vague = [path for path in modules() if SAYS_NOTHING & set(path.removesuffix(".py").split("/"))]
    assert not vague, f"name these after what they hold: {join_names(vague)}"


ABOUT_ONE_KIND = {
    # Python functions that build statements
    "definition/app.py": {"component", "correlation", "state"},
    # `holdfast tune` and the covering of states
    "definition/tune.py": {"state"},
    "definition/cover_text.py": {"state"},
    "plan/advise/rows.py": {"state"},
    # commands about relationships, hosts of components, and covering
    "cli/covering.py": {"state"},
    "cli/hosting.py": {"component"},
    "cli/overlay.py": {"relation"},
    "cli/relate.py": {"relation"},
    "cli/rings.py": {"relation"},
    "network/overlay/commands/agent_requests.py": {"relation"},
    # motes evaluate states; `pass every reading` is a state
    "network/motes/conditions.py": {"state"},
    "network/motes/dds.py": {"state"},
    "network/overlay/requests.py": {"state"},
}
"""Modules outside `kinds` for a feature that only one kind has -> the kinds that they may import."""
OF_ALL_KINDS = {"kind", "registry", "revision", "derived", "clauses", "checks"}
BUILDS_ON = {"levels": {"state"}, "component": {"state"}}
"""Levels contain states; a component is printed as the equivalent state."""


def questions_by_kind(path: str, code: str) -> list[str]:
    """The kinds that a module imports though it must treat all alike."""
    package = PACKAGES[""][0] + "." + path.removesuffix(".py").replace("/", ".")
    folder, _, rest = path.partition("/")
    own = rest.split("/")[0] if folder == "kinds" else ""
    allowed = OF_ALL_KINDS | {own} | BUILDS_ON.get(own, set()) | ABOUT_ONE_KIND.get(path, set())
    inside = package if path.endswith("__init__.py") else package.rpartition(".")[0]
    named = (one.name.split(".") for one in imports(code, inside.removesuffix(".__init__")))
    return sorted(
        {name[2] for name in named if name[:2] == ["holdfast", "kinds"] and len(name) > 2} - allowed
    )


def test_only_a_kind_and_the_registry_import_the_package_of_a_kind():
    """Everything else asks for traits and optional forms (`kinds/kind.py`), so that a new kind changes
    nothing there."""
    found = {
        path: kinds
        for path, code in modules().items()
        if not path.startswith("lab/") and path != "kinds/registry.py"
        if (kinds := questions_by_kind(path, code))
    }
    assert found == {}


@pytest.mark.parametrize("path", sorted(ABOUT_ONE_KIND))
def test_every_module_that_may_import_a_kind_does(path):
    kinds = ABOUT_ONE_KIND.pop(path)
    try:
        assert set(questions_by_kind(path, modules()[path])) == kinds
    finally:
        ABOUT_ONE_KIND[path] = kinds


@pytest.mark.parametrize(
    ("path", "code", "kinds"),
    [
        ("runtimes/local/engine.py", "from ...kinds.state.syntax import DefineState", ["state"]),
        ("service/core.py", "def f():\n    from ..kinds import mute", ["mute"]),
        ("kinds/count/machine.py", "from ..fold.machine import FoldMachine", ["fold"]),
        ("kinds/levels/machine.py", "from ..state.toggle import ToggleMachine", []),
        ("plan/compile.py", "from ..kinds.registry import kind\nfrom ..kinds.kind import Kind", []),
    ],
)
def test_the_check_finds_imports_of_kinds(path, code, kinds):
    assert questions_by_kind(path, code) == kinds


BEHIND_SPARK = {"_jdf", "_jvm", "_sc", "_jsc", "_jsparkSession", "_jconf", "sparkContext", "java_exception"}


def test_only_one_module_uses_names_behind_the_public_interface_of_spark():
    """Elsewhere a session of Spark Connect must work, which has none of them."""
    found = [
        f"{path}:{node.lineno}: {node.attr}"
        for path, code in modules().items()
        if path.startswith("runtimes/spark/") and path != "runtimes/spark/classic.py"
        for node in ast.walk(parsed(code))
        if isinstance(node, ast.Attribute) and node.attr in BEHIND_SPARK
    ]
    found += [
        path
        for path, code in modules().items()
        if path != "runtimes/spark/classic.py" and re.search(r"(from|import) py4j\b", code)
    ]
    assert found == []


def test_only_that_module_imports_private_names_of_other_libraries():
    private = [
        f"{path}:{node.lineno}: {node.module}.{alias.name}"
        for path, code in modules().items()
        if path != "runtimes/spark/classic.py"
        for node in ast.walk(parsed(code))
        if isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__"
        for alias in node.names
        if re.search(r"(^|\.)_(?!_)", f"{node.module}.{alias.name}")
    ]
    assert private == []


def test_every_module_can_be_imported():
    for package, source in PACKAGES.values():
        for module in (source / package).rglob("*.py"):
            *parents, name = module.relative_to(source).with_suffix("").parts
            if name != "__main__":
                import_module(".".join(parents if name == "__init__" else [*parents, name]))


def test_importing_holdfast_is_light():
    code = "import sys; from holdfast import Engine, parse, replay; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert not HEAVY & set(loaded.stdout.split())


@pytest.mark.parametrize(
    ("path", "code", "imported"),
    [
        ("model/event.py", "from ..lang import ops", "holdfast.lang.ops"),
        ("model/event.py", "import holdfast.lang.ops", "holdfast.lang.ops"),
        ("model/event.py", "from holdfast import Event", "holdfast.Event"),
        ("model/event.py", "import holdfast", "holdfast"),
        ("model/__init__.py", "from .. import lang", "holdfast.lang"),
        ("errors.py", "from .model.event import Event", "holdfast.model.event.Event"),
        (
            "lang/parse.py",
            "def f():\n    from ..kinds.state.toggle import step",
            "holdfast.kinds.state.toggle.step",
        ),
        ("lang/parse.py", "if TYPE_CHECKING:\n    from .. import plan", "holdfast.plan"),
        ("lang/parse.py", "importlib.import_module('..files', __package__)", "holdfast.files"),
        ("files/read.py", "from ..lang.ops import Topic", "holdfast.lang.ops.Topic"),
        ("engine/machine.py", "from ..lang import ops", "holdfast.lang.ops"),
        (
            "kinds/component/smc.py",
            "from ...network.protocols import dds",
            "holdfast.network.protocols.dds",
        ),
        ("plan/pushdown.py", "from ..runtimes.local import Engine", "holdfast.runtimes.local.Engine"),
        ("runtimes/local.py", "from .spark import session", "holdfast.runtimes.spark.session"),
        ("runtimes/local.py", "from . import spark", "holdfast.runtimes.spark"),
        ("runtimes/spark/replay.py", "from ..local import Engine", "holdfast.runtimes.local.Engine"),
        ("runtimes/__init__.py", "from .local import Engine", "holdfast.runtimes.local.Engine"),
        ("runtimes/local.py", "from ..cli import main", "holdfast.cli.main"),
        ("service/http.py", "from holdfast_lab import experiments", "holdfast_lab.experiments"),
        ("cli/lab.py", "import_module('holdfast_lab.benchmarks')", "holdfast_lab.benchmarks"),
        ("lab/experiments/table.py", "from ..benchmarks import timed", "holdfast_lab.benchmarks.timed"),
        ("lab/benchmarks/spark.py", "from holdfast.cli.live import streaming", "holdfast.cli.live.streaming"),
        ("kernels/toggle.py", "import pyarrow as pa", "pyarrow"),
        ("kernels/toggle.py", "from ..model import batch", "holdfast.model.batch"),
        ("runtimes/local.py", "import pyspark.sql", "pyspark.sql"),
        ("cli/live.py", "def f():\n    from pyspark.sql import SparkSession", "pyspark.sql.SparkSession"),
    ],
)
def test_the_check_of_imports_finds_violations(path, code, imported):
    line = 1 + code.count("\n")
    (message,) = violations(path, code)
    assert message.startswith(f"{path}:{line}: imports {imported}; allowed for ")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("model/event.py", "from .topic import Topic\nfrom ..errors import UsageError\nimport pyarrow"),
        ("lang/check.py", "from . import ops\nfrom ..model.topic import Topic\nfrom .. import errors"),
        ("kernels/toggle.py", "import math, numpy as np\nfrom numba import njit\nfrom .match import match"),
        ("runtimes/spark/frames/rows.py", "from pyspark.sql import Column\nfrom ....lang import ops"),
        (
            "runtimes/local/engine.py",
            "from .late import Late\nfrom ...lang import ops\nfrom ...files import read",
        ),
        ("runtimes/local/engine.py", "from ..local.late import Late"),
        ("runtimes/spark/replay.py", "import pyspark\nfrom . import session\nfrom ...files import sort"),
        ("lab/experiments/table.py", "import pyspark\nfrom holdfast.runtimes.local import Engine"),
        ("lab/experiments/dds/arqos.py", "from ..experiment import Claim\nfrom . import measure"),
        ("__init__.py", "from .runtimes.local import Engine"),
        ("cli/__init__.py", "from .. import demo, service\nimport holdfast"),
    ],
)
def test_the_check_of_imports_accepts_allowed_imports(path, code):
    assert violations(path, code) == []


@pytest.mark.parametrize(
    ("project", "package", "inside"),
    [("", "holdfast", set()), ("lab", "holdfast_lab", {"experiments", "benchmarks"})],
)
def test_each_wheel_contains_only_its_own_package(project, package, inside):
    settings = tomllib.loads((ROOT / project / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    (where,) = settings["packages"]["find"]["where"]
    found = [name.split(".") for name in find_packages(ROOT / project / where)]
    assert {top for top, *_ in found} == {package}
    assert {"experiments", "benchmarks"} & {part for name in found for part in name} == inside


def test_a_folder_outside_the_table_is_found():
    (message,) = violations("plumbing/pipe.py", "")
    assert "'plumbing' is not in the table" in message
