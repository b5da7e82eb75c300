"""The levels of derived topics: a derived topic is above the topics from which it is derived. [F52]"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from ....errors import UsageError
from .smc import Smc


def levels(smcs: Iterable[Smc]) -> dict[str, int]:
    """Return the level of each derived topic; readings have level 0. Raise a `UsageError` if components form
    a cycle."""
    inputs: dict[str, set[str]] = {}
    for smc in smcs:
        inputs.setdefault(smc.topic, set()).update(smc.topics)
    derived = {topic: sorted(of & inputs.keys()) for topic, of in inputs.items()}
    found: dict[str, int] = {}
    try:
        for topic in TopologicalSorter(derived).static_order():
            found[topic] = 1 + max((found[below] for below in derived[topic]), default=0)
    except CycleError as error:
        cycle = " → ".join(error.args[1])
        raise UsageError(f"components build on one another in a circle: {cycle}") from None
    return found
