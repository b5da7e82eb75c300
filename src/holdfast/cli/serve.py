"""The command ``serve``: run the service until stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError

if TYPE_CHECKING:
    from ..service.serve import ServicePlan

HERE = "127.0.0.1:8080"


def serve(
    definition: Annotated[
        Path | None, typer.Argument(metavar="[APP.hf]", help="The definition.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of the log and the database; APP.data by default."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"The address for HTTP; {HERE} by default. Port 0 selects a free port."
        ),
    ] = None,
    mqtt: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A broker: mqtt://HOST:PORT, mqtts:// for TLS; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="serve.toml", help="Brokers, mappings, sinks, users.")
    ] = None,
    restart: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Restart a subscription that cannot carry over its state."),
    ] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue without missing or damaged parts of the log.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Play a generated building in fast motion.")] = False,
    speed: Annotated[
        float, typer.Option(metavar="TIMES", min=1, help="With --demo: how many times faster than real time.")
    ] = 60.0,
    new_token: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print a new token and the lines to add to serve.toml.")
    ] = None,
) -> None:
    """Take readings from MQTT and HTTP, store them, and notify people and systems, until stopped.

    Prints its address on standard output; open it in a browser.
    """
    import asyncio
    import tempfile

    if new_token is not None:
        _print_token(new_token)
        return
    if (definition is None) != demo:
        raise UsageError("give a definition (APP.hf), or --demo for a generated building, not both")
    with tempfile.TemporaryDirectory(prefix="holdfast-serve-") as scratch:
        plan = _demo(Path(scratch), data, speed) if definition is None else _plan(definition, data, config)
        plan = _with(plan, listen, mqtt or [], restart or [], accept_loss)
        from ..network.overlay.commands.serve import until_stopped
        from ..service.serve import serve as run

        _log_to_stderr()
        asyncio.run(until_stopped(run(plan, lambda at: typer.echo(f"listening on {_url(plan, at)}"))))


def _url(plan: ServicePlan, address: Any) -> str:
    return f"http{'s' if plan.config.certificate else ''}://{address}/"


def _service() -> Any:
    try:
        from ..service import config, serve
    except ModuleNotFoundError as error:
        raise UsageError(f"holdfast serve needs {error.name}; install holdfast[serve]") from error
    return serve, config


def _plan(definition: Path, data: Path | None, file: Path | None) -> ServicePlan:
    service, configuration = _service()
    settings = configuration.Config() if file is None else configuration.load(file)
    where = data or definition.with_suffix(".data")
    folder = Path() if file is None else file.parent
    plan: ServicePlan = service.ServicePlan(
        definition, where, service.address_of(settings.listen or HERE), settings, folder
    )
    return plan


def _demo(scratch: Path, data: Path | None, speed: float) -> ServicePlan:
    import time
    from functools import partial

    from .. import demo
    from ..model.instant import DAY, HOUR, SECOND
    from ..service.feeds.play import Play

    service, configuration = _service()
    where = data or scratch
    if (where / "service.db").exists():
        raise UsageError(f"--data {where}: the demonstration begins with an empty folder")
    where.mkdir(parents=True, exist_ok=True)
    definition = where / "demo.hf"
    definition.write_text(demo.DEFINITION, encoding="utf-8")
    real, started = time.time_ns() // 1_000, time.monotonic()
    begin = real - real % DAY - 2 * DAY
    now = begin + DAY + 9 * HOUR  # yesterday is known; the morning goes on before one's eyes

    def clock() -> int:
        return now + int((time.monotonic() - started) * speed * SECOND)

    day = {"Climate": demo.climate(), "Badge": demo.badges()}
    play = partial(Play, day=day, dawn=demo.DAWN, begin=begin)
    plan: ServicePlan = service.ServicePlan(
        definition, where, service.address_of(HERE), configuration.Config(), where, feeds=(play,), clock=clock
    )
    return plan


def _with(
    plan: ServicePlan, listen: str | None, mqtt: list[str], restart: list[str], accept_loss: bool
) -> ServicePlan:
    """Return the plan with the changes of the command-line options."""
    from dataclasses import replace

    import msgspec

    service, configuration = _service()
    brokers = [configuration.MqttPart(url=url) for url in mqtt]
    for broker in brokers:
        broker.broker(plan.folder)
    config = msgspec.structs.replace(plan.config, mqtt=[*plan.config.mqtt, *brokers])
    at = plan.listen if listen is None else service.address_of(listen)
    return replace(plan, config=config, listen=at, restart=tuple(restart), accept_loss=accept_loss)


def _print_token(name: str) -> None:
    from ..service.api.access import digest, new_token

    token = new_token()
    typer.echo(f"token: {token}\n\nFor serve.toml; the role is one of send, see, acknowledge, edit:\n")
    typer.echo(f'[[user]]\nname = "{name}"\nrole = "see"\ntoken = "{digest(token)}"')


def _log_to_stderr() -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("holdfast.service")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
