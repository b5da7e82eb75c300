"""``check``, ``explain``, ``test``: what a definition says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from .options import Definition, Lets, counted, load, require_choice, warn


def check(definition: Definition, let: Lets = None) -> None:
    """Parse and type-check; list topics and subscriptions; warn of what is probably a mistake."""
    from ..lang.ops import DeclareTopic
    from ..lang.show import show

    checked = load(definition, let)
    for topic in checked.topics:
        typer.echo(show(DeclareTopic(topic)))
    for condition in checked.conditions:
        kind = "filter" if condition.momentary else "state"
        typer.echo(f"{kind} {condition.name} on {condition.topic.name}")
    for component in checked.components:
        typer.echo(f"state {component.name} from {', '.join(topic.name for topic in component.listens)}")
    for one in checked.correlations:
        typer.echo(f"correlate {one.name} from {', '.join(topic.name for topic in one.listens)}")
    for related in checked.relations:
        typer.echo(f"relate {related.name} from {', '.join(topic.name for topic in related.listens)}")
    if checked.cases:
        typer.echo(f"{counted(checked.cases, 'case')}; run with: holdfast test {definition}")
    warn(checked)
    kinds = (checked.conditions, checked.components, checked.correlations, checked.relations)
    counts = [counted(checked.topics, "topic"), counted(sum(map(len, kinds)), "subscription")]
    if checked.warnings:
        counts.append(counted(checked.warnings, "warning"))
    typer.echo(f"{definition}: {', '.join(counts)}", err=True)


def explain(
    definition: Definition,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="The engine to plan for.")] = "local",
    let: Lets = None,
    network: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Who would host which component there, and what that costs."),
    ] = None,
) -> None:
    """The plan: what is pushed where, what is kept in state."""
    from ..compilers.explain import explain as plan
    from ..compilers.explain import explain_on_spark

    require_choice("--engine", engine, ["local", "spark"])
    if network is not None:
        from ..runtimes.sensornet.hosting import explained
        from ..runtimes.sensornet.study import read

        typer.echo(explained(load(definition, let), read(network).points[0].case))
        return
    typer.echo((explain_on_spark if engine == "spark" else plan)(load(definition, let)))


def test(definition: Definition, let: Lets = None) -> None:
    """Run the given/expect cases that stand beside the definition."""
    from ..runtimes.local.cases import run_cases

    checked = load(definition, let)
    if not checked.cases:
        raise UsageError(f'{definition} has no cases; write one with: case "name" given … expect …')
    warn(checked)
    failed = set()
    for outcome in run_cases(checked):
        if not outcome.holds:
            failed.add(outcome.case.name)
            line = outcome.expect.at.line if outcome.expect.at else 0
            typer.echo(f'{definition}:{line}: case "{outcome.case.name}": {outcome}')
    typer.echo(f"{len(checked.cases) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)
