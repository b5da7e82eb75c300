"""``check``, ``explain``, ``test``: what a definition says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from .options import Definition, Lets, counted, load, require_choice, warn

if TYPE_CHECKING:
    from ..lang.condition import Checked


def check(
    definition: Definition,
    let: Lets = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OLD.hf", help="What would become of what runs under this definition."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="With --against: of how many, by the snapshot of an engine or a live query's checkpoint.",
        ),
    ] = None,
) -> None:
    """Parse and type-check; list topics and subscriptions; warn of what is probably a mistake."""
    from ..compilers.families import conditions, outlook

    checked = load(definition, let)
    for line in (*_listed(checked), *_bracketed(checked)):
        typer.echo(line)
    if checked.cases:
        typer.echo(f"{counted(checked.cases, 'case')}; run with: holdfast test {definition}")
    if state is not None and against is None:
        raise UsageError("--state is of what runs: say with --against under which definition")
    if against is not None:
        from .edit import forecast

        numbers = {} if state is None else forecast(against, definition, state, let)
        for name, prospect in outlook(load(against, let), checked):
            typer.echo(f"{name}: {prospect}{f'; {numbers[name]}' if name in numbers else ''}")
    warn(checked)
    subscriptions = len(conditions(checked)) - len(checked.muted)
    counts = [counted(checked.topics, "topic"), counted(subscriptions, "subscription")]
    if checked.warnings:
        counts.append(counted(checked.warnings, "warning"))
    typer.echo(f"{definition}: {', '.join(counts)}", err=True)


def _listed(checked: Checked) -> Iterator[str]:
    """The topics and subscriptions of a definition, a line for each."""
    from ..lang.ops import DeclareTopic
    from ..lang.show import show

    for topic in checked.topics:
        yield show(DeclareTopic(topic))
    for condition in checked.conditions:
        kind = "filter" if condition.momentary else "state"
        yield f"{kind} {condition.name} on {condition.topic.name}"
    for guarded in checked.guarded:
        yield f"state {guarded.name} on {guarded.topic.name}"
    for levels in checked.leveled:
        rungs = " < ".join(rung.name for rung in levels.rungs)
        yield f"levels {levels.name} on {levels.listens[0].name}: {rungs}"
    for word, some, how in (
        ("state", checked.components, "from"),
        ("correlate", checked.correlations, "from"),
        ("relate", checked.relations, "from"),
        ("state", checked.tallied, "over"),
        ("correlate", checked.aligned, "over"),
        ("fold", checked.folded, "over"),
    ):
        for one in some:
            yield f"{word} {one.name} {how} {', '.join(topic.name for topic in one.listens)}"
    for mute in checked.muted:
        yield f"mute {mute.target}"


def _bracketed(checked: Checked) -> Iterator[str]:
    """The components for which brackets would do, and on which nobody builds."""
    from ..compilers.components.explain import bracketed
    from ..lang.show import show

    heard = {topic.name for one in checked.components for topic in one.listens}
    heard |= {topic.name for one in checked.correlations for topic in one.listens}
    for component in checked.components:
        if component.topic.name not in heard and (brackets := bracketed(component)) is not None:
            yield f"{component.name} in brackets, told at once: {show(brackets)}"


def explain(
    definition: Definition,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="The engine to plan for.")] = "local",
    let: Lets = None,
    network: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Who would host which component there, and what that costs."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --network: draw that, step by step on the map."),
    ] = None,
) -> None:
    """The plan: what is pushed where, what is kept in state."""
    from ..compilers.explain import explain as plan
    from ..compilers.explain import explain_on_spark

    require_choice("--engine", engine, ["local", "spark"])
    if network is not None:
        from ..runtimes.sensornet.study import read
        from .hosting import drawn, explained

        found = explained(load(definition, let), read(network).points[0].case)
        typer.echo(found.text)
        if figure is not None:
            drawn(found).savefig(figure, dpi=100)
        return
    if figure is not None:
        raise UsageError("--figure draws a network; name one with --network SCENARIO")
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
