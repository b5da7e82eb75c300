"""Publish/subscribe for sensor systems, by state.

A condition is a function from a history of events to the moments at which it starts and ends;
every runtime computes that function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import DefinitionError, HoldfastError, InputError, UsageError
    from .lang.app import App, within
    from .lang.check import check
    from .lang.expr import quantity
    from .lang.parse import parse
    from .lang.show import show
    from .model.event import Event, Notification
    from .model.space import Circle, Gazetteer, Polygon, Rectangle, Region
    from .model.topic import Attribute, Topic
    from .runtimes.local.engine import Engine, Holding, Subscription
    from .runtimes.local.replay import Replay

__version__ = "0.1.0"

_HOME = {
    "App": "lang.app",
    "Attribute": "model.topic",
    "Circle": "model.space",
    "DefinitionError": "errors",
    "Engine": "runtimes.local.engine",
    "Event": "model.event",
    "Gazetteer": "model.space",
    "HoldfastError": "errors",
    "Holding": "runtimes.local.engine",
    "InputError": "errors",
    "Notification": "model.event",
    "Polygon": "model.space",
    "Rectangle": "model.space",
    "Region": "model.space",
    "Replay": "runtimes.local.replay",
    "Subscription": "runtimes.local.engine",
    "Topic": "model.topic",
    "UsageError": "errors",
    "check": "lang.check",
    "parse": "lang.parse",
    "quantity": "lang.expr",
    "show": "lang.show",
    "within": "lang.app",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that ``import holdfast`` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute '{name}'")
    from importlib import import_module

    found = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
