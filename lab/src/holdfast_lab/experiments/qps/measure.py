"""The runs of the three experiments, one for each layout and point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.network.protocols.qps.deployment import Compliance

from .codd import Codd
from .ghtd import Ghtd
from .outcome import Approach, QpsOutcome
from .quad import Quad
from .scene import QpsScene, QpsSetting

QPS, CODD, GHTD = "QPS", "CODD", "GHTD"
APPROACHES: dict[str, Callable[[QpsScene], Approach]] = {QPS: Quad, CODD: Codd, GHTD: Ghtd}
GUARANTEED = "QPS, ε guaranteed"

Outcomes = dict[str, QpsOutcome]
"""Outcomes by approach, or by approach and number of subscribers."""


class QpsLayout(NamedTuple):
    """A cell of a study: the point of the sweep (0 if points are numbers of subscribers), and a seed."""

    point: float
    seed: int


def growing(setting: QpsSetting, counts: Sequence[int], layout: QpsLayout) -> Outcomes:
    """Measure one layout with a growing number of subscribers."""
    scene = QpsScene(setting, layout.seed)
    found: Outcomes = {}
    for name, approach in APPROACHES.items():
        made = approach(scene)
        for i, node in enumerate(scene.subscribers[: max(counts)], 1):
            made.subscribe(node)
            if i in counts:
                found[f"{name} {i}"] = made.outcome()
    return found


def denser(setting: QpsSetting, layout: QpsLayout) -> Outcomes:
    """Measure all approaches with a number of nodes."""
    scene = QpsScene(setting._replace(nodes=int(layout.point)), layout.seed)
    return {name: _whole(approach(scene), scene) for name, approach in APPROACHES.items()}


def looser(setting: QpsSetting, layout: QpsLayout) -> Outcomes:
    """Measure Quad-PubSub with an ε, best-effort and guaranteed."""
    scene = QpsScene(setting, layout.seed)
    policies: dict[str, Compliance] = {QPS: "best-effort", GUARANTEED: "guaranteed"}
    return {name: _whole(Quad(scene, layout.point, policy), scene) for name, policy in policies.items()}


def _whole(made: Approach, scene: QpsScene) -> QpsOutcome:
    for node in scene.subscribers:
        made.subscribe(node)
    return made.outcome()
