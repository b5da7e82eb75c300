"""Correlations over 200 nodes, 10 stations."""

from __future__ import annotations

from .run import experiment
from .setting import Setting

SETTING = Setting(
    "fsf-large-network",
    nodes=200,
    groups=10,
    attributes=(5, 5),
    counts=tuple(range(100, 901, 100)),
)

EXPERIMENT = experiment(
    "correlations over 200 nodes, 10 stations  [Filter-Split-Forward, figures 8, 9, 12]",
    SETTING,
    few=(100, 500, 900),
)
