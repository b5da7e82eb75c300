"""The operators that one link has requested of a node, in groups that are matched together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....model.instant import Duration
from ....model.space import Region
from .operator import FsfOperator, Key

Bounds = NDArray[np.float64]


@dataclass(eq=False, slots=True)
class OperatorGroup:
    """Operators that differ only in their names and ranges, with one row for each operator."""

    keys: tuple[Key, ...]
    wanted: tuple[bool, ...]
    within: Duration
    near: float
    region: Region | None
    rows: dict[FsfOperator, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    """The rows of removed operators, to use again."""
    names: list[str] = field(default_factory=list)
    lows: Bounds = field(default_factory=lambda: np.empty((0, 0)))
    """An array by key and row; NaN in a row without an operator."""
    highs: Bounds = field(default_factory=lambda: np.empty((0, 0)))

    def add(self, operator: FsfOperator) -> int:
        """Assign a row to an operator and return the row."""
        row = self.free.pop() if self.free else self._new_row()
        self.rows[operator], self.names[row] = row, operator.name
        self.lows[:, row] = [one.low for one in operator.filters]
        self.highs[:, row] = [one.high for one in operator.filters]
        return row

    def _new_row(self) -> int:
        row, width = len(self.names), len(self.keys)
        self.names.append("")
        if row == self.lows.shape[1]:
            room = np.full((width, max(4, row)), np.nan)
            self.lows = np.concatenate((self.lows.reshape(width, row), room), axis=1)
            self.highs = np.concatenate((self.highs.reshape(width, row), room), axis=1)
        return row

    def remove(self, operator: FsfOperator) -> None:
        """Free the row of an operator."""
        row = self.rows.pop(operator)
        self.lows[:, row] = self.highs[:, row] = np.nan
        self.free.append(row)

    def names_of(self, rows: int) -> list[str]:
        """Return the names of the subscriptions whose rows are set in the bit mask ``rows``."""
        from_the_lowest = f"{rows:b}"[::-1]
        return [name for name, bit in zip(self.names, from_the_lowest, strict=False) if bit == "1"]


@dataclass(slots=True)
class LinkRequests:
    """All operators that one link has requested of the node."""

    names: Counter[str] = field(default_factory=Counter)
    """The subscriptions of these operators, with the number of operators of each."""
    _groups: dict[Any, OperatorGroup] = field(default_factory=dict)
    _by_key: dict[Key, list[OperatorGroup]] = field(default_factory=dict)

    def add(self, operator: FsfOperator) -> tuple[OperatorGroup, int]:
        """Add an operator; return its group and its row."""
        common = _common(operator)
        group = self._groups.get(common)
        if group is None:
            group = self._groups[common] = OperatorGroup(*common)
            for key in group.keys:
                self._by_key.setdefault(key, []).append(group)
        self.names[operator.name] += 1
        return group, group.add(operator)

    def remove(self, operator: FsfOperator) -> None:
        """Remove an operator that the link requested."""
        common = _common(operator)
        group = self._groups[common]
        group.remove(operator)
        self.names[operator.name] -= 1
        if not self.names[operator.name]:
            del self.names[operator.name]
        if not group.rows:
            del self._groups[common]
            for key in group.keys:
                self._by_key[key].remove(group)

    def of(self, measured: Iterable[tuple[str, str]]) -> list[OperatorGroup]:
        """Return the groups with a filter on one of the measured attributes and sensors."""
        found = {
            group: None
            for attribute, sensor in measured
            for key in ((attribute, sensor), (attribute, None))
            for group in self._by_key.get(key, ())
        }
        return list(found)


def _common(
    operator: FsfOperator,
) -> tuple[tuple[Key, ...], tuple[bool, ...], Duration, float, Region | None]:
    return operator.keys, operator.wanted, operator.within, operator.near, operator.region
