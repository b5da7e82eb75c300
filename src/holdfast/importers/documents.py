"""YAML documents whose mappings store the line of each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from ..errors import UsageError


class Mapped(dict[str, Any]):
    """A mapping that stores its own line and the lines of its keys."""

    line: int
    lines: dict[str, int]


def as_list(found: Any) -> list[Any]:
    """Return a value if it is a list, else an empty list."""
    return found if isinstance(found, list) else []


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    pass


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Mapped:
    found = Mapped(loader.construct_mapping(node, deep=True))
    found.line = node.start_mark.line + 1
    found.lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    return found


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def documents(text: str) -> Iterator[Any]:
    """Yield the YAML documents in a text. Raises an error with the line if the syntax is wrong."""
    try:
        yield from yaml.load_all(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise UsageError(f"{where}this is not YAML: {getattr(error, 'problem', error)}") from None
