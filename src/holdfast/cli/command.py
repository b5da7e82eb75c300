"""How commands show themselves: an option that takes no value shows none."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows no type of a flag."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """Commands under one name, shown likewise."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))


def _without_types(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
