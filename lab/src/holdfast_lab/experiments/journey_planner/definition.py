"""The four components of the thesis, written in the language (Tables 5.10 and 5.16). [F72]"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.model.instant import MINUTE

LOOP, SPEED, USER = "InductiveLoop", "CarSpeed", "User"
HIGH, SLOW, CONGESTION, NEAR = "IL_High", "CarSpeed_Slow", "TrafficCongestion", "TrafficCongestionNear"

READINGS = (LOOP, SPEED, USER)
COMPONENTS = (HIGH, SLOW, CONGESTION, NEAR)

EVERY = 5 * MINUTE
"""The interval between two readings of a road."""
LOOP_WINDOW, SPEED_WINDOW = 10 * MINUTE, 20 * MINUTE
"""The windows have the ratio 1 : 2 of the thesis' 30 s and 1 min. The longer one contains five speeds; a
minute of the thesis has 4.6 or 6.9 (330736 / 60 roads / 1200 min).
"""
REACH = 2
"""The distance in junctions within which users are notified."""


class Limits(NamedTuple):
    """Thresholds of the components: vehicles per kilometre of a busy road, and the speeds in percent of
    normal below which a road is slow and above which it is fast again.
    """

    busy: float
    slow: float
    fast: float


def definition(limits: Limits) -> str:
    """Return the text of the definition with these thresholds."""
    busy, slow, fast = limits
    return f"""\
topic {LOOP} (value float)          # vehicles seen on a kilometre of the road
topic {SPEED} (value float %)            # of the road's normal speed
topic {USER} ()

state {HIGH}
  A = avg {LOOP} over {LOOP_WINDOW // MINUTE} min each place
  enter A.value > {busy}
  exit A.value < {busy}

state {SLOW}
  A = avg {SPEED} over {SPEED_WINDOW // MINUTE} min each place
  enter A.value < {slow} %
  exit A.value > {fast} %

state {CONGESTION}
  A = {HIGH} each place
  B = {SLOW} each place
  enter A.valid && A.status == ingress && B.valid && B.status == ingress
    set level = B.value
  exit B.valid && B.status == egress
    set level = B.value

state {NEAR}
  A = {CONGESTION} any time over 0 s each place
  enter |A.location - here| <= {REACH}
    set location = A.location
  exit true
  here {USER}
"""


def components(limits: Limits) -> dict[str, ComponentCondition]:
    """Return the checked components by name."""
    checked = check(parse(definition(limits)))
    return {component.name: component for component in checked.of(ComponentCondition)}
