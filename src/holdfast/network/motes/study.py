"""A study: the networks that a scenario file describes (several with ``sweep``), each run with
several seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import islice, product
from operator import getitem
from pathlib import Path
from typing import Any

from ...errors import DefinitionError
from .case import SimulationCase
from .convert import convert
from .document import Document, load, parse
from .fault import Route, ScenarioError
from .run import check
from .scenario import Scenario

_ABOUT_ALL = ("seeds", "sweep", "trace")
"""The keys of a file that are not part of its scenario."""
MOST_RUNS = 100_000
"""The greatest number of runs of a study."""


@dataclass(frozen=True)
class Point:
    """One network of a study: the settings of the sweep, and the complete case."""

    settings: Mapping[str, Any]
    case: SimulationCase


@dataclass(frozen=True)
class Study:
    """The networks of a study, and the seeds with which each network runs."""

    name: str
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    trace: bool
    """Whether to trace the first run."""
    text: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that the sweep changes."""
        return tuple(dict.fromkeys(name for point in self.points for name in point.settings))


def read(path: Path, definition: Path | None = None, lets: Mapping[str, Any] | None = None) -> Study:
    """Read a study from a scenario file. Paths in it are relative to the file's folder.

    ``definition`` replaces the definition of the file, and ``lets`` the parameters of the definition.
    """
    document = load(path)
    if definition is not None and isinstance(document.values, dict):
        values = {**document.values, "definition": str(definition.resolve())}
        document = Document(values, document.places, document.keys, document.text, document.file)
    return _study(document, path.parent, path.stem, lets)


def read_text(text: str, folder: Path = Path()) -> Study:
    """Read a study from the text of a scenario file. Paths in it are relative to ``folder``."""
    return _study(parse(text), folder, "scenario")


def _study(document: Document, folder: Path, name: str, lets: Mapping[str, Any] | None = None) -> Study:
    try:
        seeds, trace, settings = _read_options(document.values)
    except ScenarioError as fault:
        raise document.error_at(fault) from None
    points = tuple(_point(document, folder, seeds, setting, lets) for setting in settings)
    return Study(points[0].case.scenario.name or name, points, seeds, trace, document.text)


def _read_options(values: Any) -> tuple[tuple[int, ...], bool, list[dict[Route, Route]]]:
    """Return the seeds, whether to trace, and the settings of each point."""
    if not isinstance(values, dict):
        hint = "'holdfast sim --example' prints a scenario to copy."
        raise ScenarioError("expected keys: nodes, traffic, duration …", hint=hint)
    seeds, trace = _seeds(values.get("seeds", 1)), values.get("trace", False)
    if not isinstance(trace, bool):
        raise ScenarioError("expected true or false", ("trace",))
    settings = list(islice(_settings(values), MOST_RUNS // len(seeds) + 1))
    if len(settings) * len(seeds) > MOST_RUNS:
        raise ScenarioError(f"more than {MOST_RUNS:,} runs; sweep over less", ("sweep",))
    return seeds, trace, settings


def _point(
    document: Document,
    folder: Path,
    seeds: tuple[int, ...],
    setting: Mapping[Route, Route],
    lets: Mapping[str, Any] | None,
) -> Point:
    """Return a point of the study: the document with the settings of the sweep, as a case."""
    changed, settings = document, {}
    for route, written in setting.items():
        value = reduce(getitem, written, document.values)
        changed = changed.put(route, value, written)
        settings[".".join(map(str, route))] = value
    values = {key: value for key, value in changed.values.items() if key not in _ABOUT_ALL}
    changed = Document(values, changed.places, changed.keys, changed.text, changed.file)
    scenario = convert(changed, Scenario)
    try:
        return Point(settings, check(scenario, folder, seeds, lets))
    except DefinitionError as error:
        raise (changed.error_inside(("definition",), error) if error.file is None else error) from None
    except ScenarioError as fault:
        where = ", ".join(f"{name} {label(value)}" for name, value in settings.items())
        fault.message += f" (with {where})" if where else ""
        raise changed.error_at(fault) from fault


def label(value: Any) -> str:
    """Return a short text for a value of a sweep.

    >>> label("2 s"), label({"kind": "csma", "retries": 0}), label([1, 2])
    ('2 s', 'csma retries=0', '1, 2')
    """
    match value:
        case dict():
            rest = [f"{key}={label(v)}" for key, v in value.items() if key != "kind"]
            return " ".join([*([str(value["kind"])] if "kind" in value else []), *rest])
        case list():
            return ", ".join(map(label, value))
        case bool():
            return "yes" if value else "no"
    return str(value)


def _seeds(given: Any) -> tuple[int, ...]:
    """Return the seeds. ``seeds: 5`` means 1 to 5; a list is used unchanged."""
    match given:
        case bool():
            pass
        case int() if 1 <= given <= 10_000:
            return tuple(range(1, given + 1))
        case [*seeds] if seeds and all(type(seed) is int for seed in seeds):
            if len(set(seeds)) < len(seeds):
                raise ScenarioError("a seed is there twice; it would give the same run again", ("seeds",))
            return tuple(seeds)
    raise ScenarioError("expected how many runs there are, or a list of whole numbers", ("seeds",))


# The sweep.


def _settings(values: dict[str, Any]) -> Iterator[dict[Route, Route]]:
    """Yield, for each point, the settings that change, each with the position of its new value in the
    document.
    """
    sweep = values.get("sweep", {})
    if isinstance(sweep, list) and sweep:
        for i, together in enumerate(sweep):
            if not isinstance(together, dict):
                raise ScenarioError("expected a mapping, such as nodes.rows: 5", ("sweep", i))
            yield {_target(values, name, ("sweep", i, name)): ("sweep", i, name) for name in together}
        return
    if not isinstance(sweep, dict):
        raise ScenarioError("expected a mapping, such as traffic.0.every: [2 s, 4 s]", ("sweep",))
    axes = []
    for name, several in sweep.items():
        target = _target(values, name, ("sweep", name))
        if not isinstance(several, list) or not several:
            raise ScenarioError("expected a list of values, such as [2 s, 4 s]", ("sweep", name))
        axes.append([(target, ("sweep", name, i)) for i in range(len(several))])
    for choice in product(*axes):
        yield dict(choice)


def _target(values: Any, name: str, written: Route) -> Route:
    """Return the route of the value that a name such as ``traffic.0.every`` denotes."""
    route = tuple(int(step) if step.isdecimal() else step for step in name.split("."))
    there: Any = values
    for i, step in enumerate(route):
        last = i == len(route) - 1
        if isinstance(there, list) and isinstance(step, int) and step < len(there):
            there = there[step]
        elif isinstance(there, dict) and isinstance(step, str) and (step in there or last):
            there = there.get(step)
        else:
            raise _nowhere(route[: i + 1], written)
    if route[0] in _ABOUT_ALL:
        raise _nowhere(route[:1], written)
    return route


def _nowhere(route: Route, written: Route) -> ScenarioError:
    where = ".".join(map(str, route))
    hint = "A name leads to what stands in the file, places in lists count from 0: traffic.0.every"
    return ScenarioError(f"there is no '{where}' to change", written, hint=hint, key=True)
