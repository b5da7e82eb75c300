"""The four experiments of the document."""

from __future__ import annotations

from .run import experiment
from .setting import CENTRALIZED, DISTRIBUTED, FsfSetting

SMALL = experiment(
    "correlations over 60 nodes, 3 to 5 attributes of 10 stations  [Filter-Split-Forward, figures 4, 5, 12]",
    FsfSetting("fsf-small", nodes=60, groups=10, attributes=(3, 5), counts=tuple(range(100, 1001, 100))),
    few=(100, 500, 1000),
)
HUNDREDS = tuple(range(100, 901, 100))
MEDIUM = experiment(
    "correlations over 100 nodes, 10 stations, a central node  [Filter-Split-Forward, figures 6, 7, 12]",
    FsfSetting("fsf-medium", 100, 10, (5, 5), HUNDREDS, approaches=(CENTRALIZED, *DISTRIBUTED)),
    few=(100, 500, 900),
    varied=500,
)
FEW_STATIONS = FsfSetting("fsf-large-network", 200, 10, (5, 5), HUNDREDS)
LARGE_NETWORK = experiment(
    "correlations over 200 nodes, 10 stations  [Filter-Split-Forward, figures 8, 9, 12]",
    FEW_STATIONS,
    few=(100, 500, 900),
)
LARGE_SOURCES = experiment(
    "correlations over 200 nodes, 20 stations  [Filter-Split-Forward, figures 10, 11, 12]",
    FsfSetting("fsf-large-sources", 200, 20, (5, 5), HUNDREDS),
    few=(100, 500, 900),
    beside=FEW_STATIONS,
)
