"""The four modes, which differ in the routes of subscriptions and samples. [D10–D13, D40–D43, D46]

| mode    | a subscription goes to               | its table is at     | a sample goes to                    |
|---------|--------------------------------------|---------------------|-------------------------------------|
| DefTDDS | the RN of the topic                  | the RN              | the RN, which forwards it           |
| BLTDDS  | all nodes, flooded                   | each publisher      | the subscribers                     |
| HyTDDS  | the RN, which notifies the publishers| each publisher      | the subscribers                     |
| EATDDS  | the RN of the round                  | the RN of the round | the RN of the round, as in DefTDDS  |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .deployment import ModeName


@dataclass(frozen=True, slots=True)
class DdsMode:
    """The properties that distinguish the modes."""

    asks: Literal["rendezvous", "everybody"]
    """The node to which subscribers send subscriptions."""
    keeper: Literal["rendezvous", "publishers"]
    """The node that stores the table of subscribers and sends samples to them."""
    rotates: bool = False
    """Whether the role of RN moves from round to round."""

    @property
    def brokered(self) -> bool:
        """Whether samples go through the RN."""
        return self.keeper == "rendezvous"


MODES: Mapping[ModeName, DdsMode] = {
    "DefTDDS": DdsMode("rendezvous", "rendezvous"),
    "BLTDDS": DdsMode("everybody", "publishers"),
    "HyTDDS": DdsMode("rendezvous", "publishers"),
    "EATDDS": DdsMode("rendezvous", "rendezvous", rotates=True),
}
