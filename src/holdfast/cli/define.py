"""``check``, ``explain``, ``test``: what a definition says."""

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
        typer.Option(
            metavar="SCENARIO",
            help="Who would host which component there; with --input, what each way takes there.",
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[TOPIC=]PATH|log:DIR",
            help="With --network: a history by which joules, frames, delays and days are estimated.",
        ),
    ] = None,
    must_last: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="With --input: what must change so that no node dies before."),
    ] = None,
    subscription: Annotated[
        str | None, typer.Option("--subscription", "-s", help="With --input: as if nobody wanted another.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --input: of the links.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --input: print JSON.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --network: draw that on the map."),
    ] = None,
    map: Maps = None,
    topic: OfTopic = None,
    zone: Zone = "UTC",
    time_format: TimeFormat = None,
    time_unit: Unit = None,
    wide: Wide = False,
) -> None:
    """The plan: what is pushed where, what is kept in state; in a network, what it takes."""
    from ..compilers.explain import explain as plan
    from ..compilers.explain import explain_on_spark
    from .covering import enclosed

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
        if engine == "local" and (said := enclosed(checked)):
            typer.echo("\n".join(["\ncovering", *(f"  {line}" for line in said)]))
        return
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--figure {figure}: name it .png, .svg or .pdf")
    checked = load(definition, let)
    if not input:
        from ..runtimes.sensornet.study import read
        from .hosting import drawn, explained

        found = explained(checked, read(network).points[0].case)
        typer.echo(found.text)
        if figure is not None:
            drawn(found).savefig(figure, dpi=100)
        return
    from .energy import Asked, answer

    require_playable(definition, checked)
    reading = reading_of(checked, map or [], topic, zone, time_format, time_unit, wide)
    asked = Asked(subscription, None if must_last is None else length("--must-last", must_last), seed)
    lets = parameters(let or [])
    typer.echo(answer(definition, network, history(checked, input, reading), asked, lets, as_json, figure))


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
