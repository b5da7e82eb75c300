"""The commands of the command line.

Each reads its options, calls a function of the package, and prints the result.

To add a command, write a module with a function and register it here.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from typing import Annotated, Any

import typer

from ..errors import HoldfastError
from .advise import advise
from .command import Command, CommandGroup
from .compare import compare
from .dds import dds
from .define import check, explain, test
from .demo import demo
from .example import example
from .history import replay
from .imports import import_
from .lab import bench, reproduce
from .live import run, status
from .options import complain
from .overlay import broker, publish, subscribe
from .qps import qps
from .relate import relate
from .serve import serve
from .simulate import sim

app = typer.Typer(
    name="holdfast",
    cls=CommandGroup,
    help="Publish/subscribe for sensor systems, by state: the start and the end of conditions that hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    demo,
    example,
    check,
    explain,
    test,
    replay,
    advise,
    compare,
    relate,
    run,
    status,
    serve,
    broker,
    publish,
    subscribe,
    qps,
    sim,
    reproduce,
    bench,
)
for command in COMMANDS:
    app.command(cls=Command)(command)
app.command("import", cls=Command)(import_)
app.add_typer(dds)


@cache
def _commands() -> Any:
    """Create the command group. This imports all commands, which takes some time."""
    return typer.main.get_command(app)


def main() -> None:
    """Run a command. An error prints one message; the exit status is 1 for a failed run and 2 for
    wrong use.
    """
    if sys.stdout is None:  # the shell closed it: >&-
        sys.exit(1)
    gc.set_threshold(100_000, 50, 50)  # what is said is many small values, and never a circle
    try:
        _commands()()
    except HoldfastError as error:
        complain(str(error))
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # a full disk, a closed output, a folder that went away
        complain(f"{error.filename or 'output'}: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush goes nowhere
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
) -> None: ...
