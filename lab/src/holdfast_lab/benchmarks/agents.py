"""Many agents in one broker process: what each needs, and how many readings and messages go through it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast.model.instant import SECOND
from holdfast.model.relation import Participant, ReadingRange, Relation, Test, Tie
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import active_bundle
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import Submit, WithdrawSubmission, advertise, publish
from holdfast.network.protocols.cbps.content import Constraint, Filter

from . import Row
from .process import apart, resident

AGENTS = (1_000, 10_000)
BUNDLE = 50
"""Pairs in one active subscription."""
READINGS = 2_000
STEP = 20.0
SIDE = 300.0
EVERYBODY = Filter(
    (
        Constraint("topic", "text", "=", "User"),
        Constraint("source", "text", "any"),
        *(Constraint(axis, "double", "any") for axis in "xy"),
    )
)
"""What a publisher of many sources promises."""


def run(progress: Callable[[str], None]) -> list[Row]:
    """Agents that watch pairs of walkers, in a process of their own for each number."""
    rows: list[Row] = []
    for count in AGENTS:
        progress(f"{count:,} agents")
        rows += _rows(count, apart(measure_agents, count, READINGS))
    return rows


def _rows(count: int, found: dict[str, float]) -> Iterator[Row]:
    yield Row(f"{count:,} agents: memory for each", found["bytes"], "bytes")
    yield Row(f"{count:,} agents: started", found["started"], "agents/s")
    yield Row(f"{count:,} agents: ended", found["ended"], "agents/s")
    detail = {"messages": found["messages"], "readings": found["readings"], "reports": found["reports"]}
    yield Row(f"{count:,} agents: readings", found["rate"], "readings/s", detail=detail)
    yield Row(f"{count:,} agents: messages through the broker", found["through"], "messages/s", detail=detail)


def measure_agents(count: int, readings: int) -> dict[str, float]:
    """So many agents in one broker: bytes for each, and how many start, end, readings and messages a second.

    Every walker is in two pairs.  What goes through the broker are readings, what agents say, and reports."""
    overlay = Overlay()
    broker = overlay.broker("hub", machine=AgentHost(CbpsBroker(compile_condition, name="hub")))  # type: ignore[arg-type]
    overlay.client("walkers", "hub")
    overlay.client("subscriber", "hub")
    walkers = [f"u{i:05d}" for i in range(count // 2)]
    overlay.ask("walkers", advertise("all", EVERYBODY))
    overlay.settle()
    before, start = resident(), time.perf_counter()
    pairs = [(walkers[i - 1], walkers[i]) for i in range(len(walkers))]
    for first in range(0, len(pairs), BUNDLE):
        bundle = active_bundle(f"Meet {first}", _relation(pairs[first : first + BUNDLE]), "range_ring")
        overlay.ask("subscriber", Submit(bundle, f"Meet {first}"))
    overlay.settle()
    seconds = time.perf_counter() - start
    assert len(broker.state.agents) == count, broker.state.refusals
    held = resident() - before
    walked = _walk(overlay, walkers, readings)
    start = time.perf_counter()
    for first in range(0, len(pairs), BUNDLE):
        overlay.ask("subscriber", WithdrawSubmission(f"Meet {first}"))
    overlay.settle()
    assert not broker.state.agents
    ended = count / (time.perf_counter() - start)
    return {"bytes": held / count, "started": count / seconds, "ended": ended, **walked}


def _walk(overlay: Overlay, walkers: list[str], readings: int) -> dict[str, float]:
    chance = random.Random(1)
    at = {walker: [chance.uniform(0, SIDE), chance.uniform(0, SIDE)] for walker in walkers}
    for i, walker in enumerate(walkers):
        _say(overlay, walker, i, at[walker])
    overlay.take("subscriber")
    handled = _count_outputs(overlay)
    start = time.perf_counter()
    for i in range(readings):
        walker = chance.choice(walkers)
        at[walker] = [x + chance.uniform(-STEP, STEP) for x in at[walker]]
        _say(overlay, walker, i, at[walker])
    seconds = time.perf_counter() - start
    reports = len(overlay.take("subscriber"))
    outputs = _count_outputs(overlay) - handled
    return {
        "rate": readings / seconds,
        "through": (readings + outputs + reports) / seconds,
        "messages": outputs,
        "readings": readings,
        "reports": reports,
    }


def _count_outputs(overlay: Overlay) -> int:
    """How much agents have said so far."""
    agents = overlay.nodes["hub"].state.agents.values()
    return sum(hosted.built.agent.sent_count for hosted in agents)


def _say(overlay: Overlay, walker: str, number: int, at: list[float]) -> None:
    overlay.advance(SECOND)
    x, y = at
    reading: dict[str, int | float | str | bool] = {
        "topic": "User",
        "time": overlay.now,
        "source": walker,
        "sequence": number,
        "x": x,
        "y": y,
    }
    overlay.ask("walkers", publish(reading))
    overlay.settle()


def _relation(pairs: list[tuple[str, str]]) -> Relation:
    ties = tuple(
        Tie(f"{a},{b}", (Participant("User", a), Participant("User", b)), pair=(a, b)) for a, b in pairs
    )
    near = Relation("distance", Test(ReadingRange(high=10.0)), Test(ReadingRange(low=50.0)), names=("a", "b"))
    return replace(near, ties=ties)
