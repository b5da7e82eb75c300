"""Correlations over 200 nodes, 20 stations."""

from __future__ import annotations

from .run import experiment
from .setting import Setting

SETTING = Setting(
    "fsf-large-sources",
    nodes=200,
    groups=20,
    attributes=(5, 5),
    counts=tuple(range(100, 901, 100)),
)

EXPERIMENT = experiment(
    "correlations over 200 nodes, 20 stations  [Filter-Split-Forward, figures 10, 11, 12]",
    SETTING,
    few=(100, 500, 900),
)
