"""Publish/subscribe for sensor systems, by state.

A condition is a function from a history of events to the moments at which it starts and ends;
every runtime computes that function.
"""

from importlib import import_module
from typing import Any

from .errors import DefinitionError, HoldfastError, InputError, UsageError
from .lang.app import App, silent, within
from .lang.check import check
from .lang.expr import quantity
from .lang.parse import load, parse
from .lang.show import show
from .model.event import Event, Notification
from .model.instant import instant
from .model.space import Circle, Gazetteer, Polygon, Rectangle, Region
from .model.topic import Attribute, Topic
from .runtimes.local.cases import Outcome, cases
from .runtimes.local.engine import Engine, Holding, Subscription
from .runtimes.local.replay import Replay, replay

__version__ = "0.1.0"

__all__ = [
    "App",
    "Attribute",
    "Circle",
    "DefinitionError",
    "Engine",
    "Event",
    "Gazetteer",
    "HoldfastError",
    "Holding",
    "InputError",
    "Notification",
    "Outcome",
    "Polygon",
    "Rectangle",
    "Region",
    "Replay",
    "Subscription",
    "Topic",
    "UsageError",
    "cases",
    "check",
    "instant",
    "load",
    "parse",
    "quantity",
    "replay",
    "show",
    "silent",
    "within",
]


def __getattr__(name: str) -> Any:
    """``holdfast.spark`` is imported when it is asked for: Spark is heavy, and optional."""
    if name == "spark":
        return import_module(".spark", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
