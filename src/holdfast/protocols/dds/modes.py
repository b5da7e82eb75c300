"""The four ways in which subscriptions and samples find each other.  [D10–D13, D40–D43, D46]

| mode | a subscription goes to | who keeps it | a sample goes to |
|---|---|---|---|
| DefTDDS | the RN of the topic | the RN | the RN, which forwards it |
| BLTDDS | everybody, flooded | each publisher | the subscribers |
| HyTDDS | the RN, which notifies the publishers | each publisher | the subscribers |
| EATDDS | the RN of the round | the RN of the round | the RN of the round, which forwards it |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .deployment import ModeName


@dataclass(frozen=True, slots=True)
class Mode:
    """What tells one mode from another."""

    asks: Literal["rendezvous", "everybody"]
    """Whom a subscriber tells."""
    keeper: Literal["rendezvous", "publishers"]
    """Who keeps the table of subscribers, and so forwards or sends samples by it."""
    rotates: bool = False
    """Whether the role of RN moves from round to round."""

    @property
    def brokered(self) -> bool:
        """Whether samples go through the RN."""
        return self.keeper == "rendezvous"


MODES: Mapping[ModeName, Mode] = {
    "DefTDDS": Mode("rendezvous", "rendezvous"),
    "BLTDDS": Mode("everybody", "publishers"),
    "HyTDDS": Mode("rendezvous", "publishers"),
    "EATDDS": Mode("rendezvous", "rendezvous", rotates=True),
}
