"""Delivery: the order in which a condition processes events, and late events. [S8, F12, F13]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .instant import Duration


@dataclass(frozen=True, slots=True)
class Correct:
    """A treatment of late events: correct earlier output for events that are late by up to ``within``."""

    within: Duration

    def __str__(self) -> str:
        return f"correct {self.within} µs"


Word = Literal["drop", "apply"]
Late = Word | Correct
LATE: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The order in which a condition processes events, and its treatment of late ones.

    If ``wait`` is ``None``, delivery is *timely*: arrival order, never sorted. Otherwise it is *ordered*: an
    event is processed once the watermark has passed it by ``wait``, in the order of (time, source, sequence).
    An event that arrives after that is late: ``drop`` sends it to the late output, ``apply`` processes it on
    arrival, and a ``Correct`` processes it in its place.
    """

    wait: Duration | None = None
    late: Late = "drop"


TIMELY = Delivery()
