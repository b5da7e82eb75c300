"""Correlations over 60 nodes, 3 to 5 attributes of 10 stations."""

from __future__ import annotations

from .run import experiment
from .setting import Setting

SETTING = Setting(
    "fsf-small",
    nodes=60,
    groups=10,
    attributes=(3, 5),
    counts=tuple(range(100, 1001, 100)),
)

EXPERIMENT = experiment(
    "correlations over 60 nodes, 3 to 5 attributes of 10 stations  [Filter-Split-Forward, figures 4, 5, 12]",
    SETTING,
    few=(100, 500, 1000),
)
