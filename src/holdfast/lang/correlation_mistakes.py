"""Explanations of syntax errors in correlations, for ``mistakes``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import DefinitionError, did_you_mean
from ..model.allen import ALLEN

if TYPE_CHECKING:
    from .mistakes import SyntaxFault

_OPENING = re.compile(r"\b(let|topic|gazetteer|filter|state|correlate|case|given|expect)\b")
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
_WORD = re.compile(r"[^\W\d][\w.]*")
_OPTIONS = ("tell", "timely", "ordered", "late", "in")

_INSTEAD = {
    "||": ("there is no 'or' between filters", "All of them must be matched; write two correlations."),
    "or": ("there is no 'or' between filters", "All of them must be matched; write two correlations."),
    ";": ("there is no ';' between filters", "Write them one after another, or with ',' between them."),
    "per": ("a correlation has no 'per'", 'Name sensors instead: wind_speed of "s12" >= 8'),
    "scope": ("a correlation has no 'scope'", "It is in one region: within 2 min in region Pass …"),
}
_AS_IN = "As in: ambient_temp in [-5, 2]  wind_speed >= 8"


def mistake(fault: SyntaxFault) -> DefinitionError | None:
    """Return the explanation of a typical mistake in a correlation; ``None`` for any other error."""
    words = _OPENING.findall(_TEXT.sub(" ", fault.before))
    if not words or words[-1] != "correlate":
        return None
    if "ALLEN" in fault.expected or "_OVERLAPPING" in fault.expected:
        return _no_relation(fault)
    if fault.expected == {"_CIRCLE", "_POLYGON", "_RECTANGLE", "_REGION"} and _WORD.match(fault.rest):
        return fault.error(f"expected 'region' before '{fault.found}'", f"Write: in region {fault.found}")
    if fault.found in _INSTEAD and "ATTRIBUTE" in fault.expected:
        return fault.error(*_INSTEAD[fault.found])
    if fault.expected == {"COLON", "EQUAL"}:  # a name without a range was parsed as a statement
        word = fault.ends(r"([^\W\d][\w.]*)\s*$")
        if word is None:
            return None
        fault = replace(fault, start=word.start(1))
    elif "ATTRIBUTE" not in fault.expected:
        return None
    return _no_filter(fault)


def _no_relation(fault: SyntaxFault) -> DefinitionError:
    """Return the error for a word that is no relation between two conditions."""
    found = f", not '{fault.found}'" if fault.found else ""
    others = [word for word in ALLEN if word != fault.found]  # the word is valid, but in another position
    near = did_you_mean(fault.found, others) if fault.found else None
    how = "Smoke, DoorOpen overlapping  or: Smoke overlaps, during, before, starts, ends DoorOpen"
    return fault.error(f"expected how the conditions lie in time{found}", near or f"As in: {how}")


def _no_filter(fault: SyntaxFault) -> DefinitionError | None:
    """Return the error for a word that starts neither a filter nor another clause."""
    word = _WORD.match(fault.rest)
    if word is None:
        if "$END" in fault.expected:
            return None
        what = f" before '{fault.found}'" if fault.found else ""
        return fault.error_at(
            min(fault.start, len(fault.text.rstrip()) - 1), len(fault.found),
            f"expected an attribute and its range{what}", _AS_IN,
        )  # fmt: skip
    after = fault.rest[word.end() :].lstrip()
    if re.match(r"=\s*[^\W\d]", after):
        return fault.error("a parameter is compared with '=='", f"Write: {word[0]} == …")
    if re.match(r"of\s+[^\W\d\"]", after):
        return fault.error("a sensor is a text in double quotes", f'As in: {word[0]} of "s12" >= 8')
    if word[0] in _INSTEAD:
        return fault.error(*_INSTEAD[word[0]])
    near = None if word[0] in _OPTIONS else did_you_mean(word[0], _OPTIONS)
    return fault.error(f"expected a range after '{word[0]}'", near or _AS_IN)
