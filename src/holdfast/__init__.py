"""Publish/subscribe for sensor systems, by state.

A condition is a function from a history of events to the instants at which it starts and ends. Every runtime
computes that function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .definition.app import App, silent, within
    from .definition.check import check
    from .definition.parse import load, parse
    from .definition.show import show
    from .errors import DefinitionError, HoldfastError, InputError, UsageError
    from .lang.expr import quantity
    from .model.event import Event, Notification, standing
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
    "standing",
    "within",
]


_HOMES = {
    "errors": ("DefinitionError", "HoldfastError", "InputError", "UsageError"),
    "definition.app": ("App", "silent", "within"),
    "definition.check": ("check",),
    "lang.expr": ("quantity",),
    "definition.parse": ("load", "parse"),
    "definition.show": ("show",),
    "model.event": ("Event", "Notification", "standing"),
    "model.instant": ("instant",),
    "model.space": ("Circle", "Gazetteer", "Polygon", "Rectangle", "Region"),
    "model.topic": ("Attribute", "Topic"),
    "runtimes.local.cases": ("Outcome", "cases"),
    "runtimes.local.engine": ("Engine", "Holding", "Subscription"),
    "runtimes.local.replay": ("Replay", "replay"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name, ``plot`` or ``spark`` when it is first used.

    Importing ``holdfast`` itself stays fast: a command loads only the modules that it needs, and Spark is
    slow to load.
    """
    if name in ("plot", "spark"):
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
