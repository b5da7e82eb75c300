"""Checks that several kinds share: clauses about late events, attributes, upstream conditions, rosters.

A message belongs here if two kinds print it. All other messages stay in the ``check.py`` of their kind.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import DefinitionError, Place, did_you_mean
from ..lang.condition import Condition
from ..lang.ops import place_of
from ..lang.typed import NameScope
from ..lang.types import unknown_attribute
from ..lang.upstream import upstream
from ..model.qos import Correct, Delivery
from ..model.topic import Attribute, Topic


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Add `name`, the name of a statement, to errors that have no place in the text. Use as a context
    manager."""
    try:
        yield
    except DefinitionError as error:
        if error.place is not None:
            raise
        raise DefinitionError(f"in '{name}': {error.message}", hint=error.hint) from None


def require_order(delivery: Delivery, at: Place | None) -> None:
    """Raise a `DefinitionError` for a clause about late events without ``ordered``."""
    if delivery.wait is None and delivery.late != "drop":
        word = "correct" if isinstance(delivery.late, Correct) else delivery.late
        message = f"'late {word}' needs 'ordered': without it nothing is ever late"
        raise DefinitionError(message, at, hint="Add how long to wait, such as: ordered 30 s")


def require_attributes(names: Iterable[str], topic: Topic, at: Place | None) -> None:
    """Raise a `DefinitionError` for a name that is no attribute of a topic."""
    for name in names:
        if name not in topic.by_name:
            raise unknown_attribute(name, NameScope(topic, {}), place_of(name, at))


# --- conditions over conditions ----------------------------------------------------------------------


def lasting_upstream(
    name: str, known: Mapping[str, Condition], statement_at: Place | None, verb: str
) -> Condition:
    """Return the condition called ``name``. Raise a `DefinitionError` if it is momentary or does not exist.

    ``verb`` is a word for the hint, such as ``Count``.
    """
    at = place_of(name, statement_at)
    over = upstream(name, known, at)
    if over.momentary:
        message = f"'{over.name}' is over as it starts, so nobody holds at once"
        raise DefinitionError(message, at, hint=f"{verb} a state, which lasts.")
    return over


def with_own(name: str, topic: Topic, own: Sequence[Attribute]) -> Topic:
    """Return the output topic of a condition: attributes of a consumed topic, then the condition's own
    attributes.

    An own attribute replaces an attribute of the same name.
    """
    names = {attribute.name for attribute in own}
    return Topic(name, (*(a for a in topic.attributes if a.name not in names), *own))


# --- rosters -----------------------------------------------------------------------------------------


def roster_rows(
    path: Path, columns: Sequence[str], wrong: Callable[[str, str | None], DefinitionError]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the row number and the cells of `columns` for each row of a CSV file with a header.

    The first row after the header has the number 2. ``wrong`` makes an error of a message and a hint.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise wrong(f"cannot be read: {getattr(error, 'strerror', None) or error}", None) from None
    header = [name.strip() for name in header]
    if missing := [name for name in columns if name not in header]:
        has = ", ".join(header) or "nothing"
        raise wrong(f"has no column '{missing[0]}'; it has {has}", did_you_mean(missing[0], header))
    places = [header.index(name) for name in columns]
    for number, row in enumerate(rows, 2):
        cells = tuple(row[i].strip() if i < len(row) else "" for i in places)
        if not all(cells):
            raise wrong(f"row {number} has no {columns[cells.index('')]}", None)
        yield number, cells
