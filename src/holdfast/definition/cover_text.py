"""Covers of conditions, written as definitions. Brokers send them to publishers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..kinds.state.condition import StateCondition
from ..kinds.state.cover import covering
from ..kinds.state.syntax import DefineState
from ..lang.ops import DeclareRegion, DeclareTopic, Expression, Statement, Truth
from ..model.topic import Topic
from .app import App
from .show import show


def in_writing(statements: Iterable[Statement], condition: StateCondition) -> str:
    """Return the cover of a condition as a definition.

    It has a state, and a filter of the readings that pass while the state is active.
    """
    cover, name, topic = covering(condition), condition.name, condition.topic
    (statement,) = (s for s in statements if isinstance(s, DefineState) and s.name == name)
    state = replace(statement, topic=topic.name, enter=cover.condition.enter, exit=cover.condition.exit)
    regions = (s for s in statements if isinstance(s, DeclareRegion))
    ends = () if condition.momentary else (passing(name, topic, cover.ends),)
    return show(App([DeclareTopic(topic), *regions, state, *ends]))


def passing(name: str, topic: Topic, ends: Expression) -> DefineState:
    """Return the filter of a gate: it selects the readings that pass while the gate is open."""
    return DefineState(f"{name}_ends", topic.name, ends, Truth(True))
