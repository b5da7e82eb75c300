"""The command ``import``: translate alerting rules of other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError, counted
from .options import require_choice

_KINDS = ["prometheus", "kapacitor", "zabbix"]


def import_(
    rules: Annotated[Path, typer.Argument(metavar="RULES", help="The file of rules.", show_default=False)],
    kind: Annotated[
        str | None,
        typer.Option("--from", metavar="|".join(_KINDS), help="Whose rules they are; else found out."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The definition to write; else it is printed.")
    ] = None,
) -> None:
    """Translate alerting rules of Prometheus, Kapacitor or Zabbix; say line by line what has no like."""
    from ..importers import kapacitor, prometheus, zabbix

    if kind is not None:
        require_choice("--from", kind, _KINDS)
    try:
        text = rules.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {rules}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{rules} is not a file of rules: it is not UTF-8 text") from None
    match kind or _guess_system(rules, text):
        case "kapacitor":
            found = kapacitor.translate(text, rules.stem)
        case "zabbix":
            found = zabbix.translate(text)
        case _:
            found = prometheus.translate(text)
    for note in found.notes:
        typer.echo(note.format(str(rules)), err=True)
    if found.translated:
        if output is None:
            typer.echo(found.text(), nl=False)
        else:
            output.write_text(found.text(), encoding="utf-8")
    left = sum("not translated" in note.message for note in found.notes)
    typer.echo(f"{counted(found.translated, 'rule')} translated, {left} not", err=True)
    if not found.translated:
        raise typer.Exit(1)


def _guess_system(path: Path, text: str) -> str:
    """Return the system that a rule file is for, guessed from its name and content."""
    if path.suffix == ".tick" or "|alert()" in text or "|deadman(" in text:
        return "kapacitor"
    if "zabbix_export" in text or "recovery_expression" in text:
        return "zabbix"
    if "groups:" in text and "alert:" in text:
        return "prometheus"
    raise UsageError(f"whose rules are in {path}? Say --from {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
