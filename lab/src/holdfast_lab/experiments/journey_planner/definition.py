"""The four components of the thesis, in the language: Tables 5.10 and 5.16.  [F72]"""

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
"""How often a road reports."""
LOOP_WINDOW, SPEED_WINDOW = 10 * MINUTE, 20 * MINUTE
"""1 : 2, as the thesis' 30 s and 1 min.  Five speeds fit into the longer one, both ends included; in a
minute of the thesis there were 330736 / 60 roads / 1200 min = 4.6 or 6.9."""
REACH = 2
"""Junctions."""


class Limits(NamedTuple):
    """A road is busy with more than so many vehicles on a kilometre; it is slow below so many per cent of its
    normal speed, and no longer slow above."""

    busy: float
    slow: float
    fast: float


def definition(limits: Limits) -> str:
    """The components."""
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
    """The checked components, by name."""
    return {
        component.name: component for component in check(parse(definition(limits))).of(ComponentCondition)
    }
