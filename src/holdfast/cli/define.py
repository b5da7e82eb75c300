"""The commands ``check``, ``explain`` and ``test``, which need only a definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError, counted
from .inputs import history, require_playable
from .options import (
    Definition,
    Lets,
    Maps,
    OfTopic,
    TimeFormat,
    Unit,
    Wide,
    Zone,
    length,
    load,
    parameters,
    reading_of,
    require_choice,
    warn,
)

if TYPE_CHECKING:
    from ..lang.condition import Checked


def check(
    definition: Definition,
    let: Lets = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OLD.hf", help="Show the effects on conditions that run under this definition."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="With --against: count the affected scopes in an engine's snapshot or a query's checkpoint.",
        ),
    ] = None,
) -> None:
    """Parse and type-check a definition; list its topics and subscriptions; warn of probable mistakes."""
    from ..plan.revise import preview

    checked = load(definition, let)
    for line in (*_list_topics_and_conditions(checked), *_shorter_forms(checked)):
        typer.echo(line)
    if checked.cases:
        typer.echo(f"{counted(checked.cases, 'case')}; run with: holdfast test {definition}")
    if state is not None and against is None:
        raise UsageError("--state is of what runs: say with --against under which definition")
    if against is not None:
        from .edit import forecast

        numbers = {} if state is None else forecast(against, definition, state, let)
        for name, prospect in preview(load(against, let), checked):
            typer.echo(f"{name}: {prospect}{f'; {numbers[name]}' if name in numbers else ''}")
    warn(checked)
    subscriptions = sum(condition.mutes is None for condition in checked.conditions)
    counts = [counted(checked.topics, "topic"), counted(subscriptions, "subscription")]
    if checked.warnings:
        counts.append(counted(checked.warnings, "warning"))
    typer.echo(f"{definition}: {', '.join(counts)}", err=True)


def _list_topics_and_conditions(checked: Checked) -> Iterator[str]:
    """Yield the topics and conditions of a definition, a line for each."""
    from ..definition.show import show
    from ..lang.ops import DeclareTopic

    for topic in checked.topics:
        yield show(DeclareTopic(topic))
    for condition in checked.conditions:
        yield condition.summary


def _shorter_forms(checked: Checked) -> Iterator[str]:
    """Yield a line for each condition that has a shorter form and that no other condition consumes."""
    from ..definition.show import show
    from ..kinds.registry import kind

    consumed = {topic.name for one in checked.conditions if one.publishes for topic in one.listens}
    for condition in checked.conditions:
        shorter = kind(condition).shorter
        if shorter and condition.topic.name not in consumed and (form := shorter(condition)) is not None:
            yield f"{condition.name} in brackets, told at once: {show(form)}"


def explain(
    definition: Definition,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="The engine to plan for.")] = "local",
    let: Lets = None,
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO",
            help="Show which node would host which component; with --input, what each strategy costs.",
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[TOPIC=]PATH|log:DIR",
            help="With --network: a history to estimate joules, frames, delays and days.",
        ),
    ] = None,
    must_last: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="With --input: find changes with which no node runs out of energy before.",
        ),
    ] = None,
    subscription: Annotated[
        str | None,
        typer.Option("--subscription", "-s", help="With --input: as if this were the only subscription."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --input: the seed of the links.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --input: print JSON.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --network: draw the result on the map."),
    ] = None,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
) -> None:
    """Print the plan: what runs where, and which state it stores; in a network, what it costs."""
    from ..plan.explain import explain as plan
    from ..plan.explain import explain_on_spark
    from .covering import nested_states

    require_choice("--engine", engine, ["local", "spark"])
    for option, given in {"--must-last": must_last, "--subscription": subscription, "--seed": seed}.items():
        if given is not None and not input:
            raise UsageError(f"{option} is about what a network takes: say by which history, with --input")
    if as_json and not input:
        raise UsageError("--json is about what a network takes: say by which history, with --input")
    if network is None:
        if input or figure is not None:
            raise UsageError("--input and --figure are about a network; name one with --network SCENARIO")
        checked = load(definition, let)
        typer.echo((explain_on_spark if engine == "spark" else plan)(checked))
        if engine == "local" and (lines := nested_states(checked)):
            typer.echo("\n".join(["\ncovering", *(f"  {line}" for line in lines)]))
        return
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--figure {figure}: name it .png, .svg or .pdf")
    checked = load(definition, let)
    if not input:
        from ..network.motes.study import read
        from .hosting import draw_placement, explain

        found = explain(checked, read(network).points[0].case)
        typer.echo(found.text)
        if figure is not None:
            draw_placement(found).savefig(figure, dpi=100)
        return
    from .energy import EnergyOptions, answer

    require_playable(definition, checked)
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, wide)
    asked = EnergyOptions(subscription, None if must_last is None else length("--must-last", must_last), seed)
    lets = parameters(let or [])
    typer.echo(answer(definition, network, history(checked, input, reading), asked, lets, as_json, figure))


def test(definition: Definition, let: Lets = None) -> None:
    """Run the given/expect cases of a definition."""
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
