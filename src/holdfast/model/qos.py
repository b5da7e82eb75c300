"""How events reach a condition: in arrival order, or held back and put in order.  [S8, F12, F13]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .instant import Duration

Late = Literal["drop", "apply"]
LATE: tuple[Late, ...] = get_args(Late)


@dataclass(frozen=True, slots=True)
class Delivery:
    """``wait is None`` is *timely*: arrival order, never re-sorted.

    Otherwise *ordered*: an event is processed once event time has passed it by ``wait``, in the
    order of (time, source, sequence).  One that comes later still is late: ``drop`` sends it to
    the late output, ``apply`` processes it on arrival.
    """

    wait: Duration | None = None
    late: Late = "drop"


TIMELY = Delivery()
