"""Correlations over 100 nodes, 10 stations, a central node."""

from __future__ import annotations

from .run import experiment
from .setting import CENTRALIZED, DISTRIBUTED, Setting

SETTING = Setting(
    "fsf-medium",
    nodes=100,
    groups=10,
    attributes=(5, 5),
    counts=tuple(range(100, 901, 100)),
    approaches=(CENTRALIZED, *DISTRIBUTED),
)

EXPERIMENT = experiment(
    "correlations over 100 nodes, 10 stations, a central node  [Filter-Split-Forward, figures 6, 7, 12]",
    SETTING,
    few=(100, 500, 900),
    varied=500,
)
